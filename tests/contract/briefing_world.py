"""A small world for the tests of briefings: a project, agents with transcripts, and the hooks they call."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tests.assembly import make_connections
from tests.contract.conftest import Place

from holdfast.agents.claude.hooks import HOOKS
from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.briefing.hooks import BriefingHooks
from holdfast.briefing.ledger.service import Ledgers
from holdfast.briefing.service import NOTHING, Briefings
from holdfast.briefing.sharing import SharedTranscripts
from holdfast.capability.briefing import Covered
from holdfast.connections.service import Connections
from holdfast.identity.project import Root, RootSource, locate
from holdfast.reasoning.briefing_source import thoughts
from holdfast.reasoning.service import Reasoning
from holdfast.store import Store
from holdfast.times import iso

GONE = count(2**22 + 1)
"""Process numbers that no system gives."""


@dataclass
class Agent:
    """A session of an agent, with its transcript on disk."""

    world: World
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    pid: int = field(default_factory=lambda: next(GONE))

    @property
    def transcript(self) -> Path:
        return self.world.folder / f"{self.id}.jsonl"

    async def hook(self, event: str, *, wanted: str | None = None, beside: Covered = NOTHING, **payload: Any) -> str:
        """Call a hook; what the model is told."""
        told = {
            "session_id": self.id,
            "cwd": str(self.world.project),
            "transcript_path": str(self.transcript),
            "hook_event_name": event,
            **payload,
        }
        call = HOOKS.event(event, told)
        answer = await self.world.hooks.handle(call, pid=self.pid, wanted=wanted, covered=beside)
        self.answer = {} if answer is None else HOOKS.answer(event, answer)
        text: str = self.answer.get("hookSpecificOutput", {}).get("additionalContext", "")
        return text

    async def starts(self, source: str = "startup", **more: Any) -> str:
        """The session begins or goes on."""
        return await self.hook("SessionStart", source=source, **more)

    def asked(self, request: str) -> None:
        """The user asks something."""
        self._write({"type": "user", "message": {"role": "user", "content": request}})

    def calls(self, tool: str, **arguments: Any) -> str:
        """The agent calls a tool; returns the id of the call."""
        use = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex}", "name": tool, "input": arguments}
        self._write({"type": "assistant", "message": {"role": "assistant", "content": [use]}})
        return str(use["id"])

    def used(self, tool: str, **arguments: Any) -> None:
        """The agent uses a tool, which answers."""
        self.answers(self.calls(tool, **arguments))

    def answers(self, call: str) -> None:
        """A tool answers."""
        result = {"type": "tool_result", "tool_use_id": call, "content": "done"}
        self._write({"type": "user", "message": {"role": "user", "content": [result]}})

    def said(self, words: str, *, stop_reason: str = "end_turn", context: int | None = None) -> None:
        """The agent says something, with which it ends its turn unless the reason is another; with so many tokens."""
        content = [{"type": "text", "text": words}]
        message: dict[str, Any] = {"role": "assistant", "content": content, "stop_reason": stop_reason}
        if context is not None:
            message["usage"] = {"input_tokens": 2, "cache_read_input_tokens": context - 10, "output_tokens": 8}
        self._write({"type": "assistant", "message": message})

    def compacted(self, tokens: int) -> None:
        """The boundary that a compaction leaves."""
        metadata = {"trigger": "auto", "preTokens": tokens}
        self._write({"type": "system", "subtype": "compact_boundary", "compactMetadata": metadata})

    def _write(self, entry: dict[str, Any]) -> None:
        common = {
            "sessionId": self.id,
            "uuid": str(uuid.uuid4()),
            "cwd": str(self.world.project),
            "timestamp": iso(self.world.store_clock()),
        }
        with self.transcript.open("a") as file:
            file.write(json.dumps(common | entry) + "\n")


@dataclass
class World:
    """What a test acts on."""

    place: Place
    store: Store
    connections: Connections
    reasoning: Reasoning
    briefings: Briefings
    hooks: BriefingHooks
    project: Path
    folder: Path
    alive: set[str]

    @property
    def root(self) -> Root:
        return locate(str(self.project), RootSource.DIRECTORY)

    def agent(self, **fields: Any) -> Agent:
        """Another session."""
        return Agent(self, **fields)

    def living(self) -> Agent:
        """A session whose process runs."""
        return Agent(self, pid=os.getpid())

    def store_clock(self) -> int:
        from holdfast.store.sqlite import system_clock

        return system_clock() + self.place.shift

    def past(self, ms: int) -> None:
        """Time passes."""
        self.place.shift += ms


@asynccontextmanager
async def world(place: Place, machine: str = "here", *, gives: bool = True) -> AsyncIterator[World]:
    """A project with nothing in it yet."""
    store = place.open()
    project, config = place.home / "project", place.home / machine / "claude"
    project.mkdir(exist_ok=True)
    folder = config / "projects" / project_key(project)
    folder.mkdir(parents=True, exist_ok=True)
    connections = make_connections(store, machine)
    await connections.start()
    reasoning = Reasoning(store, connections)
    alive: set[str] = set()
    shared = SharedTranscripts(store, place.home / machine, gives=gives) if store.engine == "postgres" else None
    ledgers = Ledgers(store, machine, env={"CLAUDE_CONFIG_DIR": str(config)})
    briefings = Briefings(store, machine, ledgers, [thoughts(reasoning)], alive.__contains__, shared)
    hooks = BriefingHooks(briefings, machine)
    try:
        yield World(place, store, connections, reasoning, briefings, hooks, project, folder, alive)
    finally:
        await connections.stop()
        await store.close()
