"""An agent reduced to its pipes: one real `holdfast mcp` process, driven line by line."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.installation import HOLDFAST, PATIENCE, Installation

MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test-agent", "version": "1.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Agent:
    """A client that speaks to its relay in raw lines, in either era."""

    def __init__(
        self,
        holdfast: Installation,
        cwd: Path,
        *,
        era: str = "legacy",
        session: str | None = None,
        capabilities: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
        command: Sequence[str] = (str(HOLDFAST), "mcp"),
        client: tuple[str, str] = ("test-agent", "1.0"),
    ) -> None:
        self.era = era
        environment = {**os.environ, **holdfast.settings, **(env or {})}
        for name in ("CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR"):
            environment.pop(name, None)
        if session is not None:
            environment["CLAUDE_CODE_SESSION_ID"] = holdfast.caller(session)
        self.process = subprocess.Popen(
            command,
            env=environment,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._serial = 0
        self._buffer = b""
        self.seen: list[dict[str, Any]] = []
        """Everything that arrived and answered no request of ours."""
        if era == "legacy":
            info = {"name": client[0], "version": client[1]}
            self.request(
                "initialize",
                {"protocolVersion": "2025-11-25", "capabilities": capabilities or {}, "clientInfo": info},
            )
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        """Write one message."""
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        """Write raw bytes."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request without waiting for its answer; returns its id."""
        self._serial += 1
        params = dict(params or {})
        if self.era == "modern":
            params["_meta"] = {**MODERN_META, **params.get("_meta", {})}
        self.send({"jsonrpc": "2.0", "id": self._serial, "method": method, "params": params})
        return self._serial

    def answer(self, request: Any, limit: float = PATIENCE) -> dict[str, Any]:
        """Wait for the whole answer to a request."""
        for position, message in enumerate(self.seen):
            if "method" not in message and message.get("id") == request:
                return self.seen.pop(position)
        while True:
            message = self.receive(limit)
            if "method" not in message and message.get("id") == request:
                return message
            self.seen.append(message)

    def receive(self, limit: float = PATIENCE) -> dict[str, Any]:
        """The next message, whatever it is."""
        assert self.process.stdout is not None
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], limit)
            if not ready:
                raise TimeoutError(f"nothing arrived for {limit} s")
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            if not data:
                raise EOFError("the relay ended")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return dict(json.loads(line))

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask and wait; an error fails the test."""
        message = self.answer(self.ask(method, params))
        assert "error" not in message, message
        return dict(message["result"])

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; its structured reply."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return dict(result["structuredContent"])

    def refused(self, tool: str, **arguments: Any) -> str:
        """The text of the error that the call must give."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert result.get("isError"), result
        return str(result["content"][0]["text"])

    def think(self, thought: str, **arguments: Any) -> dict[str, Any]:
        """Call `thought`."""
        return self.call("thought", thought=thought, nextThoughtNeeded=True, **arguments)

    def init(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Call `init`."""
        return self.call("init", operation=operation, **arguments)

    def close(self) -> int:
        """Hang up in good order; the relay's exit status."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        return self.process.wait(PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.process.kill()
        self.close()
