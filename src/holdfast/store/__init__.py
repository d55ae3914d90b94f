"""The store: state and events written in one transaction, on SQLite or PostgreSQL.

`await store.write(fn)` and `await store.read(fn)` run `fn(tx)`, a plain function. It may run more than once (PostgreSQL
repeats it after a deadlock), so it has no side effect but its SQL and its `emit`s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from holdfast.store.outage import Outage

T = TypeVar("T")

Row = dict[str, Any]
"""One fetched row, by column name."""

Clock = Callable[[], int]
"""Milliseconds since the epoch, UTC."""

Ids = Callable[[], str]
"""Source of new ids; tests supply their own."""


class Tx(Protocol):
    """One transaction. Parameters are written `:name` in the SQL and passed by name."""

    engine: str
    """'sqlite' or 'postgres'."""

    def one(self, sql: str, /, **params: Any) -> Row | None:
        """Return the first row, or None."""
        ...

    def all(self, sql: str, /, **params: Any) -> list[Row]:
        """Return every row, already fetched."""
        ...

    def run(self, sql: str, /, **params: Any) -> int:
        """Execute and return how many rows it changed."""
        ...

    def now(self) -> int:
        """Return the transaction's time in milliseconds: the only clock, and constant throughout the transaction."""
        ...

    def new_id(self) -> str:
        """Return a new unique id."""
        ...

    def lock(self, name: str) -> None:
        """Hold the lock `name` until the transaction ends, so that reading and then writing what it guards is safe.

        SQLite has one writer and needs no lock; PostgreSQL takes an advisory lock.
        """
        ...

    def emit(self, kind: str, subject: str, data: dict[str, Any] | None = None) -> None:
        """Add an event to the ordered log; it is written at the end of this transaction."""
        ...

    def tally(self, heads: int, sessions: int = 0) -> None:
        """Add to the sum of session heads and to the session count; written with the events (see `register`)."""
        ...


def ping(tx: Tx) -> None:
    """Run a trivial query to check that the database answers."""
    tx.one("SELECT 1 AS one")


class Store(Protocol):
    """One open database, whichever engine is behind it."""

    engine: str
    ids: Ids

    @property
    def outage(self) -> Outage | None:
        """The current outage, or None while the database answers; always None for SQLite."""
        ...

    async def write(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn` in a transaction; when this returns, its effect is on disk."""
        ...

    async def read(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn` on a consistent snapshot; it must not write."""
        ...

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` (from any thread) whenever events are committed; returns a function that stops it."""
        ...

    async def close(self) -> None:
        """Finish the queued work and close."""
        ...
