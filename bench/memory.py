"""What a connected agent costs in memory: the relay it holds against the server it would hold."""

from __future__ import annotations

import psutil

from bench.peers import TOOL, sequential_thinking
from bench.report import Effort, Progress, Row
from bench.served import RELAY, Served
from bench.stdio import StdioServer
from bench.thoughts import thought
from bench.workshop import scratch

TARGET = 0.25
THOUGHTS = 50
MEGABYTE = 1_000_000


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """Resident memory of both after the same thoughts."""
    peer = sequential_thinking()
    with (
        scratch() as place,
        Served(place / "home") as daemon,
        StdioServer(RELAY, daemon.env, place) as relay,
        StdioServer(peer.command, peer.env, place) as node,
    ):
        relay.initialize()
        node.initialize()
        for number in range(1, THOUGHTS + 1):
            relay.call("thought", thought(number, THOUGHTS))
            node.call(TOOL, thought(number, THOUGHTS))
            progress("thoughts", number, THOUGHTS)
        ours, theirs = resident(relay.pid), resident(node.pid)
    return [
        Row(
            f"resident memory after {THOUGHTS} thoughts",
            f"{ours / MEGABYTE:.1f} MB",
            f"{theirs / MEGABYTE:.1f} MB (node {peer.version})",
            ours / theirs,
            TARGET,
        )
    ]


def resident(pid: int) -> float:
    """Resident bytes of a process and of all it started."""
    process = psutil.Process(pid)
    return float(sum(each.memory_info().rss for each in [process, *process.children(recursive=True)]))
