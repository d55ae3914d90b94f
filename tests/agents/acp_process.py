"""A process that speaks as much of the Agent Client Protocol as a session needs: it chooses its sessions' ids itself.

Run as `python -I -S acp_process.py FOLDER`; JSON-RPC lines in both directions. A text "sleep SECONDS" answers later,
"fail" ends the turn with an error.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys
import time
from pathlib import Path
from typing import Any


class Process:
    """One connection, with one session at most."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder
        self._buffer = b""

    def run(self) -> None:
        """Answer requests until the input ends."""
        while True:
            request = self._hear(None)
            if request is not None and "id" in request:
                try:
                    result = self._answer(request["method"], request.get("params", {}))
                    self._say({"id": request["id"], "result": result})
                except RuntimeError as error:
                    self._say({"id": request["id"], "error": {"code": -32000, "message": str(error)}})

    def _answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "session/new":
            chosen = f"ses_{time.time_ns():x}{os.getpid():x}"
            self._path = self._folder / chosen
            self._path.write_text(json.dumps({"mcpServers": params["mcpServers"]}) + "\n")
            return {"sessionId": chosen}
        if method == "session/load":
            self._path = self._folder / params["sessionId"]
            if not self._path.is_file():
                raise RuntimeError(f"Session not found: {params['sessionId']}")
            return {}
        if method == "session/prompt":
            return self._prompt(params["prompt"][0]["text"])
        return {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}

    def _prompt(self, text: str) -> dict[str, Any]:
        self._update("thinking")
        waits = re.search(r"^sleep ([\d.]+)", text, re.MULTILINE)
        if waits and not self._slept(float(waits[1])):
            return {"stopReason": "cancelled"}
        if re.search(r"^fail", text, re.MULTILINE):
            raise RuntimeError("told to fail")
        with self._path.open("a") as file:
            file.write(json.dumps(text) + "\n")
            file.flush()
            os.fsync(file.fileno())
        seen = len(self._path.read_text().splitlines()) - 1
        self._update(f"I have seen {seen} turns; last: {text}")
        return {"stopReason": "end_turn"}

    def _slept(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            request = self._hear(left)
            if request is not None and request["method"] == "session/cancel":
                return False
        return True

    def _update(self, text: str) -> None:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        self._say({"method": "session/update", "params": {"sessionId": self._path.name, "update": update}})

    def _say(self, message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def _hear(self, seconds: float | None) -> dict[str, Any] | None:
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([0], [], [], seconds)
            if not ready:
                return None
            chunk = os.read(0, 65536)
            if not chunk:
                sys.exit(0)
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        request: dict[str, Any] = json.loads(line)
        return request


if __name__ == "__main__":
    Process(Path(sys.argv[1])).run()
