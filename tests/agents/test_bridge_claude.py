"""Messages for the real Claude Code, with the bridge's hooks installed in its project: it never asks for one."""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.agents.claude_code import ClaudeRun, kill_claude, play_claude
from tests.agents.scripted_model import Reply, Request, Script, steps, text, tool_use
from tests.agents.teams_world import HOOKS_ALONE, Company, World
from tests.installation import HOLDFAST, wait_until

from holdfast.agents.claude.settings import PURPOSES, SHARED, installed, putting_in
from holdfast.setup.hook_command import portable_command
from holdfast.setup.json_file import edited, inside


class Homelab:
    """A target with its project, and its owner's phone."""

    def __init__(self, world: World) -> None:
        self.holdfast = world.holdfast
        self.name = world.backend
        self.project = world.project(self.name)
        installed(self.project, PURPOSES["bridge"], home=str(self.holdfast.home)).write()

    def send(self, message: str, *options: str) -> str:
        """Send a message; its id."""
        sent = self.holdfast.run("send", self.name, message, *options)
        assert sent.returncode == 0, sent.stderr
        return sent.stdout.strip().rpartition(" as ")[2].rstrip(".")

    def updates(self, kind: str) -> list[dict[str, Any]]:
        pulled = self.holdfast.run("pull", self.name, "--json")
        return [one for one in json.loads(pulled.stdout)["updates"] if one["type"] == kind]

    def replies(self) -> dict[str, str]:
        return {one["message_id"]: one["content"] for one in self.updates("reply")}

    def set_up_project(self) -> None:
        """Do to its settings what `holdfast setup claude --project` does."""
        edited(inside(self.project, SHARED), putting_in(PURPOSES["briefing"], portable_command)).write()

    def work(self, script: Script, session: str | None = None) -> tuple[ClaudeRun, list[Request]]:
        """Claude Code is given a prompt here, and works to its end."""
        env = {"PATH": f"{HOLDFAST.parent}{os.pathsep}{os.environ['PATH']}", **self.holdfast.settings}
        return play_claude(
            script,
            self.project,
            "Mend the fence.",
            home=self.project.parent / "claude",
            session_id=session or str(uuid.uuid4()),
            mcp_config=self.holdfast.mcp_config(),
            allowed_tools=["mcp__holdfast", "Bash", "Agent"],
            env=env,
        )

    def kill_agent(self) -> None:
        """End Claude Code as a crash does: no hook is called any more."""
        kill_claude(self.project)


@pytest.fixture
def homelab(company: Company) -> Iterator[Homelab]:
    """A target whose messages wait for its agent: else the daemon would have a turn run for one that waits."""
    with company.world(**HOOKS_ALONE) as world:
        yield Homelab(world)


def bash(command: str) -> Reply:
    return tool_use("Bash", {"command": command, "description": "as told"})


def test_a_message_sent_while_the_agent_works_arrives_at_the_end_of_its_turn(world: World) -> None:
    homelab = Homelab(world)
    sent: list[str] = []

    def at_work(request: Request) -> Reply:
        sent.extend([homelab.send("Fix the DNS record"), homelab.send("Update the backend")])
        return bash("echo mending")

    script = steps(
        at_work, text("The fence is mended."), text("The record is fixed."), text("The backend is up to date.")
    )
    run, requests = homelab.work(script)

    assert run.result == "The backend is up to date."
    assert not any("Fix the DNS record" in request.text for request in requests[:2])
    assert f"Message {sent[0]}" in requests[2].user_turns[-1] and "Fix the DNS record" in requests[2].user_turns[-1]
    assert "Update the backend" in requests[3].user_turns[-1]
    assert "handed out before" not in requests[3].text
    assert homelab.replies() == {sent[0]: "The record is fixed.", sent[1]: "The backend is up to date."}


def test_a_message_that_waits_comes_with_the_prompt_and_an_urgent_one_after_a_tool(homelab: Homelab) -> None:
    first = homelab.send("Fix the DNS record")
    urgent: list[str] = []

    def finishing(request: Request) -> Reply:
        assert f"Message {first}" in request.text
        return tool_use("mcp__holdfast__finish_message", {"id": first, "outcome": "done", "reply": "It is fixed."})

    def hurrying(request: Request) -> Reply:
        urgent.append(homelab.send("It burns", "--urgent"))
        return bash("echo working")

    run, requests = homelab.work(steps(finishing, hurrying, text("The fire is out.")))
    assert not run.is_error, (run.ending, run.stderr)
    assert f"Message {urgent[0]}" in requests[2].text
    assert homelab.replies() == {first: "It is fixed.", urgent[0]: "The fire is out."}


def test_a_stop_halts_the_next_tool_and_the_turn(homelab: Homelab) -> None:
    waiting: list[str] = []

    def at_work(request: Request) -> Reply:
        waiting.append(homelab.send("STOP, you are cutting the cable", "--stop"))
        homelab.send("Something for later")
        return bash("touch cut")

    run, requests = homelab.work(steps(at_work, bash("touch cut again"), text("I have stopped.")))
    for request in requests[1:]:
        (result,) = request.tool_results
        assert result.is_error and "cutting the cable" in result.text
    assert run.result == "I have stopped."
    assert not (homelab.project / "cut").exists()
    assert homelab.replies() == {waiting[0]: "I have stopped."}


