"""Agents for tests: each kind with a place of its own, and a process that can be killed with an agent in its hands.

All kinds understand the same directives in a text ("sleep 30", "fail", …): the echo agent and the one of the Agent
Client Protocol by themselves, Claude Code as the model it talks to is scripted.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
from tests.agents.acp_agent import AcpAgent
from tests.agents.echo.run import EchoAgent
from tests.agents.scripted_model import Reply, Request, ScriptedModel, api_error, later, seen_so_far, text, tool_use

from holdfast.agents import AgentEvent, AgentSession, AgentSpec, RunPart, Turn
from holdfast.agents.claude.run import ClaudeAgent
from holdfast.agents.claude.transcripts.store import TranscriptStore
from holdfast.store.sqlite import SqliteStore

WAIT = 30.0
"""A limit for what must happen at all; no test measures time."""
PATIENCE = 0.3
"""How long an agent waits for a session that is in use."""

LINGERING = "tail -f /dev/null"
"""A command that goes on until it is killed."""


def obedient(request: Request) -> Reply:
    """A model that does what a directive in the last turn says, and else tells how many turns it has seen."""
    if request.tool_results:
        return text(f"The tool said {request.tool_results[-1].text}")
    said = request.user_turns[-1]
    if found := re.search(r"^sleep ([\d.]+)", said, re.MULTILINE):
        return later(float(found[1]), seen_so_far(request))
    if found := re.search(r"^run (.+)$", said, re.MULTILINE):
        return tool_use("Bash", {"command": found[1], "description": "as told"})
    if re.search(r"^fail", said, re.MULTILINE):
        return api_error(400, "told to fail")
    return seen_so_far(request)


@dataclass
class World:
    """One kind of agent, its project and its data."""

    kind: str
    place: Path
    env: dict[str, str] = field(default_factory=dict)
    model: ScriptedModel | None = None
    _store: SqliteStore | None = None

    @property
    def project(self) -> Path:
        return self.place / "project"

    @property
    def config(self) -> Path:
        return self.place / "claude"

    @property
    def transcripts(self) -> TranscriptStore:
        if self._store is None:
            self._store = SqliteStore.open(self.place / "holdfast.db")
        return TranscriptStore(self._store)

    def agent(self) -> RunPart:
        if self.kind == "acp":
            return AcpAgent(self.place / "data", self.place / "acp", PATIENCE)
        if self.kind == "echo":
            return EchoAgent(self.place / "data", self.place / "echo", patience=PATIENCE)
        return ClaudeAgent(self.place / "data", self.transcripts, prefer_bundled=True, patience=PATIENCE)

    def spec(self, **more: Any) -> AgentSpec:
        project = more.pop("project", self.project)
        project.mkdir(parents=True, exist_ok=True)
        env = {**self.env, **more.pop("env", {})}
        return AgentSpec(project=project, env=env, **more)

    def environment(self) -> dict[str, str]:
        environment = {
            "HOME": str(self.place),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "ANTHROPIC_API_KEY": "sk-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }
        return environment | ({"ANTHROPIC_BASE_URL": self.model.url} if self.model else {})

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()
            self._store = None


def play(made: World, scenario: Callable[[], Awaitable[None]]) -> None:
    """Play a scenario; the world is closed at its end."""

    async def played() -> None:
        try:
            await scenario()
        finally:
            await made.close()

    asyncio.run(played())


@contextmanager
def world(kind: str, place: Path, script: Callable[[Request], Reply] = obedient) -> Iterator[World]:
    """A world for one test; its model ends with it."""
    if kind != "claude":
        yield World(kind, place)
        return
    with ScriptedModel(script) as model, patch.dict(os.environ):  # the agent sets a variable of its own for the SDK
        made = World(kind, place, model=model)
        made.env = made.environment()
        yield made


def new_id() -> str:
    return str(uuid.uuid4())


def quiet(event: AgentEvent) -> None:
    """Events that nobody watches."""


async def say(session: AgentSession, words: str) -> Turn:
    """One turn, within the limit of a test."""
    return await asyncio.wait_for(session.send(words, quiet), WAIT)


def turns_seen(turn: Turn) -> int:
    """How many turns the agent's context holds, as it says."""
    found = re.search(r"(?:echo|seen) (\d+)", turn.text)
    assert found is not None, turn
    return int(found[1])


class Life:
    """Waits for the first sign of life in a turn."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []
        self._seen = asyncio.Event()

    def __call__(self, event: AgentEvent) -> None:
        self.events.append(event)
        self._seen.set()

    async def seen(self) -> None:
        await asyncio.wait_for(self._seen.wait(), WAIT)


def family(pid: int) -> list[psutil.Process]:
    """The agent's process, its guard and all their descendants."""
    guard = psutil.Process(pid).parent()
    assert guard is not None
    return [guard, *guard.children(recursive=True)]


def gone(processes: list[psutil.Process]) -> bool:
    """Whether none of them runs; what init has not buried yet runs no more."""
    return not [process for process in processes if _runs(process)]


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:  # between the two questions
        return False


def eventually(holds: Callable[[], bool], seconds: float = WAIT) -> bool:
    """Whether it holds within the limit."""
    limit = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True


@dataclass
class Parent:
    """A process with an agent in the middle of a turn, to be killed."""

    process: subprocess.Popen[str]
    agent_pid: int
    session_id: str

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def parent_of(made: World, session_id: str, words: list[str]) -> Parent:
    """A parent that says these words to an agent; it has had answers to all but the last one."""
    process = starting_parent(made, session_id, words)
    assert process.stdout is not None
    pid, name = process.stdout.readline().split()
    return Parent(process, int(pid), name)


def starting_parent(made: World, session_id: str, words: list[str]) -> subprocess.Popen[str]:
    """A parent that has only just begun to start its agent."""
    task = {"kind": made.kind, "place": str(made.place), "env": made.env, "id": session_id, "words": words}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.agents.agent_world", json.dumps(task)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "src"},
    )


async def _hold(task: dict[str, Any]) -> None:
    made = World(task["kind"], Path(task["place"]), task["env"])
    spec = made.spec(skip_permissions=True)
    session = await made.agent().open(spec, task["id"], resume=False)
    *before, last = task["words"]
    for words in before:
        await say(session, words)
    life = Life()
    turn = asyncio.create_task(session.send(last, life))
    await life.seen()
    print(session.pid, session.session_id, flush=True)
    await turn


if __name__ == "__main__":
    asyncio.run(_hold(json.loads(sys.argv[1])))
