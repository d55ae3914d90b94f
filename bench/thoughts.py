"""A thought over stdio: on disk here, in memory there."""

from __future__ import annotations

from typing import Any

from bench.peers import TOOL, sequential_thinking
from bench.report import Effort, Progress, Row, compare
from bench.served import RELAY, Served
from bench.stdio import StdioServer
from bench.workshop import scratch

TARGET = 5.0
SIZE = 300
WORDS = "the lock is taken twice when a reader waits for the writer that waits for the disk; "
WARM_UP = 20


def wording(number: int) -> str:
    """300 bytes of words, unlike those of any other number."""
    return (f"Thought {number}: " + WORDS * SIZE)[:SIZE]


def thought(number: int, total: int) -> dict[str, Any]:
    """A thought in the parameters that both servers take."""
    return {
        "thought": wording(number),
        "nextThoughtNeeded": True,
        "thoughtNumber": number,
        "totalThoughts": total,
    }


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """The same thoughts to both servers in turn, one at a time."""
    peer = sequential_thinking()
    ours: list[float] = []
    theirs: list[float] = []
    total = WARM_UP + effort.calls
    with (
        scratch() as place,
        Served(place / "home") as daemon,
        StdioServer(RELAY, daemon.env, place) as relay,
        StdioServer(peer.command, peer.env, place) as node,
    ):
        relay.initialize()
        node.initialize()
        for number in range(1, total + 1):
            ours.append(relay.timed_call("thought", thought(number, total)))
            theirs.append(node.timed_call(TOOL, thought(number, total)))
            progress("thoughts", number, total)
    what = f"thought over stdio, fsynced, p50 of {effort.calls}"
    against = f"node {peer.version}, in memory"
    return [compare(what, ours[WARM_UP:], theirs[WARM_UP:], theirs_is=against, target=TARGET)]
