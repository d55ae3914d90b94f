"""High-water mark: what this daemon last saw in the store, kept outside it.

A database that lost all of its newest changes (a truncated log, an older copy in its place) looks intact from inside.
So once a second, and at every stop, the number of the newest event is written beside it, with the id, thought count and
head of each session that changed. It is not written with each call, so a loss within that second can go unnoticed.

One line of JSON is appended each time; the file is rewritten when it grows too large. A truncated line is skipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.files import append_line, write_private
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Row, Store, Tx

if TYPE_CHECKING:
    from holdfast.store.verify import Problem

# ruff: noqa: S608 - parameter and column names are constants of this program

NAME = "high-water"
MAX_SESSIONS = 10_000
"""How many sessions a mark remembers: the most recent ones."""
MAX_FILE_BYTES = 4 * 1024 * 1024
TAIL_BYTES = (4 * 1024, 2 * MAX_FILE_BYTES)
"""How much of the file's end is read to find its last line; the smaller is usually enough."""
BATCH_SIZE = 500

Head = tuple[int, str]
"""Number of thoughts in a session, and the hash of the newest."""


@dataclass(slots=True)
class Mark:
    """Last known state of a store."""

    epoch: str = ""
    seq: int = 0
    sessions: dict[str, Head] = field(default_factory=dict)

    def follow(self, later: Mark) -> None:
        """Merge a later line of the same file."""
        if later.epoch != self.epoch:
            self.sessions.clear()
        self.epoch, self.seq = later.epoch, later.seq
        for session_id, head in later.sessions.items():
            self.sessions.pop(session_id, None)  # keeps the most recent at the end
            self.sessions[session_id] = head
        while len(self.sessions) > MAX_SESSIONS:
            del self.sessions[next(iter(self.sessions))]


class HighWater:
    """The mark of one store, kept by one daemon."""

    def __init__(self, home: Path, store: Store) -> None:
        self._home = home
        self._store = store
        self._written: Mark | None = None
        """The last line written, without its sessions."""

    async def lost(self) -> list[str]:
        """Return what the mark remembers and the store has lost. Cheap when nothing is missing."""
        here = await self._store.read(_position)
        path = self._path(here.epoch)
        last = _last_line(path)
        if last is None or (last.epoch == here.epoch and last.seq <= here.seq):
            return []
        mark = read_mark(path)
        return await self._store.read(lambda tx: list(missing(tx, mark)))

    async def note(self) -> None:
        """Append what changed since the last time, if anything."""
        written = self._written or await self._known()
        mark = await self._store.read(lambda tx: _changed_since(tx, written))
        if (mark.epoch, mark.seq) != (written.epoch, written.seq):
            path = self._path(mark.epoch)
            append_line(path, _line(mark))
            if path.stat().st_size > MAX_FILE_BYTES:
                _rewrite(path, read_mark(path))
        self._written = Mark(mark.epoch, mark.seq)

    async def reset(self) -> None:
        """Make the current state of the store the new mark."""
        mark = await self._store.read(lambda tx: _changed_since(tx, Mark()))
        _rewrite(self._path(mark.epoch), mark)
        self._written = Mark(mark.epoch, mark.seq)

    def check(self, tx: Tx) -> Iterator[Problem]:
        """Check everything that the mark remembers, for `verify`."""
        from holdfast.store.verify import Problem

        here = _position(tx)
        for line in missing(tx, read_mark(self._path(here.epoch))):
            yield Problem(NAME, line)

    async def _known(self) -> Mark:
        here = await self._store.read(_position)
        last = _last_line(self._path(here.epoch))
        return last if last is not None and last.epoch == here.epoch else Mark()

    def _path(self, epoch: str) -> Path:
        return mark_path(self._home, self._store.engine, epoch)


def mark_path(home: Path, engine: str, epoch: str) -> Path:
    """Return the path of the mark. There is one embedded store per data directory, but there may be several servers."""
    return home / (f"{NAME}.jsonl" if engine == "sqlite" else f"{NAME}-{epoch}.jsonl")


def read_mark(path: Path) -> Mark:
    """Read the whole file into one mark."""
    mark = Mark()
    try:
        with path.open("rb") as file:
            for text in file:
                line = _parse(text)
                if line is not None:
                    mark.follow(line)
    except FileNotFoundError:
        pass
    return mark


