"""A real Serena: found, asked, written through, killed, and gone when it is no longer needed."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.agents.serena_environment import serena_program
from tests.installation import kill_all

from holdfast.protocol import definition, memories, queries
from holdfast.protocol.checks.gates import Checks
from holdfast.protocol.model import Status
from holdfast.protocol.protocols import AGENTS
from holdfast.protocol.runs import Run, SerenaAnswer
from holdfast.protocol.serena.client import Serena, Timeouts
from holdfast.protocol.serena.mirror import Mirror, foreign_state
from holdfast.protocol.service import Protocols
from holdfast.protocol.worktree import worktree_of
from holdfast.store.sqlite import SqliteStore

pytestmark = pytest.mark.anyio

WAIT = 60.0
"""A limit for what must happen at all; no test measures time."""
PATIENT = Timeouts(start=90, call=60, idle=600)
PROJECT = 'project_name: "work"\nlanguage_servers: []\n'


@pytest.fixture(scope="session")
def program() -> Path:
    return serena_program()


@dataclass
class World:
    """A user, a project and the Serenas between them."""

    place: Path
    program: Path

    def __post_init__(self) -> None:
        self.home.mkdir()
        (self.worktree / ".serena").mkdir(parents=True)
        (self.worktree / ".serena" / "project.yml").write_text(PROJECT)
        self.env = {"HOME": str(self.home), "PATH": os.environ["PATH"]}

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def worktree(self) -> Path:
        return self.place / "work"

    @property
    def memory_folder(self) -> Path:
        return self.worktree / ".serena" / "memories"

    def user_configures(self, command: Path, *args: str) -> None:
        servers = {"serena": {"type": "stdio", "command": str(command), "args": list(args)}}
        (self.home / ".claude.json").write_text(json.dumps({"mcpServers": servers}))

    def project_configures(self, command: Path) -> None:
        entry = {"command": str(command), "args": ["start-mcp-server"]}
        (self.worktree / ".mcp.json").write_text(json.dumps({"mcpServers": {"serena": entry}}))

    def on_path(self) -> None:
        self.env["PATH"] = f"{self.program.parent}{os.pathsep}{self.env['PATH']}"

    def script(self, name: str, body: str) -> Path:
        path = self.place / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    def processes(self) -> list[psutil.Process]:
        """Everything that was started for this project and still runs."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            alive = process.status() != psutil.STATUS_ZOMBIE and process.pid != os.getpid()
            return alive and "mcp-server" in " ".join(process.cmdline()) and process.environ()["HOME"] == str(self.home)
        except (psutil.NoSuchProcess, psutil.AccessDenied, KeyError):
            return False

    @asynccontextmanager
    async def serena(self, timeouts: Timeouts = PATIENT) -> AsyncIterator[Serena]:
        """Serena for this user; when the block ends, nothing of it may be left."""
        serena = Serena(self.place / "data", self.env, timeouts)
        try:
            yield serena
        finally:
            await serena.close()
            await eventually(lambda: not self.processes())


