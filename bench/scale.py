"""What grows: a session of 100,000 thoughts, and a store of 10,000 sessions."""

from __future__ import annotations

import statistics
from typing import Any

from bench.prefill import PROJECT, copy_into, store_with
from bench.report import Effort, Progress, Row, compare, milliseconds
from bench.served import RELAY, DaemonFailed, Served
from bench.stdio import StdioServer
from bench.thoughts import WARM_UP, thought
from bench.workshop import scratch

LONG_TARGET = 1.2
LOAD_TARGET_MS = 10.0
START_TARGET = 1.3
THOUGHTS_PER_SESSION = 50


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """The end of a long session, recovery in a large store, and the daemon's start with it."""
    return [_long_session(effort, progress), *_large_store(effort, progress)]


def _long_session(effort: Effort, progress: Progress) -> Row:
    """The first thoughts of a new session and the last of a long one, in turn, each in a store of its own."""
    last_ones = effort.edge + WARM_UP
    prefilled = store_with(1, effort.length - last_ones, progress)
    first: list[float] = []
    last: list[float] = []
    with scratch() as place:
        copy_into(place / "long", prefilled)
        with (
            Served(place / "new") as new,
            Served(place / "long") as long,
            StdioServer(RELAY, new.env, PROJECT) as beginner,
            StdioServer(RELAY, long.env, PROJECT) as veteran,
        ):
            beginner.initialize()
            veteran.initialize()
            warmed_up = _start_session(beginner)
            long_session = _load_context(veteran)["session"]["id"]
            for number in range(1, WARM_UP + 1):
                beginner.call("thought", {**thought(number, WARM_UP), "sessionId": warmed_up})
                veteran.call("thought", {**thought(number, WARM_UP), "sessionId": long_session})
            new_session = _start_session(beginner)
            for number in range(1, effort.edge + 1):
                arguments = thought(number, effort.edge)
                first.append(beginner.timed_call("thought", {**arguments, "sessionId": new_session}))
                arguments = thought(effort.length - effort.edge + number, effort.length)
                last.append(veteran.timed_call("thought", {**arguments, "sessionId": long_session}))
                progress("first and last thoughts", number, effort.edge)
            count = _load_context(veteran)["session"]["thoughtCount"]
    if count != effort.length:
        raise DaemonFailed(f"the long session holds {count} thoughts instead of {effort.length}")
    what = f"last {effort.edge} of {effort.length:,} thoughts in a session"
    return compare(what, last, first, theirs_is=f"its first {effort.edge}", target=LONG_TARGET)


def _large_store(effort: Effort, progress: Progress) -> list[Row]:
    """Recovery by project, and start-up, with a large store against an empty one."""
    prefilled = store_with(effort.sessions, THOUGHTS_PER_SESSION, progress)
    loads: list[float] = []
    full: list[float] = []
    empty: list[float] = []
    with scratch() as place:
        copy_into(place / "full", prefilled)
        for done in range(effort.daemon_starts + 1):
            for home, starts in ((place / "empty", empty), (place / "full", full)):
                with Served(home) as daemon:
                    starts.append(daemon.start_time)
            progress("daemon starts", done, effort.daemon_starts)
        with Served(place / "full") as daemon, StdioServer(RELAY, daemon.env, PROJECT) as relay:
            relay.initialize()
            for done in range(effort.loads):
                loads.append(relay.timed_call("init", {"operation": "load_context"}))
                progress("load_context", done + 1, effort.loads)
            _load_context(relay)
    stored = f"{effort.sessions:,} sessions x {THOUGHTS_PER_SESSION} stored"
    # The whole way of a call is measured, relay and pipes included: the server's own part is less.
    load = statistics.median(loads)
    slowest = f"slowest of {len(loads)}: {milliseconds(max(loads))}"
    return [
        Row(
            f"load_context, {stored}, p50 over stdio",
            milliseconds(load),
            slowest,
            load * 1000,
            LOAD_TARGET_MS,
            "ms",
            {"holdfast": loads},
        ),
        # The first start of each makes files or reads them from the disk for the first time.
        compare(f"daemon start, {stored}", full[1:], empty[1:], theirs_is="empty store", target=START_TARGET),
    ]


def _start_session(relay: StdioServer) -> str:
    started = relay.call("init", {"operation": "start_new", "title": "A new session"})["structuredContent"]
    return str(started["session"]["id"])


def _load_context(relay: StdioServer) -> dict[str, Any]:
    content: dict[str, Any] = relay.call("init", {"operation": "load_context"})["structuredContent"]
    if not content["success"]:
        raise DaemonFailed(f"load_context found nothing: {content['message']}")
    return content
