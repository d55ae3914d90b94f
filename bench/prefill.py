"""Large stores to measure with, built once through the product's own recording and kept in `.bench`.

Many thoughts share a transaction here; that is the only difference from a store that agents filled.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.report import Progress
from bench.thoughts import wording
from bench.workshop import WORKSHOP, scratch
from holdfast.identity.project import Root, RootSource, locate
from holdfast.reasoning import recording
from holdfast.reasoning.model import Draft, Session
from holdfast.reasoning.queries import sessions as queries
from holdfast.store import Store, Tx, migrations
from holdfast.store.sqlite import SqliteStore

PROJECT = WORKSHOP / "project"
"""The directory that all prefilled sessions belong to; a relay started there finds them."""

BATCH = 1_000
"""Thoughts per transaction."""

FRESH_SECONDS = 30 * 24 * 3600
"""An older store is built again: sessions that lie untouched for months archive themselves."""


def store_with(sessions: int, thoughts: int, progress: Progress) -> Path:
    """A store with this many sessions of this many thoughts, all of one project: the hardest case for recovery."""
    PROJECT.mkdir(parents=True, exist_ok=True)
    root = locate(str(PROJECT), RootSource.DIRECTORY)
    database = WORKSHOP / f"{sessions}x{thoughts}-{fingerprint(root)}.db"
    if database.exists() and time.time() - database.stat().st_mtime < FRESH_SECONDS:
        return database
    for stale in WORKSHOP.glob(f"{sessions}x{thoughts}-*.db"):
        stale.unlink()
    with scratch() as place:
        unfinished = place / "holdfast.db"
        asyncio.run(_fill(unfinished, root, sessions, thoughts, progress))
        unfinished.rename(database)
    return database


def copy_into(home: Path, database: Path) -> None:
    """Give a new data directory this store."""
    home.mkdir(parents=True, mode=0o700)
    shutil.copyfile(database, home / "holdfast.db")


async def _fill(path: Path, root: Root, sessions: int, thoughts: int, progress: Progress) -> None:
    store = SqliteStore.open(path)
    try:
        await add_sessions(store, root, sessions, thoughts, progress)
    finally:
        await store.close()


Place = Callable[[int], dict[str, Any]]
"""Where a thought with this number stands: the fields of its draft that say so."""


async def add_sessions(
    store: Store, root: Root, sessions: int, thoughts: int, progress: Progress, place: Place = lambda _: {}
) -> str:
    """Record so many sessions of so many thoughts; the id of the last one."""
    total = sessions * thoughts
    session: Session | None = None
    for first in range(0, total, BATCH):
        numbers = range(first, min(first + BATCH, total))
        record = partial(_record, root=root, session=session, numbers=numbers, per=thoughts, place=place)
        session = await store.write(record)
        progress(f"recording {sessions} x {thoughts} thoughts", numbers.stop, total)
    return session.id if session is not None else ""


def _record(tx: Tx, *, root: Root, session: Session | None, numbers: range, per: int, place: Place) -> Session | None:
    """Record these thoughts of the whole store, `per` to a session; the session that the last one went to."""
    for number in numbers:
        if session is None or number % per == 0:
            session = recording.create_session(tx, root, f"Session {number // per}")
        own = number % per + 1
        recording.record(tx, session, Draft(wording(own), next_needed=True, **place(own)), None)
        session = queries.session(tx, session.id)
    return session


def fingerprint(root: Root) -> str:
    """What the kept file depends on: the schema, and where the project lies."""
    parts = [root.uri, *(migration.scripts["sqlite"] for migration in migrations.load())]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
