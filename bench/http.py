"""Many HTTP clients at once: none may see an error."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from threading import Barrier
from typing import Any

from bench.report import Effort, Progress, Row
from bench.served import Served
from bench.stdio import HANDSHAKE, PROTOCOL
from bench.thoughts import thought
from bench.workshop import scratch

CLIENTS = 64
PATIENCE = 120.0


class HttpClient:
    """One client of Streamable HTTP with a connection and an MCP session of its own."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._serial = 0
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }

    def initialize(self) -> None:
        self._post({"id": self._next(), "method": "initialize", "params": HANDSHAKE})
        self._headers["Mcp-Protocol-Version"] = PROTOCOL
        self._post({"method": "notifications/initialized"})

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The structured content of a tool's result."""
        params = {"name": tool, "arguments": arguments}
        answer = self._post({"id": self._next(), "method": "tools/call", "params": params})
        if "error" in answer or answer["result"].get("isError"):
            raise ConnectionError(f"{tool}: {answer}")
        content: dict[str, Any] = answer["result"]["structuredContent"]
        return content

    def close(self) -> None:
        self._connection.close()

    def _next(self) -> int:
        self._serial += 1
        return self._serial

    def _post(self, message: dict[str, Any]) -> dict[str, Any]:
        self._connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), self._headers)
        response = self._connection.getresponse()
        body = response.read()
        if response.status not in (200, 202):
            raise ConnectionError(f"HTTP {response.status}: {body.decode(errors='replace')[:500]}")
        session = response.headers.get("Mcp-Session-Id")
        if session is not None:
            self._headers["Mcp-Session-Id"] = session
        answer: dict[str, Any] = json.loads(body) if body else {}
        return answer


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """64 clients that all think at once, each into its own session."""
    together = Barrier(CLIENTS + 1)

    def think(client: HttpClient) -> list[str]:
        """What went wrong for this client."""
        together.wait(PATIENCE)
        errors: list[str] = []
        for number in range(1, effort.http_calls + 1):
            try:
                content = client.call("thought", thought(number, effort.http_calls))
            except (OSError, ValueError, KeyError) as error:
                errors.append(repr(error))
                continue
            if content["thoughtNumber"] != number:
                errors.append(f"thought {number} was stored as {content['thoughtNumber']}")
        return errors

    with scratch() as place, Served(place / "home") as daemon:
        key = daemon.key()
        clients = [HttpClient(daemon.port, key) for _ in range(CLIENTS)]
        for connected, client in enumerate(clients):
            client.initialize()
            client.call("init", {"operation": "start_new", "title": f"Client {connected}"})
            progress("connecting", connected + 1, CLIENTS)
        with ThreadPoolExecutor(CLIENTS) as pool:
            outcomes = [pool.submit(think, client) for client in clients]
            together.wait(PATIENCE)
            began = time.perf_counter()
            errors = []
            for done, outcome in enumerate(outcomes):
                errors += outcome.result()
                progress("thoughts", done + 1, CLIENTS)
            seconds = time.perf_counter() - began
        for client in clients:
            client.close()
    calls = CLIENTS * effort.http_calls
    for error in sorted(set(errors))[:5]:
        print(f"http: {error}")
    return [
        Row(
            f"{CLIENTS} HTTP clients at once, {calls} thoughts",
            f"{calls / seconds:.0f} thoughts/s",
            value=float(len(errors)),
            target=0.0,
            unit="errors",
        )
    ]
