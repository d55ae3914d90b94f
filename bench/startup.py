"""Cold start: how long an agent waits for its tools when the daemon is already there."""

from __future__ import annotations

from bench.peers import sequential_thinking
from bench.report import Effort, Progress, Row, compare
from bench.served import RELAY, Served
from bench.stdio import time_to_tools
from bench.workshop import scratch

TARGET = 0.2


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """Start relay and peer in turn, each until its tools are listed."""
    peer = sequential_thinking()
    ours: list[float] = []
    theirs: list[float] = []
    with scratch() as place, Served(place / "home") as daemon:
        # The first start of each reads its files from the disk; that is the machine's cold start, not the server's.
        time_to_tools(RELAY, daemon.env, place)
        time_to_tools(peer.command, peer.env, place)
        for done in range(effort.starts):
            ours.append(time_to_tools(RELAY, daemon.env, place))
            theirs.append(time_to_tools(peer.command, peer.env, place))
            progress("cold starts", done + 1, effort.starts)
    what = f"cold start to tools/list, median of {effort.starts}"
    return [compare(what, ours, theirs, theirs_is=f"node {peer.version}", target=TARGET)]
