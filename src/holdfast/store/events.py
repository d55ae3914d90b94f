"""The ordered event log: numbered from one locked row, so a reader with a cursor never skips a late commit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import field
from functools import partial
from itertools import takewhile
from typing import Any

from holdfast.lazy_dataclass import dataclass
from holdfast.store import Row, Store, Tx
from holdfast.store.register import MODULUS
from holdfast.store.wakeups import Wakeups

READ_AT_ONCE = 500
TRIMMED_AT_ONCE = 1_000
ANSWER_FIRST_SECONDS = 0.005
"""How long followers let the one who wrote be answered: a read beside it takes the interpreter away from it."""
POLL_SECONDS = 15.0
"""How often a waiting reader polls, in case a wake-up is lost."""

to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Compact JSON; `json.dumps` would create an encoder on every call."""


@dataclass(frozen=True, slots=True)
class Event:
    """One change, numbered in commit order."""

    seq: int
    at: int
    kind: str
    subject: str
    data: dict[str, Any]


@dataclass(slots=True)
class Outbox:
    """What a transaction writes last: its events, and its changes to the sum and count of session heads."""

    pending: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    heads: int = 0
    sessions: int = 0

    def __bool__(self) -> bool:
        return bool(self.pending or self.heads or self.sessions)

    def tally(self, heads: int, sessions: int) -> None:
        """Add to the sum and the count."""
        self.heads = (self.heads + heads) % MODULUS
        self.sessions += sessions


def append(tx: Tx, outbox: Outbox) -> None:
    """Write the buffered events as the last statements of a transaction, because they lock the counter."""
    pending = outbox.pending
    if outbox.heads or outbox.sessions:
        found = tx.run(
            "UPDATE event_head SET seq = seq + :n, sessions = sessions + :sessions,"
            " heads_sum = (heads_sum + :heads) % :modulus WHERE id = 1",
            n=len(pending),
            sessions=outbox.sessions,
            heads=outbox.heads,
            modulus=MODULUS,
        )
    else:
        found = tx.run("UPDATE event_head SET seq = seq + :n WHERE id = 1", n=len(pending))
    if not found:
        raise RuntimeError("the event counter is missing; the schema was not created")
    at = tx.now()
    for place, (kind, subject, data) in enumerate(pending, start=1 - len(pending)):
        tx.run(
            "INSERT INTO events (seq, at, kind, subject, data) VALUES"
            " ((SELECT seq FROM event_head WHERE id = 1) + :place, :at, :kind, :subject, :data)",
            place=place,
            at=at,
            kind=kind,
            subject=subject,
            data=to_json(data),
        )


def trim(tx: Tx, keep_ms: int) -> int:
    """Delete a batch of old events and return how many; from the front, as a gap means a loss. The newest stays."""
    oldest = tx.all("SELECT seq, at FROM events ORDER BY seq LIMIT :limit", limit=TRIMMED_AT_ONCE)
    old = list(takewhile(lambda row: row["at"] < tx.now() - keep_ms, oldest))
    if not old:
        return 0
    return tx.run("DELETE FROM events WHERE seq <= :last", last=min(old[-1]["seq"], head(tx) - 1))


def head(tx: Tx) -> int:
    """Return the number of the newest event."""
    row = tx.one("SELECT seq FROM event_head WHERE id = 1")
    return int(row["seq"]) if row else 0


def after(tx: Tx, seq: int, limit: int = READ_AT_ONCE) -> list[Event]:
    """Return the events after `seq`, oldest first."""
    rows = tx.all(
        "SELECT seq, at, kind, subject, data FROM events WHERE seq > :seq ORDER BY seq LIMIT :limit",
        seq=seq,
        limit=limit,
    )
    return [_event(row) for row in rows]


def _event(row: Row) -> Event:
    return Event(row["seq"], row["at"], row["kind"], row["subject"], json.loads(row["data"]))


async def follow(store: Store, since: int) -> AsyncIterator[list[Event]]:
    """Yield batches of events after `since`, forever; waits for new ones without busy polling."""
    with Wakeups(store) as news:
        while True:
            news.clear()
            batch = await store.read(partial(after, seq=since))
            if batch:
                since = batch[-1].seq
                yield batch
            if len(batch) < READ_AT_ONCE:
                await news.wait(POLL_SECONDS)
                await asyncio.sleep(ANSWER_FIRST_SECONDS)
