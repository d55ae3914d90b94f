"""Finds Serena: in the user's own configuration, or in that of a trusted project."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from holdfast.agents.registry import settings_of
from holdfast.files.inside import UnreadableInside, read_inside
from holdfast.lazy_dataclass import dataclass
from holdfast.process.child_environment import command_environment, without_own
from holdfast.protocol.project.settings import MCP_SERVERS, SERENA_PROJECT, serena_entries

NAME = "serena"
PROJECT_VARIABLE = "SERENA_PROJECT"
MAX_CONFIG_BYTES = 32 * 1024 * 1024

STARTS_SERVER = "start-mcp-server"
SERVER_PROGRAMS = ("serena-mcp-server",)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*+)(?::-(.*))?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Launch:
    """How a Serena is reached: a command to start, or the address of a running one."""

    argv: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Not shown, because it may contain tokens."""
    takes_options: bool = False
    """Whether Serena's own options can be appended; after a wrapper they cannot."""
    url: str | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Found:
    """Result of looking for Serena."""

    launch: Launch | None
    detail: str


def find_serena(worktree: Path, trusted: bool, env: Mapping[str, str]) -> Found:
    """Find the Serena for a worktree. One that the project itself names counts only if the project is trusted."""
    own, trouble = _from_user(worktree, without_own(env))
    if own is not None:
        return Found(own, "configured by the user")
    program = shutil.which(NAME, path=env.get("PATH", os.defpath))
    project = env.get(PROJECT_VARIABLE)
    if project and Path(os.path.realpath(worktree)).is_relative_to(os.path.realpath(Path(project).expanduser())):
        return Found(_direct(program or NAME), f"configured by {PROJECT_VARIABLE}")
    brought, known, trouble_inside = _from_project(worktree, command_environment(env))
    if brought is not None and not trusted:
        return Found(None, "The project names a Serena; it is used once the owner runs `holdfast trust`.")
    if brought is None and program is not None and known:  # the user's own program, which does not open the project
        return Found(_direct(program), f"configured by {SERENA_PROJECT}")
    return Found(brought, trouble or trouble_inside or "No Serena is configured.")


def _from_user(worktree: Path, env: Mapping[str, str]) -> tuple[Launch | None, str]:
    """Return the Serena of the user's own configuration; the entry for this project before the general one."""
    try:
        lists = settings_of().mcp_servers(worktree, env)
    except ValueError as error:
        return None, str(error)
    return next(filter(None, (_entry(servers, env) for servers in lists)), None), ""


def _from_project(worktree: Path, env: Mapping[str, str]) -> tuple[Launch | None, bool, str]:
    """Return the Serena that the project's own files name, and whether it has settings for Serena."""
    try:
        launch = _entry(serena_entries(read_inside(worktree, MCP_SERVERS, MAX_CONFIG_BYTES)), env)
        return launch, read_inside(worktree, SERENA_PROJECT, MAX_CONFIG_BYTES) is not None, ""
    except UnreadableInside as error:
        return None, False, f"The project's Serena configuration cannot be read: {error}"


def _direct(program: str) -> Launch:
    return Launch((program, STARTS_SERVER), takes_options=True)


def _entry(servers: Mapping[str, Any], env: Mapping[str, str]) -> Launch | None:
    """Return the entry of the server called serena, otherwise the first whose name contains it."""
    names = sorted((name for name in servers if NAME in name.lower()), key=lambda name: name.lower() != NAME)
    for name in names:
        entry = _mapping(servers[name])
        command, url = entry.get("command"), entry.get("url")
        if isinstance(command, str) and command:
            given = entry.get("args")
            args = [str(arg) for arg in given] if isinstance(given, list) else []
            argv = tuple(_expand_variables(text, env) for text in (command, *args))
            return _started(argv, _pairs(entry.get("env"), env))
        if isinstance(url, str) and url and entry.get("type") != "sse":
            return Launch(url=_expand_variables(url, env), headers=_pairs(entry.get("headers"), env))
    return None


def _started(argv: tuple[str, ...], env: tuple[tuple[str, str], ...]) -> Launch:
    """Replace the options by our own, which set the interface and the project."""
    for place, word in enumerate(argv):
        if word == STARTS_SERVER or Path(word).name in SERVER_PROGRAMS:
            return Launch(argv[: place + 1], env, takes_options=True)
    return Launch(argv, env)


def _pairs(table: Any, env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), _expand_variables(str(value), env)) for name, value in _mapping(table).items())


def _expand_variables(text: str, env: Mapping[str, str]) -> str:
    """Expand ${NAME} and ${NAME:-default} as agents do."""
    # Each } closes at most one of them; searching from every ${ anew would be quadratic on hostile text.
    *closed, rest = text.split("}")
    return "".join(_closed(part, env) for part in closed) + rest


def _closed(part: str, env: Mapping[str, str]) -> str:
    match = _VARIABLE.search(part)
    return f"{part}}}" if match is None else part[: match.start()] + (env.get(match[1]) or match[2] or "")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
