"""What it costs a call that its caller is recognised and the call is counted."""

from __future__ import annotations

import sys

from bench.report import Effort, Progress, Row, compare
from bench.served import RELAY, Served
from bench.stdio import StdioServer
from bench.thoughts import WARM_UP, thought
from bench.workshop import scratch

TARGET = 1.1


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """The same thoughts to two daemons in turn, one of which tracks nothing."""
    tracked: list[float] = []
    untracked: list[float] = []
    total = WARM_UP + effort.calls
    bare = (sys.executable, "-m", "bench.untracked", "serve")
    with (
        scratch() as place,
        Served(place / "home") as daemon,
        Served(place / "bare", command=bare) as other,
        StdioServer(RELAY, daemon.env, place) as relay,
        StdioServer(RELAY, other.env, place) as plain,
    ):
        relay.initialize()
        plain.initialize()
        for number in range(1, total + 1):
            tracked.append(relay.timed_call("thought", thought(number, total)))
            untracked.append(plain.timed_call("thought", thought(number, total)))
            progress("thoughts", number, total)
    what = f"thought with connections and calls tracked, p50 of {effort.calls}"
    return [compare(what, tracked[WARM_UP:], untracked[WARM_UP:], theirs_is="nothing tracked", target=TARGET)]
