"""A real Serena: found, asked, and gone when it has answered or does not."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from tests.agents.serena_environment import serena_program

from holdfast.protocol.runs import SerenaAnswer
from holdfast.protocol.serena.probe import Serena

pytestmark = pytest.mark.anyio

WAIT = 60.0
"""A limit for what must happen at all; no test measures time."""
PATIENCE_S = 90.0
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
    async def serena(self, *, answer_s: float = PATIENCE_S, wait_s: float = PATIENCE_S) -> AsyncIterator[Serena]:
        """Serena for this user; when the block ends, nothing of it may be left."""
        serena = Serena(self.place / "data", self.env, answer_s=answer_s, wait_s=wait_s)
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


async def test_a_serena_that_answers_is_said_to_and_nothing_of_it_is_left(world: World) -> None:
    world.user_configures(world.program, "start-mcp-server", "--context", "ide-assistant", "--project", "/elsewhere")
    before = contents(world.worktree)
    async with world.serena() as serena:
        answer = await serena.probe(world.worktree, True)
        assert (answer.configured, answer.answers) == (True, True), answer.detail
        await eventually(lambda: not world.processes())
        assert await serena.probe(world.worktree, True) is answer, "it is not started for every question"
    assert contents(world.worktree) == before, "a project is not opened, so its settings stay as they were trusted"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


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


async def test_what_the_project_names_is_started_only_when_it_is_trusted(world: World) -> None:
    mark = world.place / "started"
    world.project_configures(world.script("serena", f"touch {mark}; exit 1"))
    async with world.serena() as serena:
        answer = await serena.probe(world.worktree, False)
        assert (answer.configured, answer.answers) == (False, False)
        assert "holdfast trust" in answer.detail
        assert not mark.exists()
        assert (await serena.probe(world.worktree, True)).configured
        assert mark.exists()


async def test_the_users_serena_answers_but_does_not_open_a_project_that_is_not_trusted(world: World) -> None:
    world.user_configures(world.program, "start-mcp-server")
    (world.worktree / ".serena" / "project.yml").write_text("this: [is not: settings\n")
    async with world.serena() as serena:
        assert (await serena.probe(world.worktree, False)).answers
        assert not world.memory_folder.exists()


async def test_a_project_that_serena_does_not_know_stays_without_its_files(world: World) -> None:
    world.user_configures(world.program, "start-mcp-server")
    bare = world.place / "bare"
    bare.mkdir()
    async with world.serena() as serena:
        assert (await serena.probe(bare, True)).answers
    assert list(bare.iterdir()) == []


async def test_serena_is_found_by_its_variable_and_by_the_projects_own_settings(world: World) -> None:
    world.on_path()
    async with world.serena() as serena:
        assert (await serena.probe(world.worktree, False)).answers
    (world.worktree / ".serena" / "project.yml").unlink()
    async with world.serena() as serena:
        assert not (await serena.probe(world.worktree, True)).configured
    world.env["SERENA_PROJECT"] = str(world.worktree)
    async with world.serena() as serena:
        assert (await serena.probe(world.worktree, False)).answers


async def test_the_repl_interface_answers_too(world: World) -> None:
    start = f"exec {world.program} start-mcp-server --transport stdio --enable-web-dashboard false"
    world.user_configures(world.script("wrapped-mcp-server", f"{start} --open-web-dashboard false"))
    async with world.serena() as serena:
        assert (await serena.probe(world.worktree, True)).answers


async def test_an_older_serena_without_todays_options_is_started_with_its_own(world: World) -> None:
    refuse = 'case "$*" in *--agent-interface*) echo "Error: No such option: --agent-interface" >&2; exit 2;; esac'
    older = world.script("older-serena", f'{refuse}\nexec {world.program} "$@" --agent-interface tools')
    world.user_configures(older, "start-mcp-server")
    async with world.serena() as serena:
        assert (await serena.probe(world.worktree, True)).answers


async def test_a_serena_that_never_answers_keeps_nobody_waiting_and_is_ended(world: World) -> None:
    stubborn = "trap '' TERM HUP INT; while :; do sleep 1; done"
    world.user_configures(world.script("deaf-mcp-server", stubborn), "start-mcp-server")
    async with world.serena(answer_s=600, wait_s=0.1) as serena:
        answer = await serena.probe(world.worktree, True)
        assert (answer.configured, answer.answers) == (True, False)
        assert "has not answered" in answer.detail and serena.silent
