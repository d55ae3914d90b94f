"""A conversation of the real Claude Code outlives its process, its file, its configuration and its place."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.agents.agent_world import World, family, gone, new_id, parent_of, play, say, turns_seen

from holdfast.agents import AgentSpec
from holdfast.agents.claude.run import ClaudeAgent
from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.agents.claude.transcripts.queries import Entry
from holdfast.agents.claude.transcripts.store import TranscriptStore
from holdfast.agents.errors import SessionInUse, TranscriptCopyFailed
from holdfast.errors import StoreError


async def turn_in(made: World, spec: AgentSpec, name: str, *, resume: bool = True) -> int:
    """One turn in a process of its own; how many turns the model has seen by then."""
    session = await made.agent().open(spec, name, resume=resume)
    try:
        return turns_seen(await say(session, "go on"))
    finally:
        await session.close()


def the_file(made: World, name: str) -> Path:
    (found,) = made.config.glob(f"projects/*/{name}.jsonl")
    return found


async def rows(made: World, name: str) -> list[Entry]:
    return (await made.transcripts.everywhere(name)).get("", [])


def uuids(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    return [entry["uuid"] for entry in entries if "uuid" in entry]


def test_it_goes_on_without_its_file_its_configuration_and_at_another_place(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = made.place / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    async def scenario() -> None:
        name, here = new_id(), made.spec()
        made.config.mkdir()
        (made.config / ".credentials.json").write_text('{"claudeAiOauth": {"accessToken": "secret"}}')
        assert await turn_in(made, here, name, resume=False) == 1
        the_file(made, name).unlink()
        session = await made.agent().open(here, name, resume=True)
        assert turns_seen(await say(session, "go on")) == 2
        assert the_file(made, name).exists()
        assert list(temporary.iterdir()) == [], "the agent was moved to a configuration directory of its own"
        await session.close()
        shutil.rmtree(made.config)
        assert await turn_in(made, here, name) == 3

        moved = made.spec(project=made.place / "other place")
        assert await turn_in(made, moved, name) == 4
        away = made.spec(project=made.place / "away", env={"CLAUDE_CONFIG_DIR": str(made.place / "another")})
        assert await turn_in(made, away, name) == 5
        assert await turn_in(made, here, name) == 6

        entries = await rows(made, name)
        assert len(uuids(entries)) == len(set(uuids(entries)))
        assert [
            project["session_id"] for project in await made.transcripts.list_sessions(project_key(made.project))
        ] == [name]

    play(made, scenario)
    assert list(temporary.iterdir()) == []
    assert list(made.place.rglob(".credentials.json")) == []


@pytest.mark.parametrize("name", ["größe 日本 😀.x_y/decomposed e\u0301", "/".join(["😀é" * 10 + "d" * 40] * 4)])
def test_files_are_restored_where_claude_code_itself_keeps_them(made: World, name: str) -> None:
    async def scenario() -> None:
        spec, session = made.spec(project=made.place / name), new_id()
        assert await turn_in(made, spec, session, resume=False) == 1
        path = the_file(made, session)
        assert path.parent.name == project_key(spec.project)
        path.unlink()
        assert await turn_in(made, spec, session) == 2
        assert the_file(made, session) == path
        assert [found.session_id for found in await made.agent().list_sessions(spec)] == [session]

    play(made, scenario)


def test_a_turn_that_was_answered_survives_a_kill_right_after_it(made: World) -> None:
    async def scenario() -> None:
        agent, name = made.agent(), new_id()
        session = await agent.open(made.spec(), name, resume=False)
        for number in (1, 2, 3):
            assert turns_seen(await say(session, "go on")) == number
            assert session.pid is not None
            os.kill(session.pid, signal.SIGKILL)
            await session.close()
            session = await agent.open(made.spec(), name, resume=True)
        assert turns_seen(await say(session, "go on")) == 4
        await session.close()

    play(made, scenario)


def test_a_file_that_is_behind_its_mirror_is_brought_level(made: World) -> None:
    async def scenario() -> None:
        name = new_id()
        assert await turn_in(made, made.spec(), name, resume=False) == 1
        path = the_file(made, name)
        first = path.read_text()
        assert await turn_in(made, made.spec(), name) == 2
        path.write_text(first + '{"type":"user","uuid":"cut o')
        assert await turn_in(made, made.spec(), name) == 3

    play(made, scenario)


def test_a_mirror_that_is_behind_its_file_is_brought_level(made: World) -> None:
    async def scenario() -> None:
        name = new_id()
        assert await turn_in(made, made.spec(), name, resume=False) == 1
        first = await rows(made, name)
        assert await turn_in(made, made.spec(), name) == 2
        whole = uuids(await rows(made, name))
        await made.transcripts.put({"project_key": project_key(made.project), "session_id": name}, first)
        assert await turn_in(made, made.spec(), name) == 3
        level = uuids(await rows(made, name))
        assert level[: len(whole)] == whole
        assert len(level) == len(set(level))

    play(made, scenario)


def test_resuming_a_level_conversation_writes_nothing_to_its_file_or_its_rows(made: World) -> None:
    async def scenario() -> None:
        name = new_id()
        assert await turn_in(made, made.spec(), name, resume=False) == 1
        before = the_file(made, name).stat().st_ino, await rows(made, name)
        session = await made.agent().open(made.spec(), name, resume=True)
        assert (the_file(made, name).stat().st_ino, await rows(made, name)) == before
        await session.close()

    play(made, scenario)


class Failing(TranscriptStore):
    """A store that loses its disk."""

    failing = False

    async def append(self, key: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> None:
        if self.failing:
            raise StoreError("The disk is full.")
        await super().append(key, entries)


def test_a_turn_that_was_not_mirrored_fails_and_is_not_lost(made: World) -> None:
    async def scenario() -> None:
        name = new_id()
        transcripts = made.transcripts
        failing = Failing(transcripts._store)
        agent = ClaudeAgent(made.place / "data", failing, prefer_bundled=True)
        session = await agent.open(made.spec(), name, resume=False)
        assert turns_seen(await say(session, "one")) == 1
        failing.failing = True
        with pytest.raises(TranscriptCopyFailed, match="The disk is full"):
            await say(session, "two")
        await session.close()
        assert await turn_in(made, made.spec(), name) == 3

    play(made, scenario)


def test_a_configuration_directory_behind_a_symbolic_link_is_mirrored(made: World) -> None:
    async def scenario() -> None:
        name = new_id()
        (made.place / "real").mkdir()
        link = made.place / "link"
        link.symlink_to(made.place / "real")
        spec = made.spec(env={"CLAUDE_CONFIG_DIR": str(link)})
        assert await turn_in(made, spec, name, resume=False) == 1
        assert await turn_in(made, spec, name) == 2

    play(made, scenario)


def test_the_agent_of_a_killed_daemon_is_waited_for_before_its_session_is_taken_up(made: World) -> None:
    name = new_id()
    parent = parent_of(made, name, ["one", "sleep 600"])
    members = family(parent.agent_pid)

    async def scenario() -> None:
        with pytest.raises(SessionInUse):
            await made.agent().open(made.spec(), name, resume=True)
        parent.kill()
        agent = ClaudeAgent(made.place / "data", made.transcripts, prefer_bundled=True)
        session = await agent.open(made.spec(), name, resume=True)
        assert gone(members[1:])
        assert turns_seen(await say(session, "go on")) >= 2
        await session.close()

    play(made, scenario)
