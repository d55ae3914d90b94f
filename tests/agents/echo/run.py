"""Running the echo agent: a real process that answers with what it was told."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.agents.json_process import JsonProcess

from holdfast.agents import AgentEvent, AgentSpec, Compaction, FoundSession, Lack, OnEvent, Permission, Turn
from holdfast.agents.errors import AgentBusy, AgentDied, AgentNotReady, SessionInUse, SessionMissing
from holdfast.agents.session_locks import SessionLocks, canonical_session_id
from holdfast.ids import random_id

PROGRAM = str(Path(__file__).resolve().with_name("echo_process.py"))
LOCK_PATIENCE = 8.0


class EchoAgent:
    """An agent whose transcripts are the files of one folder."""

    lacks: frozenset[Lack] = frozenset()

    def __init__(self, home: Path, transcripts: Path, *, patience: float = LOCK_PATIENCE) -> None:
        self._folder = transcripts
        self._locks = SessionLocks(home / "locks", patience)

    def available(self) -> str | None:
        """It can always run."""
        return None

    async def open(self, spec: AgentSpec, session_id: str, *, resume: bool) -> EchoSession:
        """Start a process on a conversation."""
        session_id = canonical_session_id(session_id)
        self._folder.mkdir(parents=True, exist_ok=True)
        arguments = [str(self._folder), session_id, "resume" if resume else "new"]
        session = await EchoSession.start(spec, self._locks, session_id, [PROGRAM, *arguments])
        session.permission = spec.permission
        return session

    async def fork(self, spec: AgentSpec, session_id: str, title: str) -> str:
        """Copy a conversation's file."""
        copy = random_id()
        try:
            shutil.copyfile(self._folder / f"{canonical_session_id(session_id)}.jsonl", self._folder / f"{copy}.jsonl")
        except FileNotFoundError as error:
            raise SessionMissing(f"No conversation found with session ID {session_id}") from error
        return copy

    async def headings(self, spec: AgentSpec, session_id: str) -> list[str]:
        """What it was told, turn by turn."""
        text = (self._folder / f"{canonical_session_id(session_id)}.jsonl").read_text()
        return [json.loads(line)["text"] for line in text.splitlines()]

    async def delete_transcript(self, spec: AgentSpec, session_id: str) -> None:
        """Delete a conversation's file."""
        session_id = canonical_session_id(session_id)
        async with self._locks.held(session_id):
            self.forget([session_id])

    def forget(self, session_ids: Iterable[str]) -> None:
        """Delete the files of these conversations."""
        for session_id in session_ids:
            (self._folder / f"{Path(session_id).name}.jsonl").unlink(missing_ok=True)

    async def list_sessions(self, spec: AgentSpec) -> list[FoundSession]:
        """Every conversation there is, the latest first; this agent does not tell projects apart."""
        found = [(path.stat().st_mtime_ns // 1_000_000, path.stem) for path in self._folder.glob("*.jsonl")]
        return [
            FoundSession(name, "echo", modified, first_prompt=next(iter(await self.headings(spec, name)), None))
            for modified, name in sorted(found, reverse=True)
        ]


class EchoSession(JsonProcess):
    """A running echo process."""

    permission: Permission | None = None

    def __init__(self, process: asyncio.subprocess.Process, session_id: str) -> None:
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[dict[str, Any]] | None = None
        self._asking: asyncio.Task[None] | None = None
        super().__init__(process, session_id)

    async def ready(self) -> None:
        await self._ready

    async def send(self, text: str, on_event: OnEvent, *, stores: bool = True) -> Turn:
        """Run one turn."""
        told = (await self._ask({"text": text}, on_event))["turn"]
        return Turn(
            text=told["text"],
            session_id=self._session_id,
            is_error=told.get("is_error", False),
            interrupted=told.get("interrupted", False),
            subtype=told.get("subtype", "success"),
            cost_usd=told.get("cost_usd", 0.0),
            input_tokens=told.get("input_tokens", 0),
            output_tokens=told.get("output_tokens", 0),
        )

    async def compact(self) -> Compaction:
        """Pretend to have compacted."""
        told = (await self._ask({"compact": True}, lambda event: None))["compaction"]
        return Compaction(told["pre"], told["post"])

    async def interrupt(self) -> None:
        """End the turn that is running, if one is."""
        if self._answer is not None and self.alive:
            await self.write({"interrupt": True})

    async def _ask(self, request: dict[str, Any], on_event: OnEvent) -> dict[str, Any]:
        if self._answer is not None:
            raise AgentBusy(f"Session {self._session_id} is in the middle of a turn.", recovery="Wait for its end.")
        if not self.alive:
            raise AgentDied("The echo agent has ended.")
        self._on_event = on_event
        answer = self._answer = asyncio.get_running_loop().create_future()
        await self.write(request)
        return await asyncio.shield(answer)

    def take(self, message: dict[str, Any]) -> None:
        if "ready" in message:
            if not self._ready.done():  # who opened it may have been cancelled
                self._ready.set_result(None)
        elif "permission" in message:
            self._asking = asyncio.create_task(self._ask_permission(message["permission"]))
        elif "event" in message:
            self._on_event(AgentEvent(message["event"]))
        elif self._answer is not None:
            answer, self._answer = self._answer, None
            answer.set_result(message)

    def ended(self, code: int) -> None:
        if self._asking is not None:
            self._asking.cancel()
        words = self.guarded.last_words
        if not self._ready.done():
            self._ready.set_exception(_refusal(self._session_id, words))
            self._ready.exception()  # who opened it may have been cancelled
        if self._answer is not None:
            answer, self._answer = self._answer, None
            answer.set_exception(AgentDied(f"The echo agent ended in mid-turn with code {code}. {words}".rstrip()))
            answer.exception()  # a caller that was cancelled does not come for it

    async def _ask_permission(self, wish: str) -> None:
        tool, _, given = wish.partition(" ")
        allowed = self.permission is not None and await self.permission(tool, json.loads(given or "{}")) is True
        await self.write({"allowed": bool(allowed)})


def _refusal(session_id: str, words: str) -> Exception:
    if "already in use" in words or "another process has this session" in words:
        return SessionInUse(f"Session {session_id} is in use: {words}")
    if "No conversation found" in words:
        return SessionMissing(words)
    return AgentNotReady(f"The echo agent did not start: {words}")