async def eventually(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < limit, "it did not come to pass"
        await asyncio.sleep(0.05)


@pytest.fixture
def world(tmp_path: Path, program: Path) -> World:
    return World(tmp_path, program)


async def test_memories_up_to_the_longest_read_back_through_serena_and_lie_as_files(world: World) -> None:
    world.user_configures(world.program, "start-mcp-server", "--context", "ide-assistant", "--project", "/elsewhere")
    async with world.serena() as serena:
        kept = await serena.memories(world.worktree, True)
        assert kept is not None
        text = "# Session State\n\n| a \\| b | é |\n"
        await kept.write(memories.CURRENT_STATE, text)
        assert await kept.read(memories.CURRENT_STATE) == text
        assert (world.memory_folder / f"{memories.CURRENT_STATE}.md").read_text() == text
        await kept.delete(memories.CURRENT_STATE)
        await kept.delete(memories.CURRENT_STATE)
        assert await kept.read(memories.CURRENT_STATE) is None
        assert list(world.memory_folder.iterdir()) == []
        longest = "é" * memories.MAX_MEMORY_CHARS
        await kept.write(memories.HISTORY, longest)
        assert await kept.read(memories.HISTORY) == longest


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_a_serena_that_answers_is_said_to_is_kept_warm_and_is_started_anew_when_killed(world: World) -> None:
    world.user_configures(world.program, "start-mcp-server")
    async with world.serena() as serena:
        expected = SerenaAnswer(configured=True, answers=True, detail="Serena answers; it lists 0 memories.")
        assert await serena.probe(world.worktree, True) == expected
        running = {process.pid for process in world.processes()}
        assert await serena.probe(world.worktree, True) == expected
        assert {process.pid for process in world.processes()} == running, "it is kept warm"
        kill(world)
        assert await serena.probe(world.worktree, True) == expected


async def test_a_serena_that_is_configured_but_broken_is_said_to_be(world: World) -> None:
    world.user_configures(world.script("serena", "echo no licence >&2; exit 1"), "start-mcp-server")
    async with world.serena() as serena:
        answer = await serena.probe(world.worktree, True)
        assert (answer.configured, answer.answers) == (True, False)
        assert "no licence" in answer.detail


async def test_without_a_serena_none_is_configured(world: World) -> None:
    world.env["PATH"] = "/nowhere"
    async with world.serena() as serena:
        expected = SerenaAnswer(configured=False, answers=False, detail="No Serena is configured.")
        assert await serena.probe(world.worktree, True) == expected
        assert await serena.memories(world.worktree, True) is None


async def test_what_the_project_names_is_started_only_when_it_is_trusted(world: World) -> None:
    mark = world.place / "started"
    world.project_configures(world.script("serena", f"touch {mark}; exit 1"))
    async with world.serena() as serena:
        answer = await serena.probe(world.worktree, False)
        assert (answer.configured, answer.answers) == (False, False)
        assert "holdfast trust" in answer.detail
        assert await serena.memories(world.worktree, False) is None
        assert not mark.exists()
        assert (await serena.probe(world.worktree, True)).configured
        assert mark.exists()


async def test_the_users_serena_answers_but_does_not_open_a_project_that_is_not_trusted(world: World) -> None:
    world.user_configures(world.program, "start-mcp-server")
    (world.worktree / ".serena" / "project.yml").write_text("this: [is not: settings\n")
    async with world.serena() as serena:
        assert (await serena.probe(world.worktree, False)).answers
        assert await serena.memories(world.worktree, False) is None
        assert not world.memory_folder.exists()


async def test_a_project_that_serena_does_not_know_stays_without_its_files(world: World) -> None:
    world.user_configures(world.program, "start-mcp-server")
    bare = world.place / "bare"
    bare.mkdir()
    async with world.serena() as serena:
        assert (await serena.probe(bare, True)).answers
        assert await serena.memories(bare, True) is None
    assert list(bare.iterdir()) == []


async def test_serena_is_found_by_its_variable_and_by_the_projects_own_settings(world: World) -> None:
    world.on_path()
    async with world.serena() as serena:
        assert not (await serena.probe(world.worktree, False)).configured
        assert (await serena.probe(world.worktree, True)).answers
    world.env["SERENA_PROJECT"] = str(world.worktree)
    async with world.serena() as serena:
        assert (await serena.probe(world.worktree, False)).answers


async def test_the_repl_interface_answers_but_is_not_written_through(world: World) -> None:
    start = f"exec {world.program} start-mcp-server --transport stdio --enable-web-dashboard false"
    wrapper = world.script("wrapped-mcp-server", f'{start} --open-web-dashboard false --project "{world.worktree}"')
    world.user_configures(wrapper)
    async with world.serena() as serena:
        answer = await serena.probe(world.worktree, True)
        assert (answer.answers, answer.detail) == (True, "Serena answers, with its REPL interface.")
        assert await serena.memories(world.worktree, True) is None


async def test_an_older_serena_without_todays_options_is_started_with_its_own(world: World) -> None:
    refuse = 'case "$*" in *--agent-interface*) echo "Error: No such option: --agent-interface" >&2; exit 2;; esac'
    older = world.script("older-serena", f'{refuse}\nexec {world.program} "$@" --agent-interface tools')
    world.user_configures(older, "start-mcp-server")
    async with world.serena() as serena:
        kept = await serena.memories(world.worktree, True)
        assert kept is not None
        await kept.write("note", "text")
        assert (world.memory_folder / "note.md").read_text() == "text"


async def test_a_serena_that_is_not_needed_ends_by_itself_and_the_next_leaves_complete_settings_as_they_were(
    world: World,
) -> None:
    world.user_configures(world.program, "start-mcp-server")
    async with world.serena(Timeouts(start=90, call=60, idle=0.5)) as serena:
        assert (await serena.probe(world.worktree, True)).answers  # Serena itself adds the settings that are missing
        await eventually(lambda: not world.processes())
        before = contents(world.worktree)
        assert before
        assert (await serena.probe(world.worktree, True)).answers
    assert contents(world.worktree) == before


async def test_a_serena_that_never_answers_and_ignores_every_request_to_end_is_ended(world: World) -> None:
    stubborn = "trap '' TERM HUP INT; while :; do sleep 1; done"
    world.user_configures(world.script("deaf-mcp-server", stubborn), "start-mcp-server")
    async with world.serena(Timeouts(start=1)) as serena:
        answer = await serena.probe(world.worktree, True)
        assert (answer.configured, answer.answers) == (True, False)


class Trusting(Protocols):
    """A service whose owner trusts every project."""

    async def trusts(self, root: str) -> bool:
        return True


async def test_the_mirror_goes_through_serena_steps_over_to_files_and_is_repaired(world: World) -> None:
    world.user_configures(world.program, "start-mcp-server")
    clock = [0.0]
    async with world.serena() as serena, stored(world) as store:
        mirror = Mirror(
            store, Trusting(store, Checks(serena.probe), foreign_state), serena.memories, clock=lambda: clock[0]
        )
        run = await begin(store, world.worktree)
        await mirror.step()
        assert [(one.place, one.behind) for one in await mirror.health()] == [("serena", False)]
        kept = await serena.memories(world.worktree, True)
        assert kept is not None
        assert await kept.read(memories.CURRENT_STATE) == state(world)
        assert run.id in state(world)

        world.user_configures(world.script("broken", "exit 1"), "start-mcp-server")
        kill(world)
        await store.write(lambda tx: queries.record_gate(tx, run, "SERENA_INIT", Status.PASS, "it answered", None))
        await mirror.step()
        (health,) = await mirror.health()
        assert (health.place, health.behind) == ("files", False)
        assert "Serena did not start" in (health.failure or "")
        assert "| SERENA_INIT | COMPLETE | it answered |" in state(world)

        world.user_configures(world.program, "start-mcp-server")
        clock[0] += 3600
        await mirror.step()
        (health,) = await mirror.health()
        assert (health.place, health.behind, health.failure) == ("serena", False, None)

        await store.write(lambda tx: queries.end(tx, run, "981ebf7", "Done", None, "Go on"))
        await mirror.step()
        left = {path.stem for path in world.memory_folder.iterdir()}
        assert left == {memories.HISTORY, memories.VIOLATIONS_LOG}
        assert run.id in (world.memory_folder / f"{memories.HISTORY}.md").read_text()


@asynccontextmanager
async def stored(world: World) -> AsyncIterator[SqliteStore]:
    store = SqliteStore.open(world.place / "holdfast.db")
    try:
        yield store
    finally:
        await store.close()


async def begin(store: SqliteStore, path: Path) -> Run:
    found = worktree_of(path)
    assert found is not None
    fields: dict[str, Any] = {"protocol": "agents", "definition": definition.dumps(AGENTS), "on_disk": ()}
    fields |= {"objective": "Try it", "branch": "main", "starting_commit": "e846d7e", "project": found.project}
    return await store.write(lambda tx: queries.begin(tx, root=found.root, **fields))


def state(world: World) -> str:
    return (world.memory_folder / f"{memories.CURRENT_STATE}.md").read_text()


def kill(world: World) -> None:
    """kill -9 of everything that runs for the project."""
    killed = world.processes()
    assert killed
    kill_all(killed)