def test_a_stop_halts_a_subagent_and_is_answered_by_its_agent(homelab: Homelab) -> None:
    sent: list[str] = []

    def in_the_subagent(request: Request) -> Reply:
        sent.append(homelab.send("STOP, you are cutting the cable", "--stop"))
        return bash("touch cut")

    errand = {"description": "Cut", "prompt": "Cut the wire.", "run_in_background": False}
    script = steps(tool_use("Agent", errand), in_the_subagent, text("I may not."), text("All of us have stopped."))
    run, requests = homelab.work(script)

    assert "Cut the wire." in requests[1].user_turns[-1]
    (denied,) = requests[2].tool_results
    assert denied.is_error and "cutting the cable" in denied.text
    assert run.result == "All of us have stopped."
    assert not (homelab.project / "cut").exists()
    assert homelab.replies() == {sent[0]: "All of us have stopped."}


def test_an_agent_that_was_killed_is_told_its_task_and_asked_whether_to_resume(homelab: Homelab) -> None:
    sent, old, new = homelab.send("Fix the DNS record"), str(uuid.uuid4()), str(uuid.uuid4())

    def killed(request: Request) -> Reply:
        homelab.kill_agent()
        return text("Nobody hears this.")

    task = {"current_task": "Fix the DNS record", "current_task_id": sent, "last_completed_step": 2}
    run, _ = homelab.work(steps(tool_use("mcp__holdfast__save_task", task), killed), session=old)
    assert run.exit_code == -signal.SIGKILL

    again, (first, *_) = homelab.work(steps(text("[Session restarted.] Resume or start fresh?")), session=new)
    assert not again.is_error, (again.ending, again.stderr)
    assert '"Fix the DNS record"' in first.text and 'step was "2"' in first.text
    assert "Resume or start fresh?" in first.text
    assert f"Message {sent}" in first.text and "handed out before" in first.text
    (restart,) = homelab.updates("session_restart")
    assert restart["content"].endswith(f"Session: {old} → {new}")
    assert [one["content"] for one in homelab.updates("task")] == ["Fix the DNS record (step 2)"]
    assert homelab.replies() == {sent: "[Session restarted.] Resume or start fresh?"}


def test_a_restart_is_told_once_where_two_settings_files_name_different_commands(homelab: Homelab) -> None:
    homelab.set_up_project()
    old = str(uuid.uuid4())

    def killed(request: Request) -> Reply:
        homelab.kill_agent()
        return text("Nobody hears this.")

    homelab.work(
        steps(tool_use("mcp__holdfast__save_task", {"current_task": "Fix the DNS record"}), killed), session=old
    )
    sent = homelab.send("And the mail record")
    again, (first, *_) = homelab.work(steps(text("Resume or start fresh?")))
    assert not again.is_error, (again.ending, again.stderr)
    assert first.text.count("Session restarted.") == 1
    assert first.text.count(f"[Message {sent}") == 1
    assert len(homelab.updates("session_restart")) == 1


def test_messages_for_an_agent_that_was_killed_are_answered_at_once_by_a_turn(world: World) -> None:
    homelab = Homelab(world)
    sent: list[str] = []

    def at_work(request: Request) -> Reply:
        sent.append(homelab.send("Fix the DNS record", "--urgent"))
        return bash("echo mending")

    def killed(request: Request) -> Reply:
        assert f"Message {sent[0]}" in request.text
        homelab.kill_agent()
        return text("Nobody hears this.")

    run, _ = homelab.work(steps(at_work, killed))
    assert run.exit_code == -signal.SIGKILL
    sent.append(homelab.send("Is anybody there?"))
    wait_until(lambda: homelab.replies().keys() == set(sent), "both are answered")
    assert homelab.updates("session_restart") == []


def test_a_turn_that_outlives_a_daemon_still_ends_its_message(own_world: World) -> None:
    own_world.holdfast.serve()
    homelab = Homelab(own_world)
    sent = homelab.send("Fix the DNS record")

    def without_daemon(request: Request) -> Reply:
        assert f"Message {sent}" in request.text
        killed = homelab.holdfast.kill_daemon()
        wait_until(lambda: homelab.holdfast.daemon() not in (None, killed), "the relay has started another")
        return text("The record is fixed.")

    run, _ = homelab.work(steps(without_daemon))
    assert not run.is_error, (run.ending, run.stderr)
    assert homelab.replies() == {sent: "The record is fixed."}
    assert homelab.updates("session_restart") == []


def test_a_session_file_beside_turns_that_holdfast_runs_tells_of_no_restart(own_world: World) -> None:
    file = own_world.project(own_world.backend) / ".claude-session"
    file.write_text(json.dumps({"id": "abc-123"}))
    own_world.teams[own_world.backend] |= {"delivery": "run", "sessionFile": str(file)}
    own_world.write()
    own_world.holdfast.serve()
    homelab = Homelab(own_world)
    sent: list[str] = []
    for number in range(3):
        sent.append(homelab.send(f"Mend fence {number}."))
        wait_until(lambda: homelab.replies().keys() == set(sent), "it is answered")
    assert homelab.updates("session_restart") == []
