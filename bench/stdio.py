"""An MCP server on pipes, driven with raw JSON-RPC lines: the same few lines of driver for every server."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROTOCOL = "2025-11-25"
HANDSHAKE = {
    "protocolVersion": PROTOCOL,
    "capabilities": {},
    "clientInfo": {"name": "holdfast-bench", "version": "1"},
}

ENDING = 10.0
"""Seconds that a server may take to end after its input has ended."""


class ServerFailed(Exception):
    """The server answered with an error, or not at all."""


class StdioServer:
    """One process of a server, from its start to its end."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self.command = command
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command, env=dict(env), cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._serial = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    def initialize(self) -> None:
        """The handshake, as a client does it: the next request waits for its answer."""
        self.request("initialize", HANDSHAKE)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        self._serial += 1
        self._write({"jsonrpc": "2.0", "id": self._serial, "method": method, "params": params})
        return self._answer(self._serial)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool; its result, or ServerFailed when it was an error."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise ServerFailed(f"{tool}: {result['content']}")
        return result

    def timed_call(self, tool: str, arguments: Mapping[str, Any]) -> float:
        """Seconds from the request to its answer."""
        asked = time.perf_counter()
        self.call(tool, arguments)
        return time.perf_counter() - asked

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(ENDING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self._process.stdin.flush()

    def _answer(self, serial: int) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") != serial or "method" in message:
                continue
            if "error" in message:
                raise ServerFailed(f"{self.command[0]}: {message['error']}")
            result: dict[str, Any] = message["result"]
            return result
        raise ServerFailed(f"{self.command[0]} ended without an answer (exit status {self._process.wait()})")


def time_to_tools(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> float:
    """Seconds from the start of the process until its answer to tools/list has arrived."""
    with StdioServer(command, env, cwd) as server:
        server.initialize()
        tools = server.request("tools/list", {})["tools"]
        seconds = time.perf_counter() - server.started
    if not tools:
        raise ServerFailed(f"{command[0]} has no tools")
    return seconds
