"""One connection floods with random tokens; a well-behaved client must hardly notice."""

from __future__ import annotations

import json
import multiprocessing
import secrets
import time
from http.client import HTTPConnection
from multiprocessing.synchronize import Event

from bench.report import Effort, Progress, Row, compare
from bench.served import RELAY, Served
from bench.stdio import StdioServer
from bench.thoughts import WARM_UP, thought
from bench.workshop import scratch

TARGET = 2.0
LONGEST = 120.0


def flood(port: int, key: str, started: Event, stop: Event) -> None:
    """Present random tokens for one session as fast as one connection can, for a bounded time."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    limited = 0
    until = time.monotonic() + LONGEST
    while not stop.is_set() and time.monotonic() < until:
        body = json.dumps({"token": secrets.token_urlsafe(60)})
        connection.request("POST", "/api/mcp/sessions/flooded/reconnect", body, headers)
        response = connection.getresponse()
        response.read()
        if response.status == 429:
            limited += 1
            started.set()
        elif response.status != 401:
            raise ConnectionError(f"HTTP {response.status}")
    connection.close()


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """The well-behaved client's thoughts, before the flood and during it."""
    calm: list[float] = []
    flooded: list[float] = []
    total = 2 * (WARM_UP + effort.calls)
    context = multiprocessing.get_context("spawn")
    started, stop = context.Event(), context.Event()
    with scratch() as place, Served(place / "home") as daemon, StdioServer(RELAY, daemon.env, place) as relay:
        relay.initialize()
        for number in range(1, total // 2 + 1):
            calm.append(relay.timed_call("thought", thought(number, total)))
            progress("thoughts", number, total)
        attacker = context.Process(target=flood, args=(daemon.port, daemon.key(), started, stop), daemon=True)
        attacker.start()
        try:
            if not started.wait(60):
                raise ConnectionError("the flood was never limited")
            for number in range(total // 2 + 1, total + 1):
                flooded.append(relay.timed_call("thought", thought(number, total)))
                progress("thoughts", number, total)
        finally:
            stop.set()
            attacker.join(60)
    what = f"thought while another connection floods with tokens, p50 of {effort.calls}"
    return [compare(what, flooded[WARM_UP:], calm[WARM_UP:], theirs_is="without the flood", target=TARGET)]
