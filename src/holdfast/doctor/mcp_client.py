"""Minimal MCP client over stdio, standing in for an agent. Standard library only."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from holdfast.errors import HoldfastError
from holdfast.version import __version__

PROTOCOL = "2025-11-25"
END_SECONDS = 5.0
CHUNK = 1 << 16
ANY_SESSION = {
    "ref": {"type": "ref/resource", "uri": "holdfast://sessions/{id}"},
    "argument": {"name": "id", "value": ""},
}
"""Parameters of completion/complete: a read-only request that only a daemon can answer."""


class ServerSilent(HoldfastError):
    """The MCP server ended, or did not answer in time."""

    code = "E_SERVER_SILENT"


class StdioClient:
    """One MCP server process and its session."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path, name: str, limit: float = 30.0
    ) -> None:
        """Start the server. `limit`: seconds that each answer may take."""
        self._limit = limit
        self._serial = 0
        self._buffer = b""
        try:
            self.process = subprocess.Popen(  # noqa: S603 - what the caller chose to talk to
                command,
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C in a terminal is for the client, not for the server
            )
        except OSError as error:
            raise ServerSilent(f"{command[0]} cannot be started: {error.strerror}.") from error
        self._name = name

    def introduce(self) -> dict[str, Any]:
        """Do the handshake; return the server's answer."""
        client = {"name": self._name, "version": __version__}
        reply = self.request("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return reply

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._serial += 1
        self._send({"jsonrpc": "2.0", "id": self._serial, "method": method, "params": params or {}})
        deadline = time.monotonic() + self._limit
        while True:
            message = self._receive(method, deadline)
            if message.get("id") != self._serial or "method" in message:
                continue
            if "error" in message:
                raise ServerSilent(f"{method} was refused: {message['error'].get('message')}")
            return dict(message["result"])

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; return its structured reply."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise ServerSilent(f"{tool} was refused: {result['content'][0]['text']}")
        return dict(result["structuredContent"])

    def kill(self) -> None:
        """Kill the process as in a crash, with SIGKILL."""
        self.process.kill()
        self.close()

    def close(self) -> None:
        """Close the connection and make sure that the process ends."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(END_SECONDS)

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None  # noqa: S101 - it was opened with a pipe
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise ServerSilent(f"The server has ended{self._stderr_tail()}.") from error

    def _receive(self, method: str, deadline: float) -> dict[str, Any]:
        assert self.process.stdout is not None  # noqa: S101 - it was opened with a pipe
        descriptor = self.process.stdout.fileno()
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise ServerSilent(f"{method} was not answered within {self._limit:g} s.")
            data = os.read(descriptor, CHUNK)
            if not data:
                raise ServerSilent(f"The server has ended{self._stderr_tail()}.")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            return dict(json.loads(line))
        except ValueError as error:
            raise ServerSilent(f"{method} was answered with something that is not JSON.") from error

    def _stderr_tail(self) -> str:
        """Return the exit status, and the last line that the server wrote to stderr."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
        if self.process.poll() is None or self.process.stderr is None:
            return ""
        words = self.process.stderr.read(CHUNK).decode(errors="replace").strip().splitlines()
        return f" with status {self.process.returncode}{': ' + words[-1] if words else ''}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
