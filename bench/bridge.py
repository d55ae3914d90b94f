"""The bridge's queue at the service, beside a bare queue in SQLite: nothing is acknowledged before its fsync in either.

Throughput is what the service does for several callers. It is measured with the bare queue's fsyncs, one for each call,
and as the service is: commits that wait for each other share theirs. A caller that is alone waits for two changes of
thread per call besides; that is shown too."""

from __future__ import annotations

import time
from asyncio import gather
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from unittest.mock import patch

import apsw
import uvloop

from bench.report import Effort, Progress, Row
from bench.workshop import scratch
from holdfast.bridge.model import Outcome
from holdfast.bridge.service import Bridge
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.store import sqlite
from holdfast.store.sqlite import SqliteStore
from holdfast.teams.team import Team

TARGET = 2.0
"""At least half the bare queue's throughput."""
ROUNDS = 10
TARGETS = ("t", *(f"t{number}" for number in range(7)))
CALLER = Caller(Transport.RELAY, Era.LEGACY, "agent:bench", agent_session="bench")
TEXT = "Please look at the retry path: the lock is taken twice. " * 5


class BareQueue:
    """The least a durable queue can do: a message is stored once under its id, handed out to one, and ended."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute("CREATE TABLE queue (seq INTEGER PRIMARY KEY, id UNIQUE, target, text, status, reply)")
        self._connection.execute("CREATE INDEX waiting ON queue (target, seq) WHERE status = 0")

    def send(self, message_id: str) -> None:
        """One message, one commit."""
        insert = "INSERT INTO queue (id, target, text, status) VALUES (?, 't', ?, 0) ON CONFLICT (id) DO NOTHING"
        self._connection.execute(insert, (message_id, TEXT))

    def take_and_finish(self, _id: str) -> None:
        """One message taken and ended, two commits."""
        first = "SELECT seq FROM queue WHERE target = 't' AND status = 0 ORDER BY seq LIMIT 1"
        take = f"UPDATE queue SET status = 1 WHERE seq = ({first}) RETURNING id, text"
        ((message_id, _text),) = self._connection.execute(take).fetchall()
        self._connection.execute("UPDATE queue SET status = 2, reply = 'done' WHERE id = ?", (message_id,))

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """Rounds of both in turn; the median of their ratios, for a disk has bad moments."""
    with scratch() as place:
        return uvloop.run(_measure(place, effort, progress))  # as the daemon does


async def _measure(place: Path, effort: Effort, progress: Progress) -> list[Row]:
    project = place / "project"
    project.mkdir()
    store, bare = SqliteStore.open(place / "holdfast.db"), BareQueue(place / "bare.db")
    teams = {name: Team(name, project) for name in TARGETS}
    bridge = Bridge(store, lambda: teams)
    size = max(10, effort.calls // 5)
    spent: dict[tuple[str, str], list[float]] = {}

    async def timed(who: str, what: str, work: Awaitable[object]) -> None:
        began = time.perf_counter()
        await work
        spent.setdefault((who, what), []).append(time.perf_counter() - began)

    async def by_many(who: str, ids: list[str]) -> None:
        share = [(name, ids[index :: len(TARGETS)]) for index, name in enumerate(TARGETS)]
        await timed(who, "send", gather(*(_send(bridge, name, some) for name, some in share)))
        each = (_take_and_finish(bridge, name, len(some)) for name, some in share)
        await timed(who, "take and finish", gather(*each))

    try:
        for number in range(ROUNDS):
            ids = [f"{number}-{index}" for index in range(size)]
            await timed("ours", "send", _send(bridge, "t", ids))
            await timed("bare", "send", _each(ids, bare.send))
            await timed("ours", "take and finish", _take_and_finish(bridge, "t", size))
            await timed("bare", "take and finish", _each(ids, bare.take_and_finish))
            again = [f"again-{one}" for one in ids]
            await by_many("many", again)
            with patch.object(sqlite, "GROUP_LIMIT", 1):
                await by_many("same fsyncs", [f"alone-{one}" for one in ids])
            progress("queue", number + 1, ROUNDS)
    finally:
        await store.close()
        bare.close()
    rows, count = [], ROUNDS * size
    for what in ("send", "take and finish"):
        theirs = spent["bare", what]
        for who, how, target in (
            ("same fsyncs", "by 8 callers with as many fsyncs", TARGET),
            ("many", "by 8 callers", TARGET),
            ("ours", "by one caller", None),
        ):
            ours = spent[who, what]
            rows.append(
                Row(
                    f"bridge: {what}, {count} {how}, seconds per bare queue's",
                    f"{count / sum(ours):.0f}/s",
                    f"{count / sum(theirs):.0f}/s (bare apsw queue, one commit each)",
                    value=median(mine / its for mine, its in zip(ours, theirs, strict=True)),
                    target=target,
                )
            )
    return rows


async def _send(bridge: Bridge, target: str, ids: list[str]) -> None:
    for message_id in ids:
        await bridge.send(target, TEXT, message_id=message_id)


async def _take_and_finish(bridge: Bridge, target: str, times: int) -> None:
    for _ in range(times):
        taken = await bridge.take(CALLER, target)
        assert taken.message is not None
        await bridge.finish(CALLER, taken.message.id, Outcome.DONE, "done")


async def _each(ids: list[str], step: Callable[[str], None]) -> None:
    for message_id in ids:
        step(message_id)
