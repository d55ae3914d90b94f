"""Which files of a worktree a tool's payload shows to have been read."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TypeGuard

from holdfast.agents.hook_events import ShownFile, ToolKind, ToolUse
from holdfast.files.inside import UnreadableInside, read_inside

MAX_FILE_BYTES = 16 * 1024 * 1024
ENOUGH_LINES = 200
"""A long file is read in pieces; a beginning of this length counts as read, a line picked out of it does not."""
MEMORIES = ".serena/memories"

_SERENA = re.compile(r"(?=\w*?serena)\w*", re.IGNORECASE)
"""Names that agents may have for Serena's server."""
_PLAIN = re.compile(r"cat(?: (?!-)[\w./@+-]+)+")
"""A command without anything that a shell would expand, redirect or join."""
MAX_COMMAND = 4096


def readings(tool: ToolUse, worktree: Path, cwd: str) -> list[tuple[str, str]]:
    """Return the files of the worktree that a successful call of a tool has read, each with the sha256 of its content.

    A link is both itself and what it leads to.
    """
    arguments = tool.arguments or {}
    if tool.kind is ToolKind.READ:
        shown = tool.shown
        names = _names(shown.path, worktree) if shown and is_path(shown.path) and _from_the_beginning(shown) else []
    elif tool.server_tool.lower() == "read_memory" and _SERENA.fullmatch(tool.server):
        memory = arguments.get("memory_name", arguments.get("memory_file_name"))
        names = [f"{MEMORIES}/{memory.removesuffix('.md')}.md"] if isinstance(memory, str) else []
    elif tool.server_tool.lower() == "read_file" and _SERENA.fullmatch(tool.server):
        path, part = arguments.get("relative_path"), (arguments.get("start_line") or 0, arguments.get("end_line"))
        whole = f"{worktree}/{path}"
        names = _names(whole, worktree) if isinstance(path, str) and part == (0, None) and is_path(whole) else []
    elif tool.kind is ToolKind.RUN and tool.command is not None:
        names = [name for path in _printed(tool.command) for name in _names(str(Path(cwd) / path), worktree)]
    else:
        return []
    return [(name, digest) for name in names if (digest := _digest(worktree, name))]


def _printed(command: str) -> list[str]:
    """Return the files that a plain `cat FILE …` prints whole; anything that a shell would do more is not plain."""
    plain = len(command) <= MAX_COMMAND and _PLAIN.fullmatch(command) is not None
    return command.split()[1:] if plain else []


def is_path(text: object) -> TypeGuard[str]:
    """Return whether a text from outside can be an absolute path at all."""
    try:
        return isinstance(text, str) and text.startswith("/") and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _from_the_beginning(file: ShownFile) -> bool:
    if file.lines is None:
        return True
    first, shown, total = file.lines
    return first <= 1 and shown >= min(total, ENOUGH_LINES)


def _names(path: str, worktree: Path) -> list[str]:
    """Return a path's names within the worktree: as it was given, and with links resolved."""
    given, real = Path(os.path.normpath(path)), Path(os.path.realpath(path))
    top = next((folder for folder in given.parents if os.path.realpath(folder) == str(worktree)), None)
    names = [given.relative_to(top).as_posix()] if top is not None else []
    if real.is_relative_to(worktree):
        names.append(real.relative_to(worktree).as_posix())
    return list(dict.fromkeys(names))


def _digest(worktree: Path, name: str) -> str | None:
    try:
        content = read_inside(worktree, name, MAX_FILE_BYTES)
    except UnreadableInside:
        return None
    return None if content is None else hashlib.sha256(content).hexdigest()
