"""A minimal agent of the Agent Client Protocol behind the seam: it has no cost, no fork, no compaction and no list."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.agents.json_process import JsonProcess

from holdfast.agents import AgentEvent, AgentSpec, Compaction, FoundSession, Lack, OnEvent, Turn
from holdfast.agents.errors import AgentBusy, AgentDied, AgentNotReady, PartMissing, SessionInUse, SessionMissing
from holdfast.agents.session_locks import SessionLocks
from holdfast.errors import BadInput
from holdfast.ids import random_id

PROGRAM = str(Path(__file__).with_name("acp_process.py"))
_ID = re.compile(r"ses_[0-9a-f]{1,60}")


class AcpAgent:
    """Starts one process per session. A new one is begun by a process of its own, then loaded under its lock."""

    lacks = frozenset({Lack.GIVEN_IDS, Lack.FORK, Lack.COMPACT, Lack.LIST})

    def __init__(self, home: Path, folder: Path, patience: float) -> None:
        self._folder = folder
        self._locks = SessionLocks(home / "locks", patience)

    def available(self) -> str | None:
        return None

    async def fork(self, spec: AgentSpec, session_id: str, title: str) -> str:
        raise PartMissing("This agent cannot copy a conversation.")

    async def headings(self, spec: AgentSpec, session_id: str) -> list[str]:
        raise PartMissing("This agent does not list its conversations.")

    async def open(self, spec: AgentSpec, session_id: str, *, resume: bool) -> AcpSession:
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
                self.forget([session_id])

    def forget(self, session_ids: Iterable[str]) -> None:
        for session_id in filter(_ID.fullmatch, session_ids):
            (self._folder / session_id).unlink(missing_ok=True)

    async def list_sessions(self, spec: AgentSpec) -> list[FoundSession]:
        raise PartMissing("This agent does not list its conversations.")

    async def _start(self, spec: AgentSpec, lock: str) -> AcpSession:
        try:
            return await AcpSession.start(spec, self._locks, lock, [PROGRAM, str(self._folder)])
        except AgentDied as error:
            taken = "another process has this session" in str(error)
            raise (SessionInUse if taken else AgentNotReady)(str(error)) from error


class AcpSession(JsonProcess):
    """One process on one session."""

    def __init__(self, process: asyncio.subprocess.Process, session_id: str) -> None:
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._serial = 0
        self._prompting = False
        self._said: list[str] = []
        super().__init__(process, session_id)

    async def ready(self) -> None:
        await self.call("initialize", protocolVersion=1)

    async def send(self, text: str, on_event: OnEvent, *, stores: bool = True) -> Turn:
        if self._prompting:
            raise AgentBusy(f"Session {self._session_id} is in the middle of a turn.", recovery="Wait for its end.")
        self._on_event, self._said, self._prompting = on_event, [], True
        prompt = [{"type": "text", "text": text}]
        turn = asyncio.ensure_future(self.call("session/prompt", sessionId=self._session_id, prompt=prompt))
        turn.add_done_callback(self._turn_ended)
        try:
            reason = (await asyncio.shield(turn))["stopReason"]
        except RuntimeError as error:
            return Turn(str(error), self._session_id, is_error=True)
        cancelled = reason == "cancelled"
        return Turn("" if cancelled else self._said[-1], self._session_id, is_error=cancelled, interrupted=cancelled)

    def _turn_ended(self, turn: asyncio.Future[dict[str, Any]]) -> None:
        self._prompting = False
        if not turn.cancelled():
            turn.exception()  # a caller that was cancelled does not come for it

    async def interrupt(self) -> None:
        if self._prompting and self.alive:
            await self._notify("session/cancel", {"sessionId": self._session_id})

    async def compact(self) -> Compaction:
        raise PartMissing("This agent cannot compact its context.")

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One request; RuntimeError for what the agent refuses, AgentDied where it has ended."""
        if not self.alive:
            raise AgentDied("The agent has ended.")
        self._serial += 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[self._serial] = answer
        await self._notify(method, params, id=self._serial)
        return await answer

    async def _notify(self, method: str, params: dict[str, Any], **more: int) -> None:
        await self.write({"jsonrpc": "2.0", **more, "method": method, "params": params})

    def take(self, message: dict[str, Any]) -> None:
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

    def ended(self, code: int) -> None:
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(AgentDied(f"The agent ended. {self.guarded.last_words}".rstrip()))
                answer.exception()
        self._answers.clear()


def _servers(spec: AgentSpec) -> list[dict[str, Any]]:
    return [{"name": name, **server} for name, server in (spec.mcp_servers or {}).items()]
