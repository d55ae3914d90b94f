"""An agent's guarded process that speaks in JSON lines: what the test agents have in common."""

from __future__ import annotations

import asyncio
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from holdfast.agents import AgentSpec, OnEvent
from holdfast.agents.session_locks import SessionLocks
from holdfast.errors import BadInput
from holdfast.process.child_environment import agent_environment
from holdfast.process.guard import GuardedProcess, guarded

READY_SECONDS = 30.0
LINE_LIMIT = 16 * 1024 * 1024


class JsonProcess(ABC):
    """One process on one session."""

    def __init__(self, process: asyncio.subprocess.Process, session_id: str) -> None:
        self._process = process
        self._session_id = session_id
        self._on_event: OnEvent = lambda event: None
        self._closing: asyncio.Task[None] | None = None
        self.guarded = GuardedProcess()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, spec: AgentSpec, locks: SessionLocks, session_id: str, command: Sequence[str]) -> Self:
        """Start a program of the standard library under the session's lock."""
        if not spec.project.is_dir():
            raise BadInput("project", f"{spec.project} is not a directory")
        async with locks.held(session_id):
            pass  # the agent of a daemon that was killed has ended
        process = await asyncio.create_subprocess_exec(
            *guarded([sys.executable, "-I", "-S", *command]),
            cwd=spec.project,
            env={**agent_environment(), "HOLDFAST_MANAGED": "1", **spec.env, **locks.environment(session_id)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LINE_LIMIT,
        )
        session = cls(process, session_id)
        try:
            async with asyncio.timeout(READY_SECONDS):
                await session.ready()
                await session.guarded.reported()
        except BaseException:
            await session.close()
            raise
        return session

    @abstractmethod
    async def ready(self) -> None:
        """Wait until the process can take a turn."""

    @abstractmethod
    def take(self, message: dict[str, Any]) -> None:
        """Take in what the process says."""

    @abstractmethod
    def ended(self, code: int) -> None:
        """Fail what still waits: the process has ended."""

    @property
    def session_id(self) -> str:
        return self._session_id

    async def is_overtaken(self) -> bool:
        """Its lock keeps everybody else away."""
        return False

    @property
    def pid(self) -> int | None:
        return None if self._reading.done() else self.guarded.agent_pid

    @property
    def alive(self) -> bool:
        return self._closing is None and not self._reading.done()

    async def close(self) -> None:
        """End the process, also when the caller is cancelled meanwhile: nothing of it outlives the event loop."""
        if self._closing is None:
            self._closing = asyncio.create_task(self.guarded.end(self._reading))
        try:
            await asyncio.shield(self._closing)
        except asyncio.CancelledError:
            await asyncio.wait([self._closing])
            raise

    async def write(self, message: dict[str, Any]) -> None:
        """Tell the process something."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(json.dumps(message).encode() + b"\n")
        try:
            await stdin.drain()
        except ConnectionError:
            await asyncio.wait([self._reading])  # it fails what waits

    async def _read(self) -> None:
        errors = asyncio.create_task(self._read_errors())
        stdout = self._process.stdout
        while stdout is not None and (line := await stdout.readline()):
            self.take(json.loads(line))
        await errors
        self.ended(await self._process.wait())

    async def _read_errors(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (line := await stderr.readline()):
            self.guarded.read(line.decode(errors="replace"))
