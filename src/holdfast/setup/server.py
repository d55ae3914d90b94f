"""The MCP server entry for Holdfast: for this machine, or for a file shared between machines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from holdfast.errors import Conflict
from holdfast.lazy_dataclass import dataclass
from holdfast.setup.launcher import launcher_path

NAME = "holdfast"
"""The server's name in every agent; tools and permission rules are named after it."""

HOME = "HOLDFAST_HOME"

_OURS = re.compile(r"\bholdfast(?:/__main__\.py)?['\"]? mcp\b")
# As hooks do: nothing is run that belongs to somebody else.
_LAUNCH = ("sh", "-c", '[ -O "$0" ] && . "$0"')

# An agent complains about a server that exits at once. Without Holdfast, this one answers the handshake, offers no
# tools and refuses everything else. Its variable has no braces, because agents expand ${…} themselves.
_ID = r'.*"id": *\([^,}]*\).*'
_HELLO = (
    r'{"jsonrpc":"2.0","id":\1,"result":{"protocolVersion":"2025-06-18","capabilities":{},'
    r'"serverInfo":{"name":"holdfast","version":"0"}}}'
)
_REFUSAL = r'{"jsonrpc":"2.0","id":\1,"error":{"code":-32601,"message":"Holdfast is not installed here"}}'
_PORTABLE = (
    "command -v holdfast >/dev/null 2>&1 && exec holdfast mcp; while read -r message; do"
    rf""" printf '%s\n' "$message" | sed -n '/"method": *"initialize"/{{s/{_ID}/{_HELLO}/p;d;}};"""
    f""" /"method"/s/{_ID}/{_REFUSAL}/p'; done"""
)


@dataclass(frozen=True, slots=True)
class Server:
    """A stdio MCP server as an agent's settings name it."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    def entry(self, *, kind: str | None = "stdio") -> dict[str, Any]:
        """Return the entry in the form of most agents."""
        typed = {} if kind is None else {"type": kind}
        return {
            **typed,
            "command": self.command,
            "args": list(self.args),
            **({"env": dict(self.env)} if self.env else {}),
        }


def of_this_machine(home: str | None) -> Server:
    """Return this installation of Holdfast, whatever is on PATH, with the data directory if not the default."""
    launcher = launcher_path(None if home is None else Path(home))
    command, *args = (*_LAUNCH, str(launcher), "mcp")
    return Server(command, tuple(args), {} if home is None else {HOME: home})


def launcher_of(command: Sequence[str]) -> Path | None:
    """Return the launcher that a server's command names; None if it names none."""
    *launch, path, word = command if len(command) == len(_LAUNCH) + 2 else ("", "")
    return Path(path) if tuple(launch) == _LAUNCH and word == "mcp" else None


def of_any_machine() -> Server:
    """Return the Holdfast on PATH; without one, a server without tools, so that no agent complains."""
    return Server("sh", ("-c", _PORTABLE))


def is_ours(entry: object) -> bool:
    """Return whether an entry starts Holdfast."""
    if not isinstance(entry, Mapping):
        return False
    command, args = entry.get("command"), entry.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [])]
    texts = [str(word) for word in words]
    return launcher_of(texts) is not None or _OURS.search(" ".join(texts)) is not None


def not_ours() -> Conflict:
    """Return the error for a server that only shares our name and must not be replaced."""
    return Conflict(
        f"There is already a server `{NAME}`, which `holdfast setup` did not create.",
        recovery="Rename or remove it, and run this again.",
    )


def kept(old: object, new: dict[str, Any], env: str = "env") -> dict[str, Any]:
    """Return the new entry, keeping what its owner added to the old one: a timeout, a variable."""
    if not isinstance(old, Mapping):
        return new
    variables = old.get(env)
    theirs = {k: v for k, v in variables.items() if k != HOME} if isinstance(variables, Mapping) else {}
    merged = {**old, **new}
    merged.pop(env, None)
    together = {**theirs, **new.get(env, {})}
    return {**merged, **({env: together} if together else {})}
