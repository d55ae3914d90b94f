"""Who is at work for a target, as its agents' hooks and files tell: restarts are noticed, and nothing else is one."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contract.bridge_desk import Agent, Desk, Files, caller
from tests.contract.conftest import Place

from holdfast.bridge.hook_delivery import HOLD_MS, LONGEST_OPENING
from holdfast.bridge.hooks import QUIET_S
from holdfast.bridge.model import TaskReport
from holdfast.bridge.views import status_view, taken_view
from holdfast.teams.team import Delivery

pytestmark = pytest.mark.anyio


# -- who is at work ---------------------------------------------------------------------------------------------------


async def test_an_agent_that_is_killed_and_started_anew_is_told_its_task_and_asked(desk: Desk, agent: Agent) -> None:
    sent = await desk.send("Fix the DNS record")
    await agent.gets()
    await desk.task("Fix nexus.mg DNS record")
    new = desk.agent("b")
    told = await new.starts()
    assert "Fix nexus.mg DNS record" in told and 'step was "2"' in told and "msg-789" in told
    assert "Resume or start fresh?" in told and "1 message is waiting" in told
    assert len(told) <= LONGEST_OPENING
    assert await desk.restarts() == ["a → b"]
    again = await new.gets()
    assert f"Message {sent}" in again and "handed out before" in again


async def test_the_longest_task_leaves_room_for_the_question(desk: Desk, agent: Agent) -> None:
    await desk.task("Fix it " * 250)
    await desk.send("One")
    told = await desk.agent("b" * 128).starts()
    assert len(told) <= LONGEST_OPENING
    assert "Resume or start fresh?" in told and "1 message is waiting" in told


@pytest.mark.parametrize("source", ["resume", "compact", "startup", "clear"])
async def test_the_same_session_again_is_no_restart(desk: Desk, agent: Agent, source: str) -> None:
    await desk.task("Fix it")
    desk.start_holdfast()
    assert await agent.starts(source) == ""
    assert await desk.restarts() == []


@pytest.mark.parametrize("source", ["startup", "clear", "resume"])
async def test_another_session_in_its_place_is_a_restart(desk: Desk, agent: Agent, source: str) -> None:
    await desk.task("Fix it")
    assert "Fix it" in await desk.agent("b").starts(source)
    assert await desk.restarts() == ["a → b"]


async def test_a_second_session_beside_a_living_one_is_no_restart_until_that_is_gone(desk: Desk, agent: Agent) -> None:
    await desk.task("Fix it")
    desk.connected.add("a")
    second = desk.agent("b")
    assert await second.starts() == ""
    assert await second.gets("One.") == ""
    assert await desk.restarts() == []
    desk.connected.clear()
    assert "Fix it" in await second.gets("Two.")
    assert await desk.restarts() == ["a → b"]


async def test_two_sessions_that_both_live_take_turns_without_a_restart(desk: Desk, agent: Agent) -> None:
    second = desk.agent("b")
    await second.starts()
    for number in range(3):
        desk.now += 1
        await agent.gets(f"One {number}")
        await second.gets(f"Two {number}")
    assert await desk.restarts() == ["a → b"]


async def test_an_agent_hears_of_its_message_again_after_a_compaction(desk: Desk, agent: Agent) -> None:
    sent = await desk.send("One")
    await agent.gets()
    assert sent in await agent.starts("compact")
    assert await desk.figures() == (0, 1)


async def test_what_a_dead_agent_had_comes_back_and_a_living_one_keeps_it(place: Place, tmp_path: Path) -> None:
    store = place.open()
    try:
        desk = Desk(store, tmp_path)
        living, dead = desk.agent("living"), desk.agent("dead", "felt")
        for agent, target in ((living, "homelab"), (dead, "felt")):
            await desk.send("One", target=target)
            assert "One" in await agent.gets()
        desk.connected.add("living")
        desk.now = 2 * QUIET_S
        for _ in range(3):
            place.shift += HOLD_MS * 2 // 3
            await desk.hooks.keep()
        assert (desk.hooks.attended("homelab"), desk.hooks.attended("felt")) == (True, False)
        assert await desk.agent("other").gets() == ""
        assert "One" in await desk.agent("other-felt", "felt").gets()
    finally:
        await store.close()


async def test_an_agent_is_known_to_be_there_after_a_restart_of_holdfast(desk: Desk, agent: Agent) -> None:
    assert desk.hooks.attended("homelab")
    desk.connected.add("a")
    desk.start_holdfast()
    await desk.hooks.keep()
    assert desk.hooks.attended("homelab")
    await agent.ends()
    desk.connected.clear()
    assert not desk.hooks.attended("homelab")


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(desk: Desk) -> Files:
    return Files(desk)


async def test_another_id_in_the_session_file_is_a_restart(desk: Desk, files: Files) -> None:
    await files.says("abc-123")
    await files.look(5)
    assert await desk.restarts() == []
    await files.says("def-456")
    await files.look(5)
    assert await desk.restarts() == ["abc-123 → def-456"]


async def test_a_restart_of_holdfast_is_none_of_the_agent(desk: Desk, files: Files) -> None:
    await files.says("abc-123")
    desk.start_holdfast()
    await files.look(3)
    assert await desk.restarts() == []
    desk.start_holdfast()
    await files.says("def-456")
    assert await desk.restarts() == ["abc-123 → def-456"]


async def test_what_stood_there_for_a_single_look_is_not_believed(desk: Desk, files: Files) -> None:
    await files.says("abc-123")
    for passing in ("abc-12", "abc"):
        files.session.write_text(json.dumps({"id": passing}))
        await files.look(1)
    await files.says("abc-123")
    assert await desk.restarts() == []


async def test_the_file_of_another_chat_or_project_is_not_believed(
    desk: Desk, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    await files.says("abc-123", chat_id=-100, project="homelab")
    with caplog.at_level(logging.WARNING):
        await files.says("def-456", chat_id="-200")
        await files.look(5)
        await files.says("ghi-789", chat_id="-100", project="felt")
    assert await desk.restarts() == []
    assert [record.getMessage() for record in caplog.records] == [
        "the session file of homelab is of chat -200, and was not believed",
        "the session file of homelab is of project felt, and was not believed",
    ]
    await files.says("jkl-012", chat_id="-100", project="a directory")
    assert await desk.restarts() == ["abc-123 → jkl-012"]


async def test_the_file_of_an_agent_with_hooks_is_no_second_opinion(desk: Desk, files: Files) -> None:
    agent = desk.agent()
    await agent.starts()
    await files.says("a-name-of-its-own")
    await agent.gets()
    await files.look()
    assert await desk.restarts() == []


async def test_the_session_file_of_a_target_whose_turns_holdfast_runs_is_no_second_opinion(
    desk: Desk, files: Files
) -> None:
    desk.teams["homelab"] = replace(desk.teams["homelab"], delivery=Delivery.RUN)
    for _ in range(3):
        await files.says("a-name-of-its-own")
        await desk.bridge.seen("homelab", "the-conversation", "run")
    assert await desk.restarts() == []


async def test_a_message_that_the_dead_incarnation_took_comes_back(desk: Desk, files: Files) -> None:
    await files.says("abc-123")
    sent = await desk.send("One")
    assert taken_view(await desk.bridge.take(caller("abc-123"), "homelab"))["id"] == sent
    await files.says("def")
    assert taken_view(await desk.bridge.take(caller("def"), "homelab"))["id"] == sent


async def test_the_state_file_is_the_task_and_each_change_of_it_an_update(desk: Desk, files: Files) -> None:
    for step in (1, 2, 2):
        files.state.write_text(json.dumps({"current_task": "Fix DNS", "last_completed_step": step}))
        await files.look(3)
    assert [one["content"] for one in await desk.updates("task")] == ["Fix DNS (step 1)", "Fix DNS (step 2)"]
    desk.start_holdfast()
    await files.look(3)
    assert len(await desk.updates("task")) == 2


async def test_an_old_state_file_does_not_undo_what_the_agent_saved_since(desk: Desk, files: Files) -> None:
    files.state.write_text(json.dumps({"current_task": "Long ago"}))
    os.utime(files.state, (1, 1))
    await desk.task("Just now")
    await files.look(3)
    assert status_view(await desk.bridge.status())["targets"]["homelab"]["current_task"] == "Just now"


async def test_an_old_state_file_does_not_open_a_task_again_that_the_agent_finished(desk: Desk, files: Files) -> None:
    files.state.write_text(json.dumps({"current_task": "Fix DNS"}))
    await files.look(3)
    os.utime(files.state, (1, 1))
    await desk.bridge.save_task(caller(), "homelab", TaskReport(None, done=True))
    await files.look(3)
    assert [one["content"] for one in await desk.updates("task")] == ["Fix DNS", "Done: Fix DNS"]
    assert "current_task" not in status_view(await desk.bridge.status())["targets"]["homelab"]


SPOILED = st.one_of(
    st.binary(max_size=120).map(lambda content: ("file", content)),
    st.integers(0, 60).map(lambda cut: ("file", b'{"id": "abc-123", "current_task": "Fix DNS", "x": 1}'[:cut])),
    st.sampled_from(["gone", "link", "pipe", "folder", "huge"]).map(lambda kind: (kind, b"")),
)


@pytest.mark.parametrize("examples", [20, pytest.param(60, marks=pytest.mark.long)])
def test_whatever_becomes_of_the_files_there_is_no_crash_and_no_false_restart(
    tmp_path_factory: pytest.TempPathFactory, examples: int
) -> None:
    async def play(spoiled: list[tuple[str, bytes]]) -> None:
        home = tmp_path_factory.mktemp("home")
        store = Place("sqlite", home, "").open()
        try:
            files = Files(desk := Desk(store, home))
            files.state.write_text(json.dumps({"current_task": "Fix DNS"}))
            await files.says("abc-123")
            for kind, content in spoiled:
                spoil(files.session, kind, content)
                spoil(files.state, kind, content)
                await files.look()
            spoil(files.session, "gone", b"")
            await files.says("abc-123")
            assert await desk.restarts() == []
            assert {one["content"] for one in await desk.updates("task")} == {"Fix DNS"}
        finally:
            await store.close()

    @settings(max_examples=examples)
    @given(spoiled=st.lists(SPOILED, max_size=8))
    def whatever(spoiled: list[tuple[str, bytes]]) -> None:
        asyncio.run(play(spoiled))

    whatever()


def spoil(path: Path, kind: str, content: bytes) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    path.unlink(missing_ok=True)
    if kind == "file":
        path.write_bytes(content)
    elif kind == "link":
        elsewhere = path.with_name("elsewhere")
        elsewhere.write_text('{"id": "def-456", "current_task": "Another"}')
        path.symlink_to(elsewhere)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "huge":
        path.write_bytes(b'{"id": "def-456", "current_task": "Another"}' + b" " * 100_000)
