"""The faults that destroy data: what may be lost is what cannot be read any more, and all of it must be named."""

from __future__ import annotations

import contextlib
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from tests.chaos.faults import BOTH, SQLITE

if TYPE_CHECKING:
    from tests.chaos.episode import Episode
    from tests.chaos.state import State

PAGE = 4096
MARK_SECONDS = 3.0
WAL_HEADER, FRAME = 32, 24 + PAGE


@dataclass(frozen=True, slots=True)
class Damage:
    """One kind of destruction, done while nothing runs, or to a daemon that does."""

    name: str
    engines: tuple[str, ...]
    destroy: Callable[[Episode, State, random.Random], None]
    killed: bool = False
    """Whether the daemon is killed before, so that the write-ahead log is still there; else it is stopped."""
    running: bool = False
    """Whether it happens under a running daemon, with clients at work before and after."""


def _flip_bits(episode: Episode, before: State, chance: random.Random) -> None:
    """Flip single bits anywhere behind the first page."""
    with episode.world.database.open("r+b") as file:
        size = file.seek(0, 2)
        for _ in range(12):
            place = chance.randrange(PAGE, size)
            file.seek(place)
            byte = file.read(1)[0] ^ (1 << chance.randrange(8))
            file.seek(place)
            file.write(bytes([byte]))
            episode.history.note(f"a bit is flipped at byte {place}")


def _flip_text(episode: Episode, before: State, chance: random.Random) -> None:
    """Flip one bit in the text of one thought: the database stays well-formed."""
    thoughts = [row["content"].encode() for row in before["thoughts"] if "#" in row["content"]]
    content = episode.world.database.read_bytes()
    chance.shuffle(thoughts)
    for text in thoughts:
        place = content.find(text[:30])
        if place >= 0 and content.count(text[:30]) == 1:
            with episode.world.database.open("r+b") as file:
                file.seek(place + 5)
                file.write(bytes([content[place + 5] ^ 1]))
            episode.history.note(f"a bit is flipped in the thought {text[:20]!r}")
            return
    raise AssertionError("no thought was found in the file")


def _overwrite_pages(episode: Episode, before: State, chance: random.Random) -> None:
    with episode.world.database.open("r+b") as file:
        pages = file.seek(0, 2) // PAGE
        for _ in range(4):
            page = chance.randrange(1, pages)
            file.seek(page * PAGE)
            file.write(chance.randbytes(PAGE) if chance.random() < 0.5 else bytes(PAGE))
            episode.history.note(f"page {page + 1} is overwritten")


def _cut_log(episode: Episode, before: State, chance: random.Random) -> None:
    log = Path(f"{episode.world.database}-wal")
    frames = _valid_frames(log.read_bytes())
    assert frames > 0, "there is no write-ahead log to cut"
    if chance.random() < 0.3:
        log.unlink()
        episode.history.note("the write-ahead log is deleted")
        return
    left = chance.randrange(frames)
    with log.open("r+b") as file:
        file.truncate(WAL_HEADER + left * FRAME)
    episode.history.note(f"{left} of {frames} frames of the write-ahead log are left")


def _valid_frames(log: bytes) -> int:
    """How many frames count; what follows them is left over from before the last checkpoint."""
    salts = log[16:24]
    places = range(WAL_HEADER, len(log) - FRAME + 1, FRAME)
    return next((number for number, at in enumerate(places) if log[at + 8 : at + 16] != salts), len(places))


def _empty_database(episode: Episode, before: State, chance: random.Random) -> None:
    episode.world.database.write_bytes(b"")
    episode.history.note("the database is emptied")


def _delete_database(episode: Episode, before: State, chance: random.Random) -> None:
    for ending in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{episode.world.database}{ending}").unlink()
    episode.history.note("the database is deleted under the running daemon")


def _delete_session(episode: Episode, before: State, chance: random.Random) -> None:
    """Remove a session with its thoughts behind Holdfast's back."""
    session = chance.choice(sorted({row["session_id"] for row in before["thoughts"]}))
    _execute(episode, [f"DELETE FROM {table} WHERE {column} = '{session}'" for table, column in _OF_A_SESSION])
    episode.history.note(f"session {session} is deleted by SQL")


def _delete_thought(episode: Episode, before: State, chance: random.Random) -> None:
    """Remove one thought behind Holdfast's back, be it the newest of its session."""
    row = chance.choice(before["thoughts"])
    _execute(episode, [f"DELETE FROM thoughts WHERE session_id = '{row['session_id']}' AND number = {row['number']}"])
    episode.history.note(f"thought {row['number']} of {row['session_id']} is deleted by SQL")


def _delete_event(episode: Episode, before: State, chance: random.Random) -> None:
    """Remove one event behind Holdfast's back; the oldest may go."""
    numbers = sorted(int(row["seq"]) for row in before["events"])
    number = chance.choice(numbers[1:])
    _execute(episode, [f"DELETE FROM events WHERE seq = {number}"])
    episode.history.note(f"event {number} is deleted by SQL")


def _execute(episode: Episode, statements: list[str]) -> None:
    if episode.world.database_url is not None:
        with psycopg.connect(episode.world.database_url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())
    else:
        reader = sqlite3.connect(episode.world.database)
        with contextlib.closing(reader), reader:
            reader.execute("DROP TRIGGER thoughts_fts_delete")  # the index needs an SQLite that has FTS5
            for statement in statements:
                reader.execute(statement)
            reader.execute(_TRIGGER)


_OF_A_SESSION = (("thoughts", "session_id"), ("branches", "session_id"), ("sessions", "id"))
_TRIGGER = (
    "CREATE TRIGGER thoughts_fts_delete AFTER DELETE ON thoughts BEGIN"
    " DELETE FROM thoughts_fts WHERE rowid = old.row_id; END"
)

DAMAGES = {
    damage.name: damage
    for damage in (
        Damage("flip-bits", SQLITE, _flip_bits),
        Damage("flip-text", SQLITE, _flip_text),
        Damage("overwrite-pages", SQLITE, _overwrite_pages),
        Damage("cut-wal", SQLITE, _cut_log, killed=True),
        Damage("empty-database", SQLITE, _empty_database),
        Damage("delete-database", SQLITE, _delete_database, running=True),
        Damage("delete-session", BOTH, _delete_session),
        Damage("delete-thought", BOTH, _delete_thought),
        Damage("delete-event", BOTH, _delete_event),
    )
}
"""Every fault that destroys data."""


def end_daemon(episode: Episode, damage: Damage) -> None:
    """End the daemon as the damage needs it."""
    if not damage.killed:
        episode.violations += episode.stopped()
        return
    # What was done in the last second may go unnoticed: the mark outside the database is written that often.
    time.sleep(MARK_SECONDS)
    episode.world.signal_daemon(signal.SIGKILL)
    episode.world.stop()
