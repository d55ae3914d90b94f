"""The echo agent: a real process that answers with what it was told, for trying out everything around an agent."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from holdfast.agents import (
    AgentEvent,
    AgentSpec,
    Compaction,
    FoundSession,
    Lack,
    OnEvent,
    Permission,
    Turn,
)
from holdfast.agents.errors import AgentBusy, AgentDied, AgentNotReady, SessionInUse, SessionMissing
from holdfast.agents.session_locks import SessionLocks, canonical_session_id
from holdfast.errors import BadInput
from holdfast.process.child_environment import agent_environment
from holdfast.process.guard import GuardedProcess, guarded

PROGRAM = str(Path(__file__).resolve().with_name("echo_process.py"))
FOLDER = "echo"
"""Where the daemon keeps transcripts of echo agents, in its data directory."""
READY_SECONDS = 30.0
LOCK_PATIENCE = 8.0
LINE_LIMIT = 16 * 1024 * 1024


class EchoAgent:
    """An agent whose transcripts are the files of one folder."""

    lacks: frozenset[Lack] = frozenset()

    def __init__(self, home: Path, transcripts: Path, *, patience: float = LOCK_PATIENCE) -> None:
        self._folder = transcripts
        self._locks = SessionLocks(home / "locks", patience)

    def available(self) -> str | None:
        """It can always run."""
        return None

    async def open(self, spec: AgentSpec, session_id: str, *, resume: bool, fork_of: str | None = None) -> EchoSession:
        """Start a process on a conversation."""
        session_id = canonical_session_id(session_id)
        if not spec.project.is_dir():
            raise BadInput("project", f"{spec.project} is not a directory")
        self._folder.mkdir(parents=True, exist_ok=True)
        arguments = [str(self._folder), session_id, "resume" if resume else "new"]
        if fork_of is not None:
            arguments.append(canonical_session_id(fork_of))
        async with self._locks.held(session_id):
            pass  # the agent of a daemon that was killed has ended
        process = await asyncio.create_subprocess_exec(
            *guarded([sys.executable, "-I", "-S", PROGRAM, *arguments]),
            cwd=spec.project,
            env={**agent_environment(), "HOLDFAST_MANAGED": "1", **spec.env, **self._locks.environment(session_id)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LINE_LIMIT,
        )
        session = EchoSession(process, session_id, spec.permission)
        try:
            await session.ready()
        except BaseException:
            await session.close()
            raise
        return session

    async def delete_transcript(self, spec: AgentSpec, session_id: str) -> None:
        """Delete a conversation's file."""
        session_id = canonical_session_id(session_id)
        async with self._locks.held(session_id):
            (self._folder / f"{session_id}.jsonl").unlink(missing_ok=True)

    async def list_sessions(self, spec: AgentSpec) -> list[FoundSession]:
        """Every conversation there is, the latest first; this agent does not tell projects apart."""
        found = [(path.stat().st_mtime_ns // 1_000_000, path.stem) for path in self._folder.glob("*.jsonl")]
        return [FoundSession(name, "echo", modified) for modified, name in sorted(found, reverse=True)]


class EchoSession:
    """A running echo process."""

    def __init__(self, process: asyncio.subprocess.Process, session_id: str, permission: Permission | None) -> None:
        self._process = process
        self._session_id = session_id
        self._permission = permission
        self._grip = GuardedProcess()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[dict[str, Any]] | None = None
        self._on_event: OnEvent = lambda event: None
        self._asking: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._reading = asyncio.create_task(self._read())

    @property
    def session_id(self) -> str:
        return self._session_id

    @property
    def pid(self) -> int | None:
        return None if self._reading.done() else self._grip.agent_pid

    @property
    def alive(self) -> bool:
        return self._closing is None and not self._reading.done()

    async def ready(self) -> None:
        """Wait until the process can take a turn."""
        async with asyncio.timeout(READY_SECONDS):
            await self._ready
            await self._grip.reported()

    async def send(self, text: str, on_event: OnEvent) -> Turn:
        """Run one turn."""
        told = (await self._ask({"text": text}, on_event))["turn"]
        return Turn(
            text=told["text"],
            session_id=self._session_id,
            is_error=told.get("is_error", False),
            interrupted=told.get("interrupted", False),
            subtype=told.get("subtype", "success"),
            cost_usd=0.0,
            input_tokens=told.get("tokens", 0),
            output_tokens=told.get("tokens", 0),
        )

    async def compact(self) -> Compaction:
        """Pretend to have compacted."""
        told = (await self._ask({"compact": True}, lambda event: None))["compaction"]
        return Compaction(told["pre"], told["post"])

    async def interrupt(self) -> None:
        """End the turn that is running, if one is."""
        if self._answer is not None and self.alive:
            await self._write({"interrupt": True})

    async def close(self) -> None:
        """End the process."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._grip.end(self._reading))
        await asyncio.shield(self._closing)

    async def _ask(self, request: dict[str, Any], on_event: OnEvent) -> dict[str, Any]:
        if self._answer is not None:
            raise AgentBusy(f"Session {self._session_id} is in the middle of a turn.", recovery="Wait for its end.")
        if not self.alive:
            raise AgentDied("The echo agent has ended.")
        self._on_event = on_event
        answer = self._answer = asyncio.get_running_loop().create_future()
        await self._write(request)
        return await asyncio.shield(answer)

    async def _write(self, message: dict[str, Any]) -> None:
        stdin = self._process.stdin
        if stdin is not None:
            stdin.write(json.dumps(message).encode() + b"\n")
            try:
                await stdin.drain()
            except ConnectionError:
                await asyncio.wait([self._reading])  # it ends the turn

    async def _read(self) -> None:
        """Take in what the process says until it has ended."""
        errors = asyncio.create_task(self._read_errors())
        stdout = self._process.stdout
        while stdout is not None and (line := await stdout.readline()):
            self._take(json.loads(line))
        if self._asking is not None:
            self._asking.cancel()
        await errors
        code = await self._process.wait()
        words = self._grip.last_words
        if not self._ready.done():
            self._ready.set_exception(_refusal(self._session_id, words))
            self._ready.exception()  # who opened it may have been cancelled
        if self._answer is not None:
            answer, self._answer = self._answer, None
            answer.set_exception(AgentDied(f"The echo agent ended in mid-turn with code {code}. {words}".rstrip()))
            answer.exception()  # a caller that was cancelled does not come for it

    def _take(self, message: dict[str, Any]) -> None:
        if "ready" in message:
            self._ready.set_result(None)
        elif "permission" in message:
            self._asking = asyncio.create_task(self._ask_permission(message["permission"]))
        elif "event" in message:
            self._on_event(AgentEvent(message["event"]))
        elif self._answer is not None:
            answer, self._answer = self._answer, None
            answer.set_result(message)

    async def _ask_permission(self, tool: str) -> None:
        allowed = self._permission is not None and await self._permission(tool, {}) is True
        await self._write({"allowed": bool(allowed)})

    async def _read_errors(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (line := await stderr.readline()):
            self._grip.read(line.decode(errors="replace"))


def _refusal(session_id: str, words: str) -> Exception:
    if "already in use" in words or "another process has this session" in words:
        return SessionInUse(f"Session {session_id} is in use: {words}")
    if "No conversation found" in words:
        return SessionMissing(words)
    return AgentNotReady(f"The echo agent did not start: {words}")
