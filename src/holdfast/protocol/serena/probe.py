"""Asks the Serena of a worktree whether it answers: a guarded process for one question, with no project open."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from holdfast.process import guard_process
from holdfast.process.child_environment import command_environment
from holdfast.process.guard import guarded
from holdfast.protocol.runs import SerenaAnswer
from holdfast.protocol.serena.discovery import Launch, find_serena
from holdfast.text import bounded_json
from holdfast.text.quoting import in_quotes
from holdfast.version import __version__

OPTIONS = ("--transport", "stdio", "--enable-web-dashboard", "false", "--enable-gui-log-window", "false")
"""Options that every Serena knows."""
PROTOCOL_VERSION = "2025-06-18"
MAX_ANSWER_BYTES = 16 * 1024 * 1024
HOLDS_S, FAILURE_HOLDS_S = 60.0, 5.0
"""How long an answer counts."""
HOME_VARIABLE = "SERENA_HOME"
MAX_STDERR_CHARS = 500


class Serena:
    """The Serenas of this daemon, started only from the user's own configuration or a trusted project's."""

    def __init__(
        self,
        home: Path,
        env: Mapping[str, str] | None = None,
        *,
        answer_s: float = 45.0,
        wait_s: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """A Serena without an answer is ended after `answer_s`; a caller is told of it after `wait_s`."""
        self._home = home
        self._env = dict(os.environ if env is None else env)
        self._answer_s = answer_s
        self._wait_s = wait_s
        self._clock = clock
        self._asked: dict[Launch, tuple[float, asyncio.Task[SerenaAnswer]]] = {}

    async def probe(self, worktree: Path, trusted: bool) -> SerenaAnswer:
        """Return whether a Serena is configured for a worktree, and whether it answers; soon, even if it hangs."""
        found = await asyncio.to_thread(find_serena, worktree, trusted, self._env)
        if found.launch is None:
            return SerenaAnswer(configured=False, answers=False, detail=found.detail)
        at, task = self._asked.get(found.launch, (0.0, None))
        holds = HOLDS_S if task is not None and task.done() and task.result().answers else FAILURE_HOLDS_S
        if task is None or (task.done() and self._clock() - at > holds):
            task = asyncio.create_task(self._ask(found.launch), name="serena")
            self._asked[found.launch] = (self._clock(), task)
        await asyncio.wait({task}, timeout=self._wait_s)
        if not task.done():
            return _silent(f"it has not answered within {self._wait_s:g} s; validate_gate asks again")
        return task.result()

    @property
    def silent(self) -> list[str]:
        """Why each Serena that was asked last does not answer."""
        answers = [task.result() if task.done() else None for _, task in self._asked.values()]
        return [one.detail if one else "it has not answered yet" for one in answers if one is None or not one.answers]

    async def close(self) -> None:
        """Stop every Serena that is being asked."""
        tasks = [task for _, task in self._asked.values() if not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _ask(self, launch: Launch) -> SerenaAnswer:
        with tempfile.TemporaryFile() as stderr:
            try:
                async with asyncio.timeout(self._answer_s):
                    asked = self._ask_server(launch) if launch.url else self._ask_process(launch, stderr)
                    tools = await asked
            except Exception as error:  # noqa: BLE001 - whatever a foreign server does is an answer to the question
                return _silent(in_quotes(_stderr_tail(stderr) or _reason(error), MAX_STDERR_CHARS))
        return SerenaAnswer(configured=True, answers=True, detail=f"Serena answers, with {tools} tools.")

    async def _ask_server(self, launch: Launch) -> int:
        """Return how many tools a Serena has that is running already."""
        # The SDK takes a second to import: keep that out of the daemon's event loop.
        await asyncio.to_thread(importlib.import_module, "mcp.client.client")
        import httpx2
        from mcp.client.client import Client
        from mcp.client.streamable_http import streamable_http_client

        async with (
            httpx2.AsyncClient(headers=dict(launch.headers), timeout=self._answer_s) as http,
            Client(streamable_http_client(launch.url or "", http_client=http)) as client,
        ):
            return len((await client.list_tools()).tools)

    async def _ask_process(self, launch: Launch, stderr: BinaryIO) -> int:
        """Start a Serena, and return how many tools it has."""
        folder = self._home / "serena"
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True, mode=0o700)
        # The guard holds a lock while any process of Serena runs; nothing else takes this one.
        lock = {guard_process.LOCK_VARIABLE: str(folder / f"{secrets.token_hex(8)}.lock")}
        own_home = {HOME_VARIABLE: self._env[HOME_VARIABLE]} if HOME_VARIABLE in self._env else {}
        process = await asyncio.create_subprocess_exec(
            *guarded([*launch.argv, *(OPTIONS if launch.takes_options else ())]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env=command_environment(self._env) | own_home | dict(launch.env) | lock,
            cwd=self._home,
            limit=MAX_ANSWER_BYTES,
        )
        try:
            client = {"name": "holdfast", "version": __version__}
            hello = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}
            await _request(process, "initialize", hello)
            await _send(process, {"method": "notifications/initialized"})
            return len((await _request(process, "tools/list", {}))["tools"])
        finally:
            with suppress(ProcessLookupError):
                process.terminate()  # the guard ends everything that it started
            await process.wait()


async def _request(process: asyncio.subprocess.Process, method: str, params: dict[str, Any]) -> Any:
    """Send a request, and return its result."""
    await _send(process, {"id": method, "method": method, "params": params})
    while process.stdout is not None and (line := await process.stdout.readline()):
        answer = bounded_json.loads(line)
        if answer.get("id") == method:
            return answer["result"]
    raise ConnectionError("it has ended")


async def _send(process: asyncio.subprocess.Process, message: dict[str, Any]) -> None:
    if process.stdin is not None:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        await process.stdin.drain()


def _silent(detail: str) -> SerenaAnswer:
    return SerenaAnswer(configured=True, answers=False, detail=detail)


def _stderr_tail(stderr: BinaryIO) -> str:
    """Return the end of its stderr, in one line."""
    size = os.fstat(stderr.fileno()).st_size
    tail = os.pread(stderr.fileno(), 8 * MAX_STDERR_CHARS, max(0, size - 8 * MAX_STDERR_CHARS))
    text = tail.decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if not line.startswith(guard_process.REPORT)]
    return " ".join(" ".join(lines).split())[-MAX_STDERR_CHARS:]


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or ("it did not answer in time" if isinstance(error, TimeoutError) else type(error).__name__)
