"""The line that adds an optional dependency to this very installation, whatever installed it."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec


def install_line(extra: str) -> str:
    """Return the shell command that installs what an extra of this package names."""
    from importlib.metadata import PackageNotFoundError, requires  # takes longer than all the rest

    try:
        declared = requires("holdfast") or []
    except PackageNotFoundError:  # run from a checkout that nobody installed
        declared = []
    wanted = f"extra == '{extra}'"
    names = [one.partition(";")[0].strip() for one in declared if wanted in one.replace('"', "'")]
    pip = [sys.executable, "-m", "pip", "install"]
    # `uv tool install` makes environments without pip.
    command = pip if find_spec("pip") is not None else ["uv", "pip", "install", "--python", sys.executable]
    return shlex.join([*command, *(names or [f"holdfast[{extra}]"])])
