"""The mirror: memories follow the runs, wherever they can be kept, and nothing of others is lost or followed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.contract.conftest import Place as StorePlace
from tests.contract.protocol_world import Repository, no_serena

from holdfast.identity.worktree import worktree_of
from holdfast.protocol import definition, memories, queries
from holdfast.protocol.checks.gates import Checks
from holdfast.protocol.model import Status
from holdfast.protocol.protocols import AGENTS
from holdfast.protocol.runs import Run, RunStatus
from holdfast.protocol.serena.mirror import RETRY_S, STATE_JSON, Mirror
from holdfast.protocol.service import Protocols
from holdfast.store import Store

pytestmark = pytest.mark.anyio


@dataclass
class World:
    """A worktree, its runs and their mirror."""

    store: Store
    worktree: Path
    now: float = 0.0

    def __post_init__(self) -> None:
        self.mirror = self.another_daemon()

    def another_daemon(self) -> Mirror:
        runs = Protocols(self.store, Checks(no_serena), self.worktree.parent / "home")
        return Mirror(self.store, runs, clock=lambda: self.now)

    @property
    def root(self) -> str:
        found = worktree_of(self.worktree)
        assert found is not None
        return found.root

    async def begin(self, objective: str = "Try it") -> Run:
        found = worktree_of(self.worktree)
        assert found is not None
        kept = definition.dumps(AGENTS)
        new = Run(0, "", found.root, found.project, AGENTS.name, kept, objective, "main", "e846d7e")
        return await self.store.write(lambda tx: queries.begin(tx, new, ()))

    async def passes(self, run: Run, gate: str) -> None:
        await self.store.write(lambda tx: queries.record_gate(tx, run, gate, Status.PASS, "seen", None))

    async def end(self, run: Run) -> None:
        ended = replace(run, status=RunStatus.COMPLETE, end_commit="981ebf7", summary="It is done", notes="Go on")
        await self.store.write(lambda tx: queries.end(tx, replace(ended, decisions='["Kept it small"]')))

    async def violates(self, run: Run) -> None:
        requirement = "MUST read the handoff"
        await self.store.write(
            lambda tx: queries.add_violation(tx, run, "INIT", "SERENA_INIT", requirement, "CRITICAL")
        )

    def text(self, path: str) -> str | None:
        return (self.worktree / path).read_text() if (self.worktree / path).exists() else None

    def write(self, path: str, text: str) -> None:
        (self.worktree / path).write_text(text)

    def memory(self, name: str) -> str | None:
        return self.text(f".serena/memories/{name}.md")

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.worktree)) for path in self.worktree.rglob("*") if path.is_file())

    def failures(self) -> list[str]:
        assert {*self.mirror.failures} <= {self.root}
        return list(self.mirror.failures.values())


@asynccontextmanager
async def living(place: StorePlace, *folders: str) -> AsyncIterator[World]:
    worktree = place.home / "work"
    worktree.mkdir()
    for folder in folders:
        (worktree / folder).mkdir(parents=True)
    store = place.open()
    try:
        yield World(store, worktree)
    finally:
        await store.close()


async def test_the_memories_follow_a_run_from_its_start_to_its_end(place: StorePlace) -> None:
    async with living(place, ".serena") as world:
        run = await world.begin()
        await world.mirror.step()
        first = world.memory(memories.CURRENT_STATE)
        assert first is not None
        assert f"**Session ID**: {run.id}" in first
        assert "(none recorded)" in (world.memory(memories.HISTORY) or "")

        await world.passes(run, "SERENA_INIT")
        await world.violates(run)
        await world.mirror.step()
        assert "| SERENA_INIT | COMPLETE | seen |" in (world.memory(memories.CURRENT_STATE) or "")
        assert "MUST read the handoff" in (world.memory(memories.VIOLATIONS_LOG) or "")

        await world.end(run)
        await world.mirror.step()
        assert world.memory(memories.CURRENT_STATE) is None
        assert "- **Commit SHA**: 981ebf7" in (world.memory(memories.HISTORY) or "")
        assert "MUST read the handoff" in (world.memory(memories.VIOLATIONS_LOG) or "")
        assert world.failures() == []


async def test_without_serenas_folder_the_state_goes_beside_the_session_logs(place: StorePlace) -> None:
    async with living(place, ".agents/sessions") as world:
        run = await world.begin()
        await world.mirror.step()
        assert world.files() == [STATE_JSON]
        state = json.loads(world.text(STATE_JSON) or "")
        assert (state["session_id"], state["current_phase"]) == (run.id, "INIT")
        await world.end(run)
        await world.mirror.step()
        state = json.loads(world.text(STATE_JSON) or "")
        assert "session_id" not in state
        assert [one["commit_sha"] for one in state["history"]] == ["981ebf7"]
        assert world.failures() == []


async def test_live_state_is_no_change_for_git(sqlite_place: StorePlace) -> None:
    async with living(sqlite_place, ".serena", ".agents/sessions") as world:
        git = Repository(world.worktree).git
        git("init", "--quiet")
        run = await world.begin()
        await world.mirror.step()
        (world.worktree / ".serena/memories/.session-history.md.0123456789abcdef").write_text("half")
        assert world.memory(memories.CURRENT_STATE) is not None
        assert git("status", "--porcelain", "--untracked-files=all") == ""
        await world.end(run)
        (world.worktree / ".serena").rename(sqlite_place.home / "gone")
        await world.begin()
        await world.mirror.step()
        assert world.text(STATE_JSON) is not None
        assert git("status", "--porcelain", "--untracked-files=all") == ""


async def test_a_project_with_neither_folder_stays_as_it_is(place: StorePlace) -> None:
    async with living(place) as world:
        await world.begin()
        await world.mirror.step()
        assert list(world.worktree.iterdir()) == []
        assert world.failures() == []


async def test_a_step_with_nothing_new_touches_nothing(place: StorePlace) -> None:
    async with living(place, ".serena") as world:
        await world.begin()
        await world.mirror.step()
        before = {name: (world.worktree / name).stat().st_mtime_ns for name in world.files()}
        await world.mirror.step()
        assert {name: (world.worktree / name).stat().st_mtime_ns for name in world.files()} == before


async def test_a_failed_write_is_visible_and_repaired(place: StorePlace) -> None:
    async with living(place, ".serena") as world:
        (world.worktree / ".serena" / "memories").write_text("in the way")
        await world.begin()
        await world.mirror.step()
        (failure,) = world.failures()
        assert "memories" in failure
        (world.worktree / ".serena" / "memories").unlink()
        world.now += RETRY_S
        await world.mirror.step()
        assert world.failures() == []


async def test_a_new_daemon_goes_on_where_the_last_one_was_cut_off(place: StorePlace) -> None:
    async with living(place, ".serena") as world:
        run = await world.begin()
        await world.mirror.step()
        await world.passes(run, "SERENA_INIT")  # committed, and then the daemon is gone
        await world.another_daemon().step()
        assert "| SERENA_INIT | COMPLETE | seen |" in (world.memory(memories.CURRENT_STATE) or "")


async def test_a_worktree_of_another_machine_is_left_to_its_own_daemon(place: StorePlace) -> None:
    async with living(place, ".serena") as world:
        await world.begin()
        elsewhere = world.worktree.rename(world.worktree.with_name("elsewhere"))
        await world.mirror.step()
        assert world.mirror.failures == {}
        elsewhere.rename(world.worktree)
        world.now += RETRY_S
        await world.mirror.step()
        assert world.failures() == []


FOREIGN = """# Session State

