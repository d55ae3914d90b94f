"""The files in which an agent without hooks says which session it is in, and what it is working on.

Another program writes them, at any time and not in one step. What cannot be read now says nothing: that a file is
missing, cut off or no file at all is never a sign that its agent is gone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from holdfast.bridge.model import MAX_ID, MAX_PENDING_IDS, MAX_TASK_FIELD, Work
from holdfast.files import open_regular
from holdfast.lazy_dataclass import dataclass
from holdfast.text import bounded_json

MAX_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class SessionFile:
    id: str
    started_at: str | None = None
    """As written in the file."""
    chat_id: str | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    content: bytes
    at: int
    """Milliseconds since the epoch."""


def read_small(path: Path) -> Written | None:
    """Read a regular file of at most MAX_BYTES; None for anything else, or if it cannot be read now."""
    try:
        # A link could lead anywhere.
        with open_regular(path, follow=False) as file:
            content, at = file.read(MAX_BYTES + 1), os.fstat(file.fileno()).st_mtime_ns // 1_000_000
    except OSError:
        return None
    return Written(content, at) if len(content) <= MAX_BYTES else None


def session_in(content: bytes) -> SessionFile | None:
    """Read the session that a file names as `id` or `session_id`."""
    said = _members(content)
    found = _id(said.get("id")) or _id(said.get("session_id"))
    if found is None:
        return None
    return SessionFile(
        found, _text(said.get("started_at")), _id(_number_as_text(said.get("chat_id"))), _text(said.get("project"))
    )


def state_in(content: bytes) -> Work | None:
    """Read the task that a file names, if any."""
    said = _members(content)
    task = _text(said.get("current_task"))
    if task is None:
        return None
    pending = said.get("pending_messages")
    listed = (_id(one) for one in pending[:MAX_PENDING_IDS]) if isinstance(pending, list) else ()
    return Work(
        current_task=task,
        session_id=_id(said.get("session_id")),
        current_task_id=_id(said.get("current_task_id")),
        last_completed_step=_text(_number_as_text(said.get("last_completed_step"))),
        pending_messages=tuple(one for one in listed if one is not None),
    )


def _members(content: bytes) -> dict[str, Any]:
    try:
        said = bounded_json.loads(content)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _id(value: object) -> str | None:
    fits = isinstance(value, str) and 0 < len(value) <= MAX_ID and value.isprintable() and " " not in value
    return str(value) if fits else None


def _number_as_text(value: object) -> object:
    """Some write a chat's id and a step as a number, others as text."""
    is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18
    return str(value) if is_number else value


def _text(value: object) -> str | None:
    """Clean a text so that it can be stored and shown; cut if it is too long."""
    if not isinstance(value, str):
        return None
    plain = "".join(char if char.isprintable() or char in "\n\t" else " " for char in value[:MAX_TASK_FIELD]).strip()
    return plain or None