def missing(tx: Tx, mark: Mark) -> Iterator[str]:
    """Yield what the mark knows and the store does not have."""
    here = _position(tx)
    if mark.epoch and here.epoch != mark.epoch:
        yield f"the store that was here before, up to its event {mark.seq}; another one is in its place"
    elif here.seq < mark.seq:
        yield f"the newest changes, events {here.seq + 1} to {mark.seq}"
    for batch in _batches(list(mark.sessions)):
        rows = {row["id"]: row for row in _sessions(tx, batch)}
        forgotten = {row["id"] for row in _register_rows(tx, batch) if row["gone"]}
        for session_id in batch:
            if session_id not in forgotten:
                text = _session_loss(tx, rows.get(session_id), session_id, *mark.sessions[session_id])
                if text is not None:
                    yield f"session {session_id}: {text}"


def _session_loss(tx: Tx, row: Row | None, session_id: str, count: int, head: str) -> str | None:
    if row is None:
        return f"missing; it had {count} thoughts" if count != 1 else "missing; it had one thought"
    if row["damage"]:  # its losses are already recorded in it
        return None
    if row["thought_count"] < count:
        return f"thoughts {row['thought_count'] + 1} to {count} are missing"
    if row["thought_count"] == count:
        return None if row["head_hash"] == head else "its newest thought is not the one that was there"
    newest = tx.one(
        "SELECT hash FROM thoughts WHERE session_id = :id AND number = :number", id=session_id, number=count
    )
    return (
        None if count == 0 or (newest and newest["hash"] == head) else f"thought {count} is not the one that was there"
    )


def _position(tx: Tx) -> Mark:
    row = tx.one("SELECT epoch, seq FROM event_head WHERE id = 1")
    return Mark(row["epoch"], row["seq"]) if row else Mark()


def _changed_since(tx: Tx, before: Mark) -> Mark:
    """Return the store's position and the sessions that changed; all sessions if the previous epoch differs."""
    here = _position(tx)
    if (here.epoch, here.seq) == (before.epoch, before.seq):
        return here
    if here.epoch != before.epoch:
        rows = tx.all(f"{_SESSIONS} ORDER BY updated_at DESC LIMIT :limit", limit=MAX_SESSIONS)[::-1]
    else:
        # An expression, and not in the order of subjects: else SQLite goes through the events of all sessions.
        changed = tx.all(
            "SELECT DISTINCT subject || '' AS subject FROM events WHERE seq > :seq AND kind LIKE 'reasoning.%'",
            seq=before.seq,
        )
        rows = [row for ids in _batches(sorted(row["subject"] for row in changed)) for row in _sessions(tx, ids)]
        rows += tx.all(
            f"{_SESSIONS} WHERE root_uri IN (SELECT subject FROM events WHERE seq > :seq AND kind = 'archive.adopted')",
            seq=before.seq,
        )
    here.sessions = {row["id"]: (row["thought_count"], row["head_hash"]) for row in rows}
    return here


_SESSIONS = "SELECT id, thought_count, head_hash, damage FROM sessions"


def _sessions(tx: Tx, ids: list[str]) -> list[Row]:
    names = {f"id{number}": session_id for number, session_id in enumerate(ids)}
    return tx.all(f"{_SESSIONS} WHERE id IN ({', '.join(f':{name}' for name in names)})", **names)


def _register_rows(tx: Tx, ids: list[str]) -> list[Row]:
    names = {f"id{number}": session_id for number, session_id in enumerate(ids)}
    marks = ", ".join(f":{name}" for name in names)
    return tx.all(f"SELECT id, gone FROM session_register WHERE id IN ({marks})", **names)


def _batches(ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), BATCH_SIZE):
        yield ids[start : start + BATCH_SIZE]


# -- the file ---------------------------------------------------------------------------------------------------------


def _line(mark: Mark) -> bytes:
    return json.dumps([mark.epoch, mark.seq, mark.sessions], separators=(",", ":")).encode()


def _parse(line: bytes) -> Mark | None:
    try:
        epoch, seq, sessions = json.loads(line)
        return Mark(str(epoch), int(seq), {str(name): (int(n), str(head)) for name, (n, head) in sessions.items()})
    except (ValueError, TypeError, AttributeError):
        return None


def _last_line(path: Path) -> Mark | None:
    try:
        with path.open("rb") as file:
            for tail in TAIL_BYTES:
                file.seek(max(0, os.fstat(file.fileno()).st_size - tail))
                for line in reversed(file.read().split(b"\n")):
                    if (mark := _parse(line)) is not None:
                        return mark
    except FileNotFoundError:
        pass
    return None


def _rewrite(path: Path, mark: Mark) -> None:
    write_private(path, _line(mark) + b"\n")
