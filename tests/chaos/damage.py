"""Loss: what a damaged store had, what of it could still be read, what is left, and what of it is named."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.state import State
from tests.chaos.violation import Violation

IDENTITIES: dict[str, tuple[tuple[str, ...], str]] = {
    "sessions": (("id",), "id"),
    "thoughts": (("session_id", "number"), "content"),
    "bridge_messages": (("id", "target"), "text"),
    "bridge_updates": (("target", "seq"), "content"),
    "asks": (("id",), "text"),
    "conversations": (("id",), "thread"),
    "notices": (("id",), "text"),
    "protocol_runs": (("id", "root"), "objective"),
    "protocol_evidence": (("row_id",), "subject"),
    "bridge_tasks": (("target",), "target"),
    "branches": (("session_id", "branch_id"), "branch_id"),
    "projects": (("root_uri",), "root_uri"),
    "connections": (("id",), "id"),
    "events": (("seq",), "seq"),
}
"""What makes a row the same row, and which of its columns never changes."""

WHOLE = (
    "is empty",
    "the whole",
    "everything",
    "could not be read",
    "cannot be read",
    "is gone",
    "was deleted",
    "was replaced",
)
"""Words that name the loss of all there was."""
NEWEST = "the newest changes"
"""What names the end of the event log, and with it all that those events tell of."""
WORDS = {
    "sessions": (),
    "thoughts": (),
    "bridge_messages": ("message",),
    "bridge_updates": ("update",),
    "asks": ("ask",),
    "conversations": ("conversation",),
    "notices": ("notice",),
    "protocol_runs": ("run",),
    "protocol_evidence": ("evidence",),
    "bridge_tasks": ("task",),
    "branches": ("branch",),
    "projects": ("project",),
    "connections": ("connection",),
    "events": ("event",),
}
"""What people call the rows of a table; sessions are named by their id, and thoughts by their session's."""

CHAINED = ("thoughts",)
"""Tables whose rows carry a hash of what is in them."""

Key = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Told:
    """What a command said."""

    status: int
    text: str

    @staticmethod
    def by(done: subprocess.CompletedProcess[str]) -> Told:
        """What it wrote, wherever."""
        return Told(done.returncode, done.stdout + done.stderr)


def rows_of(state: State) -> dict[Key, str]:
    """Every row that must not be lost, with what must not change in it."""
    return {
        (table, tuple(row[name] for name in key)): str(row[fixed])
        for table, (key, fixed) in IDENTITIES.items()
        for row in state[table]
    }


def lost_rows(before: State, after: State) -> list[Key]:
    """The rows that are gone, and the thoughts that were changed: nothing else is promised to be known by its hash."""
    left = rows_of(after)
    return [
        key for key, value in rows_of(before).items() if key not in left or (key[0] in CHAINED and left[key] != value)
    ]


def readable_rows(copy: Path, before: State) -> set[Key]:
    """The rows that SQLite itself can still read from a damaged file, one by one, through any index."""
    found: set[Key] = set()
    reader = sqlite3.connect(copy)
    try:
        for (table, key), value in rows_of(before).items():
            names, fixed = IDENTITIES[table]
            where = " AND ".join(f"{name} = ?" for name in names)
            try:
                row = reader.execute(f"SELECT {fixed} FROM {table} WHERE {where}", key).fetchone()
            except (sqlite3.DatabaseError, OverflowError):
                continue
            if row is not None and str(row[0]) == value:
                found.add((table, key))
    finally:
        reader.close()
    return found


def check_loss(lost: list[Key], readable: set[Key], verified: list[Told]) -> Iterator[Violation]:
    """Whatever is lost is named and fails `verify`; whatever could be read is not lost."""
    dropped = [key for key in lost if key in readable]
    if dropped:
        yield Violation(
            "salvage-dropped", f"{len(dropped)} of {len(lost)} lost rows could be read: {_some(dropped)}", []
        )
    for told in verified:
        if lost and (told.status == 0 or "Nothing was lost or changed" in told.text):
            text = (
                f"{len(lost)} rows are lost ({_some(lost)}), `verify` exits {told.status} and says: {told.text[-300:]}"
            )
            yield Violation("loss-hidden", text, [])
        elif unnamed := [key for key in lost if not is_named(key, told.text)]:
            text = (
                f"{len(unnamed)} of {len(lost)} lost rows are not named: {_some(unnamed)}; `verify`: {told.text[-300:]}"
            )
            yield Violation("loss-unnamed", text, [])


def is_named(key: Key, text: str) -> bool:
    """Whether a report speaks of a row: by an id, by its table, by what people call it, or as a part of everything."""
    table, identity = key
    low = text.lower()
    named = any(str(part).lower() in low for part in identity if isinstance(part, str) and len(part) > 3)
    words = (*((table, *WORDS[table], NEWEST) if WORDS[table] else ()), *WHOLE)
    return named or any(word in low for word in words)


def check_tracebacks(said: dict[str, Told]) -> Iterator[Violation]:
    """No command ends in a traceback, whatever the disk does."""
    for command, told in said.items():
        if "Traceback (most recent call last)" in told.text:
            yield Violation("traceback", f"`holdfast {command}` ended with {told.text[-400:]}", [])


def _some(keys: list[Key]) -> str:
    shown = [f"{table} {'/'.join(map(str, identity))}" for table, identity in keys[:3]]
    return ", ".join(shown) + (" …" if len(keys) > 3 else "")
