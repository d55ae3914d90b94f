"""The store: state and event in one transaction, on SQLite or PostgreSQL.

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
"""A source of new ids; tests own theirs."""


class Tx(Protocol):
    """One transaction. Parameters are written `:name` in the SQL and passed by name."""

    engine: str
    """'sqlite' or 'postgres'."""

    def one(self, sql: str, /, **params: Any) -> Row | None:
        """The first row, or None."""
        ...

    def all(self, sql: str, /, **params: Any) -> list[Row]:
        """Every row, fetched."""
        ...

    def run(self, sql: str, /, **params: Any) -> int:
        """Execute and return how many rows it changed."""
        ...

    def now(self) -> int:
        """The only clock: milliseconds, the same throughout the transaction."""
        ...

    def new_id(self) -> str:
        """A new unique id."""
        ...

    def lock(self, name: str) -> None:
        """Hold `name` until the transaction ends, so that read-then-write of what it stands for is safe.

        SQLite has one writer and needs no lock; PostgreSQL takes an advisory one.
        """
        ...

    def emit(self, kind: str, subject: str, data: dict[str, Any] | None = None) -> None:
        """Add an event to the one ordered log; written last, in this transaction."""
        ...

    def tally(self, heads: int, sessions: int = 0) -> None:
        """Add to the sum of the sessions' heads, and to their count; written with the events (see `register`)."""
        ...


class Store(Protocol):
    """One open database, whichever engine is behind it."""

    engine: str
    ids: Ids

    @property
    def outage(self) -> Outage | None:
        """Since when the database is known not to answer; always None for an embedded one."""
        ...

    async def write(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn` in a transaction; when this returns, its effect is on disk."""
        ...

    async def read(self, fn: Callable[[Tx], T]) -> T:
        """Run `fn` on a consistent snapshot; it must not write."""
        ...

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` (from any thread) after events were committed; returns how to stop that."""
        ...

    async def close(self) -> None:
        """Finish what is queued and close."""
        ...
