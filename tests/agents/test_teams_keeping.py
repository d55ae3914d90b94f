"""Looking after conversations of real agents: forked, adopted, linked again, warmed up."""

from __future__ import annotations

import json

from tests.agents.teams_world import World, ask, turns
from tests.installation import wait_until


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


def test_conversations_of_a_lost_store_are_linked_again(own_world: World) -> None:
    world = own_world
    with world.caller() as caller:
        first = ask(caller, world.backend, "one", fromTeam=world.frontend)
        ask(caller, world.backend, "elsewhere", threadId="other")
    assert world.holdfast.run("stop").returncode == 0
    for file in world.holdfast.home.glob("holdfast.db*"):
        file.unlink()
    with world.caller() as caller:
        wait_until(
            lambda: len(caller.call("teams_session", operation="list")["conversations"]) == 2, "both were linked again"
        )
        again = ask(caller, world.backend, "two", fromTeam=world.frontend)
        assert (turns(again), again["conversation"]["sessionId"]) == (2, first["conversation"]["sessionId"])


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