- **Session ID**: 2025-12-21-session-07
- **Objective**: Something else's work

| Phase | Status | Evidence |
|-------|--------|----------|
| SERENA_INIT | COMPLETE | Tool output |
"""


@pytest.mark.parametrize("path", [f".serena/memories/{memories.CURRENT_STATE}.md", STATE_JSON])
async def test_a_state_that_something_else_wrote_is_kept_under_another_name(place: StorePlace, path: str) -> None:
    folder, _, name = path.rpartition("/")
    async with living(place, folder) as world:
        theirs = FOREIGN if name.endswith(".md") else json.dumps({"session_id": "2025-12-21-session-07"})
        world.write(path, theirs)
        git = Repository(world.worktree).git
        git("init", "--quiet")
        run = await world.begin()
        await world.mirror.step()
        assert run.id in (world.text(path) or "")
        (kept,) = (world.worktree / folder).glob(f"{Path(name).stem}.kept-*")
        assert kept.read_text() == theirs
        assert git("status", "--porcelain", "--untracked-files=all") == "", "it does not block GIT_COMMIT"
        await world.passes(run, "SERENA_INIT")
        await world.mirror.step()
        assert "SERENA_INIT" in (world.text(path) or "") and world.failures() == []


async def test_the_end_of_a_run_does_not_take_anothers_state_with_it(place: StorePlace) -> None:
    async with living(place, ".serena/memories") as world:
        run = await world.begin()
        await world.end(run)
        world.write(f".serena/memories/{memories.CURRENT_STATE}.md", FOREIGN)
        await world.mirror.step()
        assert world.memory(memories.CURRENT_STATE) == FOREIGN
        assert world.failures() == []


@pytest.mark.parametrize("linked", [".serena", ".serena/memories", ".agents", ".agents/sessions"])
async def test_nothing_is_written_through_a_link_that_leaves_the_worktree(
    sqlite_place: StorePlace, linked: str
) -> None:
    async with living(sqlite_place) as world:
        outside = sqlite_place.home / "outside"
        (outside / "sessions").mkdir(parents=True)
        (outside / "memories").mkdir()
        link = world.worktree / linked
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(outside, target_is_directory=True)
        await world.begin()
        await world.mirror.step()
        assert [path for path in outside.rglob("*") if path.is_file()] == []


async def test_a_memory_that_is_a_link_is_neither_read_nor_followed(sqlite_place: StorePlace) -> None:
    async with living(sqlite_place, ".serena/memories", ".agents/sessions") as world:
        secret = sqlite_place.home / "secret.md"
        secret.write_text(FOREIGN)
        for name in (f".serena/memories/{memories.CURRENT_STATE}.md", f".serena/memories/{memories.HISTORY}.md"):
            (world.worktree / name).symlink_to(secret)
        (world.worktree / STATE_JSON).symlink_to(secret)
        await world.begin()
        await world.mirror.step()
        assert secret.read_text() == FOREIGN
        assert len(world.failures()) == 1


async def test_when_the_memories_move_to_serenas_folder_the_state_file_goes(sqlite_place: StorePlace) -> None:
    async with living(sqlite_place, ".agents/sessions") as world:
        run = await world.begin()
        await world.mirror.step()
        (world.worktree / ".serena").mkdir()
        await world.passes(run, "SERENA_INIT")
        await world.mirror.step()
        assert world.text(STATE_JSON) is None
        assert world.memory(memories.CURRENT_STATE) is not None


async def test_a_project_that_was_only_trusted_has_nothing_to_mirror(sqlite_place: StorePlace) -> None:
    async with living(sqlite_place, ".serena") as world:
        await world.store.write(lambda tx: queries.trust(tx, world.root, "digest"))
        await world.mirror.step()
        assert world.files() == []
        assert world.failures() == []
