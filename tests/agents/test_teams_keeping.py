"""Looking after conversations of real agents: forked, adopted, linked again, warmed up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agents.scripted_model import ScriptedModel
from tests.agents.test_teams import World, _ask, _turns
from tests.installation import wait_until


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ScriptedModel() as model:
        made = World(tmp_path, model)
        made.write()
        try:
            yield made
        finally:
            made.holdfast.close()


def test_an_archived_conversations_files_are_deleted_on_request_only(world: World) -> None:
    with world.caller() as caller:
        session = _ask(caller, "backend", "one")["conversation"]["sessionId"]
        caller.call("teams_session", operation="archive", team="backend")
        assert list((world.config / "projects").rglob(f"{session}.jsonl"))
        assert _turns(_ask(caller, "backend", "two")) == 2
        caller.call("teams_session", operation="archive", team="backend", deleteFiles=True)
        assert not list((world.config / "projects").rglob(f"{session}.jsonl"))
        assert _turns(_ask(caller, "backend", "afresh")) == 1


def test_a_fork_goes_its_own_way(world: World) -> None:
    with world.caller() as caller:
        _ask(caller, "backend", "one", fromTeam="frontend")
        forked = caller.call("teams_session", operation="fork", team="backend", fromTeam="frontend", newThreadId="side")
        assert forked["terminal"].startswith("claude --resume ")
        assert _turns(_ask(caller, "backend", "on the side", fromTeam="frontend", threadId="side")) == 2
        assert _turns(_ask(caller, "backend", "main again", fromTeam="frontend")) == 2
        assert _turns(_ask(caller, "backend", "side again", fromTeam="frontend", threadId="side")) == 3


def test_conversations_of_a_lost_store_are_linked_again(world: World) -> None:
    with world.caller() as caller:
        first = _ask(caller, "backend", "one", fromTeam="frontend")
        _ask(caller, "backend", "elsewhere", threadId="other")
    assert world.holdfast.run("stop").returncode == 0
    for file in world.holdfast.home.glob("holdfast.db*"):
        file.unlink()
    with world.caller() as caller:
        wait_until(
            lambda: len(caller.call("teams_session", operation="list")["conversations"]) == 2, "both were linked again"
        )
        again = _ask(caller, "backend", "two", fromTeam="frontend")
        assert (_turns(again), again["conversation"]["sessionId"]) == (2, first["conversation"]["sessionId"])


def test_a_session_on_disk_is_adopted(world: World) -> None:
    with world.caller() as caller:
        first = _ask(caller, "backend", "one", fromTeam="frontend")
        session = first["conversation"]["sessionId"]
        caller.call("teams_session", operation="reset", team="backend", fromTeam="frontend")
        assert _turns(_ask(caller, "backend", "afresh", fromTeam="frontend")) == 1
        assert session in world.holdfast.run("teams", "found").stdout
        adopted = world.holdfast.run("teams", "adopt", "backend", session, "--from", "mobile")
        assert adopted.returncode == 0, adopted.stderr
        assert _turns(_ask(caller, "backend", "goes on", fromTeam="mobile")) == 2
        assert world.holdfast.run("teams", "adopt", "backend", session).returncode == 1
        stats = world.holdfast.run("teams", "stats").stdout
        assert "frontend → backend" in stats and "conversations" in stats


def test_the_most_used_pairs_are_warm_after_a_start(world: World) -> None:
    world.settings["warmUp"] = 1
    world.write()
    with world.caller() as caller:
        reply = _ask(caller, "backend", "one", fromTeam="frontend")
    assert world.holdfast.run("stop").returncode == 0
    with world.caller() as caller:
        caller.call("teams_status")
        wait_until(lambda: reply["conversation"]["sessionId"] in world.sessions(), "its process is there, unasked")
        assert _turns(_ask(caller, "backend", "two", fromTeam="frontend")) == 2
