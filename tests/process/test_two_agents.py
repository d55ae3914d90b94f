"""Two live agents are never merged; a worktree finds its project; a bound root and a session come back."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.installation import HOLDFAST, Installation
from tests.process.agent import Agent
from tests.shared_daemon import Guest


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(project: Path) -> Path:
    _git(project, "init", "-q")
    _git(project, "commit", "-q", "--allow-empty", "-m", "first")
    return project


def test_two_agents_in_one_root_keep_two_sessions(shared: Guest, project: Path) -> None:
    with Agent(shared, project, session="one") as one, Agent(shared, project, session="two") as two:
        first = one.think("one begins")
        second = two.think("two begins")
        assert first["sessionId"] != second["sessionId"]
        assert [other["sessionId"] for other in second["others"]] == [first["sessionId"]]
        assert one.think("one goes on")["sessionId"] == first["sessionId"]
        assert two.think("two goes on")["sessionId"] == second["sessionId"]
        assert one.init("load_context")["session"]["id"] == first["sessionId"]
        assert two.init("load_context")["session"]["id"] == second["sessionId"]


def test_a_session_whose_agent_is_gone_is_taken_up_by_the_next(shared: Guest, project: Path) -> None:
    with Agent(shared, project, session="one") as one:
        first = one.think("one begins")
        with Agent(shared, project, session="two") as two:
            refused = two.init("load_context")
            assert refused["success"] is False
            assert [held["sessionId"] for held in refused["heldByOthers"]] == [first["sessionId"]]
    with Agent(shared, project, session="three") as three:
        reply = three.think("three goes on")
        assert (reply["sessionId"], reply["status"]) == (first["sessionId"], "recovered")


def test_a_linked_worktree_finds_the_project_but_not_its_neighbours_live_session(
    shared: Guest, repository: Path, tmp_path: Path
) -> None:
    worktree = tmp_path / "linked"
    _git(repository, "worktree", "add", "-q", "--detach", str(worktree))
    with Agent(shared, repository, session="main") as main:
        first = main.think("in the main worktree")
        with Agent(shared, worktree, session="linked") as linked:
            assert linked.init("load_context")["success"] is False
            assert linked.think("in the linked one")["sessionId"] != first["sessionId"]
    other = tmp_path / "other"
    _git(repository, "worktree", "add", "-q", "--detach", str(other))
    with Agent(shared, other, session="later") as later:
        context = later.init("load_context")
        assert context["success"] is True
        assert context["fromOtherRoot"] in (repository.as_uri(), worktree.as_uri())


def test_a_client_that_never_tells_its_roots_costs_two_seconds_once(shared_embedded: Guest, project: Path) -> None:
    with Agent(shared_embedded, project, capabilities={"roots": {}}) as agent:
        reply = agent.think("it asked, nobody answered")
        assert reply["thoughtNumber"] == 1
        asked = [message for message in agent.seen if message.get("method") == "roots/list"]
        agent.think("and is not asked again")
        assert len(asked) == 1
        assert not [message for message in agent.seen[1:] if message.get("method") == "roots/list"]
        assert agent.init("get_state")["rootFrom"] == "directory"


def test_a_session_start_hook_rebinds_the_relay_after_clear(shared_embedded: Guest, project: Path) -> None:
    with Agent(shared_embedded, project, session="before-clear") as agent:
        agent.think("before /clear")
        assert agent.init("get_state")["agentSession"] == shared_embedded.caller("before-clear")
        after = shared_embedded.caller("after-clear")
        hook = subprocess.run(
            [str(HOLDFAST), "hook", "SessionStart"],
            input=json.dumps({"session_id": after, "source": "clear", "cwd": str(project)}).encode(),
            env={**os.environ, **shared_embedded.settings, "CLAUDE_PID": str(os.getpid())},
            capture_output=True,
            timeout=60,
        )
        assert (hook.returncode, hook.stderr) == (0, b"") and b"is kept" in hook.stdout
        assert agent.init("get_state")["agentSession"] == after


def test_an_agent_that_comes_back_to_a_session_others_took_up_gets_its_own(shared: Guest, project: Path) -> None:
    with Agent(shared, project, session="first") as first:
        common = first.think("begun by the first")["sessionId"]
    with Agent(shared, project, session="second") as second:
        assert second.think("taken up by the second")["sessionId"] == common
        with Agent(shared, project, session="first") as first:
            back = first.think("the first is back")
            assert back["sessionId"] != common
            assert [other["sessionId"] for other in back["others"]] == [common]
            joined = first.init("load_context", sessionId=common)
            assert joined["success"] is True
            assert first.think("and joins by name")["sessionId"] == common
            assert second.think("both go on in it")["sessionId"] == common


def test_what_agents_had_is_theirs_after_a_crash_of_the_daemon(holdfast: Installation, tmp_path: Path) -> None:
    """Three agents over one crash, each in a project of its own: one gone before it, one idle, one killed with it."""
    places = [tmp_path / name for name in ("bound", "elsewhere", "idle", "lost")]
    for place in places:
        place.mkdir()
    bound, elsewhere, kept, left = places
    with Agent(holdfast, bound, session="bound") as agent:
        assert agent.init("bind_root", mcpRootUri=elsewhere.as_uri())["success"] is True
        assert agent.init("get_state")["rootFrom"] == "bound"
    with Agent(holdfast, kept, session="idle") as idle:
        mine = idle.think("and then the agent is silent for a while")["sessionId"]
        lost = Agent(holdfast, left, session="lost")
        last = lost.think("the last words")["sessionId"]
        lost.process.kill()
        lost.process.wait()
        holdfast.kill_daemon()
        lost.close()

        _an_idle_live_agent_keeps_its_session(holdfast, kept, idle, mine)
        with Agent(holdfast, left, session="heir") as heir:
            assert heir.init("load_context")["session"]["id"] == last, "an agent that died leaves its session"
    with Agent(holdfast, bound, session="bound") as agent:
        state = agent.init("get_state")
        assert (state["root"], state["rootFrom"]) == (elsewhere.as_uri(), "bound")
        assert agent.think("goes there")["sessionId"]
        assert agent.init("load_context")["session"]["mcpRootUri"] == elsewhere.as_uri()


def _an_idle_live_agent_keeps_its_session(holdfast: Installation, place: Path, idle: Agent, mine: str) -> None:
    with Agent(holdfast, place, session="newcomer") as newcomer:
        assert newcomer.think("somebody else begins")["sessionId"] != mine
        assert newcomer.init("load_context", sessionId=mine)["success"] is True, "joining by name is allowed"
    assert idle.think("still mine")["sessionId"] == mine
