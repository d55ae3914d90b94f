"""Looking after conversations of real agents: forked, adopted, linked again, warmed up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.agents.teams_world import World, ask, turns
from tests.installation import wait_until
from tests.process.agent import Agent


def test_an_archived_conversations_files_are_deleted_on_request_only(world: World) -> None:
    with world.caller() as caller:
        session = ask(caller, world.backend, "one")["conversation"]["sessionId"]
        caller.call("teams_session", operation="archive", team=world.backend)
        assert list((world.config / "projects").rglob(f"{session}.jsonl"))
        assert turns(ask(caller, world.backend, "two")) == 2
        caller.call("teams_session", operation="archive", team=world.backend, deleteFiles=True)
        assert not list((world.config / "projects").rglob(f"{session}.jsonl"))
        assert turns(ask(caller, world.backend, "afresh")) == 1


def test_a_fork_goes_its_own_way(world: World) -> None:
    with world.caller() as caller:
        ask(caller, world.backend, "one", fromTeam=world.frontend)
        forked = caller.call(
            "teams_session", operation="fork", team=world.backend, fromTeam=world.frontend, newThreadId="side"
        )
        assert forked["terminal"].startswith("claude --resume ")
        assert turns(ask(caller, world.backend, "on the side", fromTeam=world.frontend, threadId="side")) == 2
        assert turns(ask(caller, world.backend, "main again", fromTeam=world.frontend)) == 2
        assert turns(ask(caller, world.backend, "side again", fromTeam=world.frontend, threadId="side")) == 3


def test_a_fork_is_a_snapshot_of_its_moment(world: World) -> None:
    with world.caller() as caller:
        ask(caller, world.backend, "MANGO-1")
        forked = fork(caller, world, "side")
        ask(caller, world.backend, "PAPAYA-2")
        caller.call("teams_session", operation="archive", team=world.backend, deleteFiles=True)
        ask(caller, world.backend, "QUINCE-3", threadId="side")
        told = world.model.requests[-1].text
        assert "MANGO-1" in told and "PAPAYA-2" not in told
        assert forked["conversation"]["sessionId"] in forked["terminal"]


@pytest.mark.parametrize("how", [{"operation": "reset"}, {"operation": "archive", "deleteFiles": True}])
@pytest.mark.parametrize("thread", ["main", "side"])
def test_a_conversation_that_was_reset_or_deleted_is_forgotten(world: World, how: dict[str, Any], thread: str) -> None:
    with world.caller() as caller:
        ask(caller, world.backend, "MANGO-1")
        fork(caller, world, "side")
        caller.call("teams_session", team=world.backend, threadId=thread, **how)
        ask(caller, world.backend, "PAPAYA-2", threadId=thread)
        assert "MANGO-1" not in world.model.requests[-1].text
        other = {"main": "side", "side": "main"}[thread]
        ask(caller, world.backend, "QUINCE-3", threadId=other)
        assert "MANGO-1" in world.model.requests[-1].text, "it is another conversation"


def test_deleting_a_conversation_deletes_the_sessions_that_it_left_too(world: World) -> None:
    with world.caller() as caller:
        for word in ("MANGO-1", "PAPAYA-2"):
            ask(caller, world.backend, word)
            caller.call("teams_session", operation="reset", team=world.backend)
        ask(caller, world.backend, "QUINCE-3", threadId="other")
        caller.call("teams_session", operation="archive", team=world.backend, deleteFiles=True)
    left = "".join(path.read_text() for path in (world.config / "projects").rglob("*.jsonl"))
    assert "MANGO-1" not in left and "PAPAYA-2" not in left and "QUINCE-3" in left


def test_conversations_of_a_lost_store_are_linked_again_and_no_fork_is_taken_for_main(own_world: World) -> None:
    world = own_world
    with world.caller() as caller:
        ask(caller, world.backend, "one", fromTeam=world.frontend)
        ask(caller, world.backend, "elsewhere", threadId="other")
        ask(caller, world.backend, "once", temporary=True)
        fork(caller, world, "side", fromTeam=world.frontend)
        ask(caller, world.backend, "two", fromTeam=world.frontend)
        fork(caller, world, "never asked", fromTeam=world.frontend)
        ask(caller, world.backend, "on the side", fromTeam=world.frontend, threadId="side")
        before = sessions(caller)
    assert world.holdfast.run("stop").returncode == 0
    for file in world.holdfast.home.glob("holdfast.db*"):
        file.unlink()
    with world.caller() as caller:
        wait_until(lambda: len(sessions(caller)) == 4, "all were linked again")
        assert sessions(caller) == {key: session for key, session in before.items() if "temporary" not in key[1]}
        for thread, seen in (("main", 3), ("side", 3), ("never asked", 3)):
            again = ask(caller, world.backend, "again", fromTeam=world.frontend, threadId=thread)
            assert turns(again) == seen, thread


def fork(caller: Agent, world: World, thread: str, **more: Any) -> dict[str, Any]:
    """Fork a conversation with the backend."""
    return caller.call("teams_session", operation="fork", team=world.backend, newThreadId=thread, **more)


def sessions(caller: Agent) -> dict[tuple[str, str], str]:
    """The session of each sender and thread."""
    listed = caller.call("teams_session", operation="list", limit=50)["conversations"]
    return {(one.get("fromTeam", ""), one["threadId"]): one["sessionId"] for one in listed}


def test_conversations_of_a_forgotten_project_are_gone_with_their_agents_and_are_not_linked_again(
    own_world: World,
) -> None:
    world = own_world
    with world.caller() as caller:
        first = ask(caller, world.backend, "where is the xylophone", fromTeam=world.frontend)
        kept = ask(caller, world.mobile, "stays")
        done = world.holdfast.run("forget", str(world.project(world.backend)), "--yes")
        assert done.returncode == 0 and "1 asks" in done.stdout, done.stdout + done.stderr
        assert {process.cwd() for process in world.agents()} == {str(world.project(world.mobile))}
        for file in world.holdfast.home.rglob("*"):
            assert not file.is_file() or b"xylophone" not in file.read_bytes(), file.name
    assert world.holdfast.run("stop").returncode == 0
    with world.caller() as caller:
        caller.call("teams_session", operation="list")
        wait_until(lambda: _has_discovered(world), "the transcripts were looked at")
        listed = caller.call("teams_session", operation="list")["conversations"]
        assert [one["sessionId"] for one in listed] == [kept["conversation"]["sessionId"]]
        again = ask(caller, world.backend, "afresh", fromTeam=world.frontend)
        assert (turns(again), again["conversation"]["sessionId"]) != (2, first["conversation"]["sessionId"])


def _has_discovered(world: World) -> bool:
    status = json.loads(world.holdfast.run("status", "--json").stdout)
    return any(loop["name"] == "teams: discovery" and not loop["running"] for loop in status["loops"])


def test_a_session_on_disk_is_adopted(world: World) -> None:
    with world.caller() as caller:
        first = ask(caller, world.backend, "one", fromTeam=world.frontend)
        session = first["conversation"]["sessionId"]
        caller.call("teams_session", operation="reset", team=world.backend, fromTeam=world.frontend)
        assert turns(ask(caller, world.backend, "afresh", fromTeam=world.frontend)) == 1
        assert session in world.holdfast.run("teams", "found").stdout
        adopted = world.holdfast.run("teams", "adopt", world.backend, session, "--from", world.mobile)
        assert adopted.returncode == 0, adopted.stderr
        assert turns(ask(caller, world.backend, "goes on", fromTeam=world.mobile)) == 2
        assert world.holdfast.run("teams", "adopt", world.backend, session).returncode == 1


def test_the_most_used_pairs_are_warm_after_a_start(own_world: World) -> None:
    world = own_world
    world.settings["warmUp"] = 1
    world.write()
    with world.caller() as caller:
        reply = ask(caller, world.backend, "one", fromTeam=world.frontend)
    assert world.holdfast.run("stop").returncode == 0
    with world.caller() as caller:
        caller.call("teams_status")
        wait_until(lambda: reply["conversation"]["sessionId"] in world.sessions(), "its process is there, unasked")
        assert turns(ask(caller, world.backend, "two", fromTeam=world.frontend)) == 2
        stats = world.holdfast.run("teams", "stats").stdout
        assert f"{world.frontend} → {world.backend}" in stats and "conversations" in stats
