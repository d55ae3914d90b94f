"""The line that adds an optional dependency to this very installation, whatever installed it.

The package itself may be on no index, so the line names what the extra consists of rather than `holdfast[extra]`.
"""

from __future__ import annotations

import os
import shlex
import site
import sys
import sysconfig
import tomllib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE = "holdfast"
UV_RECEIPT = "uv-receipt.toml"
PIPX_METADATA = "pipx_metadata.json"


def install_line(extra: str) -> str:
    """Return the shell command that installs what an extra of this package names."""
    names = _requirements(extra)
    prefix = Path(sys.prefix)
    if (prefix / PIPX_METADATA).is_file():
        return shlex.join(["pipx", "inject", prefix.name, *names])
    return _uv_tool_line(prefix, names) or shlex.join([*_pip(), *names])


def _requirements(extra: str) -> list[str]:
    from importlib.metadata import PackageNotFoundError, requires  # takes longer than all the rest

    try:
        declared = requires(PACKAGE) or []
    except PackageNotFoundError:  # run from a checkout that nobody installed
        declared = []
    wanted = f"extra == '{extra}'"
    names = [one.partition(";")[0].strip() for one in declared if wanted in one.replace('"', "'")]
    return names or [f"{PACKAGE}[{extra}]"]


def _pip() -> list[str]:
    """Return the words that install into the environment of this Python."""
    if find_spec("pip") is None:  # an environment that uv made
        return ["uv", "pip", "install", "--python", sys.executable]
    words = [sys.executable, "-m", "pip", "install"]
    if sys.prefix == sys.base_prefix:
        if Path(__file__).is_relative_to(site.getusersitepackages()):
            words.append("--user")
        if Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").is_file():
            words.append("--break-system-packages")
    return words


def _uv_tool_line(prefix: Path, names: list[str]) -> str | None:
    """Return the line for an installation by `uv tool install`; None if it is none, or its source is gone.

    What is only put into its environment would be gone after `uv tool upgrade`, and so would what was added before.
    """
    try:
        requirements = tomllib.loads((prefix / UV_RECEIPT).read_text())["tool"]["requirements"]
        own = [one for one in requirements if one["name"] == PACKAGE]
        others = [_written(one) for one in requirements if one["name"] != PACKAGE]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    source = _written(own[0]) if len(own) == 1 else None
    if source is None or None in others:
        return None
    words = ["uv", "tool", "install"]
    if own[0].get("editable"):
        words.append("--editable")
    for name in dict.fromkeys([*filter(None, others), *names]):
        words += ["--with", name]
    return _tool_directory(prefix) + shlex.join([*words, source])


def _written(requirement: Mapping[str, Any]) -> str | None:
    """Return an entry of the receipt as it is written on a command line; None if it cannot be, or is gone."""
    name = requirement["name"]
    extras = f"[{','.join(requirement['extras'])}]" if requirement.get("extras") else ""
    local = requirement.get("path") or requirement.get("directory") or requirement.get("editable")
    if local is not None:
        return f"{local}{extras}" if Path(local).exists() else None
    if "git" in requirement:
        # Written as https://host/repository?rev=main#subdirectory=…; a command line has the revision after an @.
        address, _, query = str(requirement["git"]).partition("?")
        revision = next((f"@{part.partition('=')[2]}" for part in query.split("&") if "=" in part), "")
        return None if "#" in address or "subdirectory" in query else f"{name}{extras} @ git+{address}{revision}"
    if "url" in requirement:
        return f"{name}{extras} @ {requirement['url']}"
    return f"{name}{extras}{requirement.get('specifier', '')}"


def _tool_directory(prefix: Path) -> str:
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    usual = os.environ.get("UV_TOOL_DIR") or Path(data, "uv", "tools")
    return "" if prefix.parent == Path(usual) else f"UV_TOOL_DIR={shlex.quote(str(prefix.parent))} "
