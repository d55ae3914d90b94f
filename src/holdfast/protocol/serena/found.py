"""Where Serena is: in the user's own configuration, or in that of a project whose owner trusts it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast import bounded_json
from holdfast.child_environment import command_environment, without_own
from holdfast.protocol.inside import UnreadableInside, read_inside

NAME = "serena"
PROJECT_VARIABLE = "SERENA_PROJECT"
PROJECT_FILE = ".serena/project.yml"
SERVERS_FILE = ".mcp.json"
LARGEST = 32 * 1024 * 1024
"""Bytes of a configuration file; Claude Code keeps its history in the same one."""

STARTS_SERVER = "start-mcp-server"
SERVER_PROGRAMS = ("serena-mcp-server",)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*+)(?::-(.*))?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Launch:
    """How a Serena is reached: a command to start, or the address of one that runs."""

    argv: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Not shown, because tokens are kept here."""
    takes_options: bool = False
    """Whether Serena's own options can follow; a wrapper's cannot be known."""
    url: str | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Found:
    """What looking for Serena found."""

    launch: Launch | None
    detail: str


def find_serena(worktree: Path, trusted: bool, env: Mapping[str, str]) -> Found:
    """The Serena for a worktree. What the project itself names counts only when it is trusted."""
    own, trouble = _own(worktree, without_own(env))
    if own is not None:
        return Found(own, "configured by the user")
    program = shutil.which(NAME, path=env.get("PATH", os.defpath))
    if _within(worktree, env.get(PROJECT_VARIABLE)):
        return Found(_direct(program or NAME), f"configured by {PROJECT_VARIABLE}")
    brought, trouble_inside = _brought(worktree, program, command_environment(env))
    if brought is not None and not trusted:
        return Found(None, "The project names a Serena; it is asked once the owner said `holdfast trust`.")
    return Found(brought, trouble or trouble_inside or "No Serena is configured.")


def is_serena_project(worktree: Path) -> bool:
    """Whether Serena knows the project already; where it does not, opening it would leave new files there."""
    try:
        return read_inside(worktree, PROJECT_FILE, LARGEST) is not None
    except UnreadableInside:
        return False


def _own(worktree: Path, env: Mapping[str, str]) -> tuple[Launch | None, str]:
    """From the user's Claude Code configuration, the entry for this project before the general one."""
    home = Path(env.get("HOME") or Path.home())
    path = Path(env.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
    try:
        with path.open("rb") as file:
            config = _mapping(bounded_json.loads(file.read(LARGEST)))
    except FileNotFoundError:
        return None, ""
    except (OSError, ValueError) as error:
        return None, f"{path} cannot be read: {error}."
    local = _mapping(_mapping(config.get("projects")).get(str(worktree)))
    return _entry(local, env) or _entry(config, env), ""


def _brought(worktree: Path, program: str | None, env: Mapping[str, str]) -> tuple[Launch | None, str]:
    """From the project's own files."""
    try:
        servers = read_inside(worktree, SERVERS_FILE, LARGEST)
        launch = _entry(_mapping(bounded_json.loads(servers)), env) if servers else None
        if launch is None and program is not None and read_inside(worktree, PROJECT_FILE, LARGEST) is not None:
            launch = _direct(program)
    except (UnreadableInside, ValueError) as error:
        return None, f"The project's Serena cannot be found out: {error}"
    return launch, ""


def _direct(program: str) -> Launch:
    return Launch((program, STARTS_SERVER), takes_options=True)


def _entry(config: Mapping[str, Any], env: Mapping[str, str]) -> Launch | None:
    """The entry of the server called serena, or else of the first whose name tells that it is one."""
    servers = _mapping(config.get("mcpServers"))
    names = sorted((name for name in servers if NAME in name.lower()), key=lambda name: name.lower() != NAME)
    for name in names:
        entry = _mapping(servers[name])
        command, url = entry.get("command"), entry.get("url")
        if isinstance(command, str) and command:
            given = entry.get("args")
            args = [str(arg) for arg in given] if isinstance(given, list) else []
            argv = tuple(_filled_in(text, env) for text in (command, *args))
            return _started(argv, _pairs(entry.get("env"), env))
        if isinstance(url, str) and url and entry.get("type") != "sse":
            return Launch(url=_filled_in(url, env), headers=_pairs(entry.get("headers"), env))
    return None


def _started(argv: tuple[str, ...], env: tuple[tuple[str, str], ...]) -> Launch:
    """Options are replaced by our own: which interface and which project is not left to chance."""
    for place, word in enumerate(argv):
        if word == STARTS_SERVER or Path(word).name in SERVER_PROGRAMS:
            return Launch(argv[: place + 1], env, takes_options=True)
    return Launch(argv, env)


def _pairs(given: Any, env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), _filled_in(str(value), env)) for name, value in _mapping(given).items())


def _filled_in(text: str, env: Mapping[str, str]) -> str:
    """With ${NAME} and ${NAME:-default} replaced, as Claude Code does it."""
    # Each } ends at most one of them; looking for it from every ${ anew would take a hostile text's square.
    *closed, rest = text.split("}")
    return "".join(_closed(part, env) for part in closed) + rest


def _closed(part: str, env: Mapping[str, str]) -> str:
    found = _VARIABLE.search(part)
    return f"{part}}}" if found is None else part[: found.start()] + (env.get(found[1]) or found[2] or "")


def _within(worktree: Path, project: str | None) -> bool:
    if not project:
        return False
    return Path(os.path.realpath(worktree)).is_relative_to(os.path.realpath(Path(project).expanduser()))


def _mapping(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, dict) else {}
