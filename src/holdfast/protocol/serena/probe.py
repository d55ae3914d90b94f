"""Asks the Serena of a worktree whether it answers: a guarded process for one question, with no project open."""

from __future__ import annotations

import asyncio
import importlib
import os
import secrets
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from holdfast.lazy_dataclass import dataclass
from holdfast.process import guard_process
from holdfast.process.child_environment import command_environment
from holdfast.process.guard import guarded
from holdfast.protocol.runs import SerenaAnswer
from holdfast.protocol.serena.discovery import Launch, find_serena
from holdfast.text.quoting import in_quotes

OPTIONS = (
    *("--transport", "stdio", "--agent-interface", "tools"),
    *("--enable-web-dashboard", "false", "--open-web-dashboard", "false", "--enable-gui-log-window", "false"),
    *("--log-level", "WARNING"),
)
OLDER_OPTIONS = ("--transport", "stdio", "--enable-web-dashboard", "false", "--enable-gui-log-window", "false")
"""For a Serena that predates the two interfaces."""
UNKNOWN_OPTION = "no such option"
HOME_VARIABLE = "SERENA_HOME"
MAX_STDERR_CHARS = 500


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long things may take, in seconds."""

    answer: float = 45.0
    """Until Serena has started and answered; then it is ended."""
    wait: float = 10.0
    """Until a caller is told that it has not answered yet."""
    holds: float = 60.0
    """How long an answer counts."""
    failure_holds: float = 5.0


class Serena:
    """The Serenas of this daemon, started only from the user's own configuration or a trusted project's."""

    def __init__(
        self,
        home: Path,
        env: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._home = home
        self._env = dict(os.environ if env is None else env)
        self._timeouts = timeouts or Timeouts()
        self._clock = clock
        self._asked: dict[Launch, tuple[float, asyncio.Task[SerenaAnswer]]] = {}

    async def probe(self, worktree: Path, trusted: bool) -> SerenaAnswer:
        """Return whether a Serena is configured for a worktree, and whether it answers; soon, even if it hangs."""
        found = await asyncio.to_thread(find_serena, worktree, trusted, self._env)
        if found.launch is None:
            return SerenaAnswer(configured=False, answers=False, detail=found.detail)
        at, task = self._asked.get(found.launch, (0.0, None))
        if task is None or (task.done() and self._clock() - at > self._holds(task)):
            task = asyncio.create_task(self._ask(found.launch), name="serena")
            self._asked[found.launch] = (self._clock(), task)
        await asyncio.wait({task}, timeout=self._timeouts.wait)
        if not task.done():
            return _silent(f"it has not answered within {self._timeouts.wait:g} s; validate_gate asks again")
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

    def _holds(self, task: asyncio.Task[SerenaAnswer]) -> float:
        return self._timeouts.holds if task.result().answers else self._timeouts.failure_holds

    async def _ask(self, launch: Launch) -> SerenaAnswer:
        answer = await self._ask_with(launch, OPTIONS)
        if launch.takes_options and not answer.answers and UNKNOWN_OPTION in answer.detail.lower():
            return await self._ask_with(launch, OLDER_OPTIONS)
        return answer

    async def _ask_with(self, launch: Launch, options: tuple[str, ...]) -> SerenaAnswer:
        # The SDK takes a second to import: keep that out of the daemon's start and its event loop.
        await asyncio.to_thread(importlib.import_module, "mcp.client.client")
        from mcp.client.client import Client

        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
            try:
                async with (
                    asyncio.timeout(self._timeouts.answer),
                    self._streams(launch, options, stderr) as streams,
                    Client(streams) as client,
                ):
                    tools = {tool.name for tool in (await client.list_tools()).tools}
                    if "list_memories" in tools:  # a refusal is an answer too: opening a project is up to the agent
                        await client.call_tool("list_memories", {})
            except Exception as error:  # noqa: BLE001 - whatever a foreign server does is an answer to the question
                return _silent(in_quotes(_stderr_tail(stderr) or _reason(error), MAX_STDERR_CHARS))
        return SerenaAnswer(configured=True, answers=True, detail=f"Serena answers, with {len(tools)} tools.")

    @asynccontextmanager
    async def _streams(self, launch: Launch, options: tuple[str, ...], stderr: TextIO) -> AsyncIterator[Any]:
        if launch.url is not None:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            headers = dict(launch.headers)
            async with httpx2.AsyncClient(headers=headers, timeout=self._timeouts.answer) as http:
                yield streamable_http_client(launch.url, http_client=http)
        else:
            yield self._process(launch, options, stderr)

    @asynccontextmanager
    async def _process(self, launch: Launch, options: tuple[str, ...], stderr: TextIO) -> AsyncIterator[Any]:
        from mcp.client.stdio import StdioServerParameters, stdio_client

        command = guarded([*launch.argv, *(options if launch.takes_options else ())])
        folder = self._home / "serena"
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True, mode=0o700)
        # The guard holds a lock while any process of Serena runs; nothing else takes this one.
        lock = {guard_process.LOCK_VARIABLE: str(folder / f"{secrets.token_hex(8)}.lock")}
        own_home = {HOME_VARIABLE: self._env[HOME_VARIABLE]} if HOME_VARIABLE in self._env else {}
        env = command_environment(self._env) | own_home | dict(launch.env) | lock
        server = StdioServerParameters(command=command[0], args=command[1:], env=env, cwd=self._home)
        async with stdio_client(server, errlog=stderr) as streams:
            try:
                yield streams
            finally:
                # Ask the guard first, so that it has cleaned up before the SDK's own timeout ends.
                _end_guard(stderr)


def _silent(detail: str) -> SerenaAnswer:
    return SerenaAnswer(configured=True, answers=False, detail=detail)


def _end_guard(stderr: TextIO) -> None:
    words = os.pread(stderr.fileno(), 200, 0).decode("utf-8", "replace").split()
    if len(words) < 3 or words[0] != guard_process.REPORT or not words[1].isdigit():
        return
    pid = int(words[1])
    with suppress(ChildProcessError, ProcessLookupError):
        # Only while it is our child: once its exit was collected, the pid may belong to another process.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        os.kill(pid, signal.SIGTERM)


def _stderr_tail(stderr: TextIO) -> str:
    """Return the end of its stderr, in one line."""
    size = os.fstat(stderr.fileno()).st_size
    text = os.pread(stderr.fileno(), 8 * MAX_STDERR_CHARS, max(0, size - 8 * MAX_STDERR_CHARS)).decode(
        "utf-8", "replace"
    )
    lines = [line.strip() for line in text.splitlines() if not line.startswith(guard_process.REPORT)]
    return " ".join(" ".join(lines).split())[-MAX_STDERR_CHARS:]


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or ("it did not answer in time" if isinstance(error, TimeoutError) else type(error).__name__)
