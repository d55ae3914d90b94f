"""A minimal agent of the Agent Client Protocol behind the seam: it has no cost, no fork, no compaction and no list."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

from holdfast.agents import AgentEvent, AgentSpec, Compaction, FoundSession, Lack, OnEvent, Turn
from holdfast.agents.errors import AgentBusy, AgentDied, AgentNotReady, PartMissing, SessionInUse, SessionMissing
from holdfast.agents.session_locks import SessionLocks
from holdfast.errors import BadInput
from holdfast.ids import random_id
from holdfast.process.child_environment import agent_environment
from holdfast.process.guard import GuardedProcess, guarded

PROGRAM = str(Path(__file__).with_name("acp_process.py"))
READY_SECONDS = 30.0
_ID = re.compile(r"ses_[0-9a-f]{1,60}")


class AcpAgent:
    """Starts one process per session. A new one is begun by a process of its own, then loaded under its lock."""

    lacks = frozenset({Lack.GIVEN_IDS, Lack.FORK, Lack.COMPACT, Lack.LIST})

    def __init__(self, home: Path, folder: Path, patience: float) -> None:
        self._folder = folder
        self._locks = SessionLocks(home / "locks", patience)

    def available(self) -> str | None:
        return None

    async def open(self, spec: AgentSpec, session_id: str, *, resume: bool, fork_of: str | None = None) -> AcpSession:
        if fork_of is not None:
            raise PartMissing("This agent cannot copy a conversation.")
        if not spec.project.is_dir():
            raise BadInput("project", f"{spec.project} is not a directory")
        self._folder.mkdir(parents=True, exist_ok=True)
        if not resume:
            first = await self._start(spec, random_id())
            try:
                begun = await first.call("session/new", cwd=str(spec.project), mcpServers=_servers(spec))
            finally:
                await first.close()
            session_id = begun["sessionId"]
        if not _ID.fullmatch(session_id):
            raise BadInput("session_id", f"{session_id!r} is not an id of this agent")
        session = await self._start(spec, session_id)
        try:
            params = {"sessionId": session_id, "cwd": str(spec.project), "mcpServers": _servers(spec)}
            await session.call("session/load", **params)
        except RuntimeError as error:
            await session.close()
            raise SessionMissing(str(error)) from error
        except BaseException:
            await session.close()
            raise
        return session

    async def delete_transcript(self, spec: AgentSpec, session_id: str) -> None:
        if _ID.fullmatch(session_id):
            async with self._locks.held(session_id):
                (self._folder / session_id).unlink(missing_ok=True)

    async def list_sessions(self, spec: AgentSpec) -> list[FoundSession]:
        raise PartMissing("This agent does not list its conversations.")

    async def _start(self, spec: AgentSpec, lock: str) -> AcpSession:
        async with self._locks.held(lock):
            pass  # the agent of a daemon that was killed has ended
        process = await asyncio.create_subprocess_exec(
            *guarded([sys.executable, "-I", "-S", PROGRAM, str(self._folder)]),
            cwd=spec.project,
            env={**agent_environment(), "HOLDFAST_MANAGED": "1", **spec.env, **self._locks.environment(lock)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        session = AcpSession(process, lock)
        try:
            async with asyncio.timeout(READY_SECONDS):
                await session.call("initialize", protocolVersion=1)
                await session.grip.reported()
        except AgentDied as error:
            await session.close()
            taken = "another process has this session" in str(error)
            raise (SessionInUse if taken else AgentNotReady)(str(error)) from error
        except BaseException:
            await session.close()
            raise
        return session


class AcpSession:
    """One process on one session."""

    def __init__(self, process: asyncio.subprocess.Process, session_id: str) -> None:
        self._process = process
        self._session_id = session_id
        self.grip = GuardedProcess()
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._serial = 0
        self._prompting = False
        self._said: list[str] = []
        self._on_event: OnEvent = lambda event: None
        self._closing: asyncio.Task[None] | None = None
        self._reading = asyncio.create_task(self._read())

    @property
    def session_id(self) -> str:
        return self._session_id

    @property
    def pid(self) -> int | None:
        return None if self._reading.done() else self.grip.agent_pid

    @property
    def alive(self) -> bool:
        return self._closing is None and not self._reading.done()

    async def send(self, text: str, on_event: OnEvent) -> Turn:
        if self._prompting:
            raise AgentBusy(f"Session {self._session_id} is in the middle of a turn.", recovery="Wait for its end.")
        self._on_event, self._said, self._prompting = on_event, [], True
        prompt = [{"type": "text", "text": text}]
        turn = asyncio.ensure_future(self.call("session/prompt", sessionId=self._session_id, prompt=prompt))
        turn.add_done_callback(self._ended)
        try:
            reason = (await asyncio.shield(turn))["stopReason"]
        except RuntimeError as error:
            return Turn(str(error), self._session_id, is_error=True)
        cancelled = reason == "cancelled"
        return Turn("" if cancelled else self._said[-1], self._session_id, is_error=cancelled, interrupted=cancelled)

    def _ended(self, turn: asyncio.Future[dict[str, Any]]) -> None:
        self._prompting = False
        if not turn.cancelled():
            turn.exception()  # a caller that was cancelled does not come for it

    async def interrupt(self) -> None:
        if self._prompting and self.alive:
            await self._write({"method": "session/cancel", "params": {"sessionId": self._session_id}})

    async def compact(self) -> Compaction:
        raise PartMissing("This agent cannot compact its context.")

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self.grip.end(self._reading))
        await asyncio.shield(self._closing)

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One request; RuntimeError for what the agent refuses, AgentDied where it has ended."""
        if not self.alive:
            raise AgentDied("The agent has ended.")
        self._serial += 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[self._serial] = answer
        await self._write({"id": self._serial, "method": method, "params": params})
        return await answer

    async def _write(self, message: dict[str, Any]) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        try:
            await stdin.drain()
        except ConnectionError:
            await asyncio.wait([self._reading])  # it fails what waits

    async def _read(self) -> None:
        errors = asyncio.create_task(self._read_errors())
        stdout = self._process.stdout
        while stdout is not None and (line := await stdout.readline()):
            self._take(json.loads(line))
        await errors
        await self._process.wait()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(AgentDied(f"The agent ended. {self.grip.last_words}".rstrip()))
                answer.exception()
        self._answers.clear()

    def _take(self, message: dict[str, Any]) -> None:
        if message.get("method") == "session/update":
            self._said.append(message["params"]["update"]["content"]["text"])
            self._on_event(AgentEvent("text", self._said[-1]))
            return
        answer = self._answers.pop(message["id"])
        if answer.done():
            return
        if "error" in message:
            answer.set_exception(RuntimeError(message["error"]["message"]))
        else:
            answer.set_result(message["result"])

    async def _read_errors(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (line := await stderr.readline()):
            self.grip.read(line.decode(errors="replace"))


def _servers(spec: AgentSpec) -> list[dict[str, Any]]:
    return [{"name": name, **server} for name, server in (spec.mcp_servers or {}).items()]
