"""save_task from outside: in any project, for its own project alone, told to whoever comes next until it is done."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from tests.attacks import ATTACKS, CANARY, forged_lines
from tests.installation import Installation, wait_until
from tests.process.agent import Agent
from tests.process.hooks import starts
from tests.repository import Repository
from tests.shared_daemon import Guest

TASK = "Move the invoices to the new ledger"


def _told(holdfast: Installation, project: Path) -> str:
    """What a new agent in the project is told when it starts."""
    return starts(holdfast, project, project.parent / f"{uuid.uuid4()}.jsonl")["context"]


def _kill(agent: Agent) -> None:
    agent.process.kill()
    agent.close()


def _leaves(holdfast: Guest) -> None:
    wait_until(lambda: holdfast._ask("status")["clients"] == 0, "the daemon noticed that the agent is gone")


def test_every_agent_is_shown_save_task_in_a_project_that_is_no_target(shared_embedded: Guest, project: Path) -> None:
    for toolsets in ("auto", "core"):
        with Agent(shared_embedded, project, env={"HOLDFAST_TOOLSETS": toolsets}) as agent:
            (tool,) = [one for one in agent.request("tools/list")["tools"] if one["name"] == "save_task"]
            assert tool["_meta"]["anthropic/alwaysLoad"], "an agent that searches for no tool must see it"
            for occasion in ("begin", "step", "finished"):
                assert occasion in tool["description"]


def test_a_task_saved_in_any_project_is_told_to_whoever_comes_after_a_kill(shared: Guest, project: Path) -> None:
    with Agent(shared, project, session="first") as agent:
        assert agent.call("save_task", current_task=TASK)["saved"]
        reply = agent.call("save_task", current_task=TASK, last_completed_step=2, pending_messages=["m-7"])
        assert (reply["project"], reply["changed"]) == (str(project), True)
        beside = _told(shared, project)
        assert f'"{TASK}"' in beside and "another agent that is at work now" in beside
        _kill(agent)
    _leaves(shared)
    told = _told(shared, project)
    assert f'"{TASK}". Last completed step: "2". Pending: "m-7".' in told and "earlier session" in told
    assert TASK in shared.run("resume", str(project)).stdout
    with Agent(shared, project, session="first") as again:
        assert "Your task" in again.call("resume")["briefing"], "it is the same agent, which knows what is its own"


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_an_agent_without_a_session_id_knows_its_own_task(shared_embedded: Guest, project: Path, era: str) -> None:
    with Agent(shared_embedded, project, era=era) as agent:
        agent.call("save_task", current_task=TASK, last_completed_step="the first")
        told = agent.call("resume")["briefing"]
        assert "Your task" in told and "the first" in told and "another agent" not in told


@pytest.mark.parametrize("words", [TASK, TASK + " " + "and the next one too " * 20], ids=["short", "cut off"])
def test_a_finished_task_is_not_told_as_open(shared: Guest, project: Path, words: str) -> None:
    with Agent(shared, project, session="first") as agent:
        agent.call("save_task", current_task=words)
        assert agent.call("save_task", done=True)["changed"]
        assert not agent.call("save_task", done=True)["changed"]
        assert TASK not in _told(shared, project)
        agent.call("save_task", current_task=words)
        _kill(agent)
    _leaves(shared)
    told = _told(shared, project)
    shown = told[told.index(f'"{TASK}') + 1 :].partition('"')[0]
    with Agent(shared, project, session="second") as other:
        other.call("save_task", current_task="Say hello")
        assert TASK in _told(shared, project), "a trivial session does not bury what was cut off"
        assert other.call("save_task", current_task=shown, done=True)["changed"], "as the briefing showed it"
        told = _told(shared, project)
        assert TASK not in told and "Say hello" in told


def test_a_task_that_another_session_takes_up_is_told_once(shared: Guest, project: Path) -> None:
    with Agent(shared, project, session="first") as agent:
        agent.call("save_task", current_task=TASK, last_completed_step="1")
    _leaves(shared)
    with Agent(shared, project, session="second") as other:
        other.call("save_task", current_task=TASK, last_completed_step="2")
    _leaves(shared)
    told = _told(shared, project)
    assert told.count(TASK) == 1 and 'step: "2"' in told


def test_two_agents_at_work_keep_a_task_each_though_their_words_are_the_same(shared: Guest, project: Path) -> None:
    with Agent(shared, project, session="first") as one, Agent(shared, project, session="second") as two:
        for agent, step in ((one, "1"), (two, "2")):
            agent.call("save_task", current_task=TASK, last_completed_step=step)
        assert _told(shared, project).count(TASK) == 2
        assert two.call("save_task", current_task=TASK, done=True)["changed"]
        told = _told(shared, project)
        assert told.count(TASK) == 1 and 'step: "1"' in told, "what the other one does is not finished"


def test_a_task_of_another_worktree_is_told_with_its_place(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "main")
    repository.worktree(tmp_path / "other", "other")
    with Agent(shared_embedded, tmp_path / "other", session="first") as agent:
        agent.call("save_task", current_task=TASK)
    _leaves(shared_embedded)
    assert f"saved in {tmp_path / 'other'}" in _told(shared_embedded, tmp_path / "main")


def test_what_a_task_says_stands_quoted(shared_embedded: Guest, project: Path) -> None:
    for attack in ATTACKS:
        with Agent(shared_embedded, project, session="first") as agent:
            agent.call("save_task", current_task=attack[:2000], last_completed_step=attack[:2000])
        told = _told(shared_embedded, project)
        assert CANARY in told and not forged_lines(told)


def test_where_recording_is_paused_no_task_is_kept(shared_embedded: Guest, project: Path) -> None:
    assert shared_embedded.run("pause", str(project)).returncode == 0
    with Agent(shared_embedded, project, session="first") as agent:
        reply = agent.call("save_task", current_task=TASK)
        assert not reply["saved"] and "resume-recording" in reply["message"]
    assert shared_embedded.run("resume-recording", str(project)).returncode == 0
    assert TASK not in _told(shared_embedded, project)


def test_a_task_needs_words_unless_it_is_done(shared_embedded: Guest, project: Path) -> None:
    with Agent(shared_embedded, project) as agent:
        for arguments in ({}, {"current_task": ""}, {"current_task": "x" * 2001}, {"current_task": "a\0b"}):
            assert "current_task" in agent.refused("save_task", **arguments)


def test_an_agent_saves_tasks_for_its_own_project_alone(embedded: Installation, tmp_path: Path) -> None:
    for name in ("homelab/src", "outside"):
        (tmp_path / name).mkdir(parents=True)
    embedded.home.mkdir(parents=True, mode=0o700)
    teams = {"homelab": {"project": str(tmp_path / "homelab"), "delivery": "hook"}}
    (embedded.home / "teams.json").write_text(json.dumps({"teams": teams}))
    embedded.serve()
    with Agent(embedded, tmp_path / "outside", session="first") as outside:
        refused = outside.refused("save_task", current_task=TASK, target="homelab")
        assert refused.startswith("E_NOT_YOURS") and "Leave target out" in refused
        assert outside.call("save_task", current_task=TASK)["project"] == str(tmp_path / "outside")
    with Agent(embedded, tmp_path / "homelab" / "src", session="second") as inside:
        assert inside.call("save_task", current_task="Fix the DNS record")["target"] == "homelab"
        told = _told(embedded, tmp_path / "homelab" / "src")
        assert "Fix the DNS record" in told and TASK not in told, "in every directory of the project"
        assert inside.call("save_task", done=True)["changed"]
        assert "Fix the DNS record" not in _told(embedded, tmp_path / "homelab")
        assert "current_task" not in inside.call("queue_status")["targets"]["homelab"]
        updates = inside.call("pull_updates", target="homelab")["updates"]
        told_of_task = [one["content"] for one in updates if one["type"] == "task"]
        assert told_of_task == ["Fix the DNS record", "Done: Fix the DNS record"]
