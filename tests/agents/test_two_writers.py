"""A team's conversation that a person takes up by hand while Holdfast has it: noticed, and nothing answered is lost."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import subprocess
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agents.claude_code import CLAUDE, ClaudeRun, environment, run_claude
from tests.agents.scripted_model import Reply, Request, seen_so_far, text, tool_use
from tests.agents.teams_world import World, ask, own_world
from tests.installation import wait_until

WAITS = "until [ -e go ]; do sleep 0.05; done"


def waiting_when_told(request: Request) -> Reply:
    """A model that runs a command in the words "hold on", which ends when the file `go` is there."""
    if request.tool_results:
        return text("The command ended.")
    return tool_use("Bash", {"command": WAITS}) if "hold on" in request.user_turns[-1] else seen_so_far(request)


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[World]:
    """Teams whose agents may wait for a file."""
    with own_world(tmp_path, waiting_when_told) as world:
        for team in world.teams.values():
            team["allowedTools"] = ["Bash"]
        world.write()
        yield world


def by_hand(world: World, words: str, *options: str) -> ClaudeRun:
    """A person's `claude -p` in the backend's project."""
    run = run_claude(
        world.model,
        world.project(world.backend),
        words,
        home=world.place / "person",
        allowed_tools=["Bash"],
        env={"CLAUDE_CONFIG_DIR": str(world.config)},
        options=options,
    )
    assert not run.is_error, (run.ending, run.stderr)
    return run


def last_turns(world: World) -> str:
    """What the model was told of the user's words with the latest request."""
    return "\n".join(world.model.requests[-1].user_turns)


@pytest.mark.parametrize("option", ["--resume", "--continue"])
def test_what_a_person_said_by_hand_is_known_to_the_next_turn_of_a_warm_agent(own_world: World, option: str) -> None:
    world = own_world
    with world.caller() as caller:
        ask(caller, world.backend, "MANGO-1")
        (session,) = world.sessions()
        run = by_hand(world, "PAPAYA-2", option, *[session] * (option == "--resume"))
        assert run.session_id == session
        ask(caller, world.backend, "QUINCE-3")
    assert all(word in last_turns(world) for word in ("MANGO-1", "PAPAYA-2", "QUINCE-3"))


def test_what_a_person_continues_at_a_terminal_is_no_teams_conversation(world: World, tmp_path: Path) -> None:
    with world.caller() as caller:
        ask(caller, world.backend, "MANGO-1")
        shown = at_terminal(world, tmp_path / "claude", "--continue")
    assert "No conversation found to continue" in shown


def at_terminal(world: World, config: Path, *arguments: str) -> str:
    """What a person's `claude` shows in the backend's project until it ends.

    It has a copy of the configuration: agents at work write their own `.claude.json`, and overwrite what is added."""
    project = str(world.project(world.backend))
    shutil.copytree(world.config / "projects", config / "projects")
    known = json.loads((world.config / ".claude.json").read_text())
    known |= {"hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": ["sk-test"], "rejected": []}}
    known.setdefault("projects", {}).setdefault(project, {})["hasTrustDialogAccepted"] = True
    (config / ".claude.json").write_text(json.dumps(known))
    env = {**environment(world.model, world.place), "CLAUDE_CONFIG_DIR": str(config), "TERM": "xterm-256color"}
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, 200))
    try:
        with subprocess.Popen(
            [CLAUDE, *arguments], cwd=project, env=env, stdin=theirs, stdout=theirs, stderr=theirs
        ) as process:
            os.close(theirs)
            too_long = threading.Timer(60, process.kill)  # one that found a conversation would wait for words
            too_long.start()
            shown = b""
            with contextlib.suppress(OSError):  # the end of a terminal
                while piece := os.read(ours, 65536):
                    shown += piece
            process.wait()
            too_long.cancel()
    finally:
        os.close(ours)
    return shown.decode(errors="replace")


def test_a_warm_agent_that_nobody_disturbed_is_not_opened_again(world: World) -> None:
    with world.caller() as caller:
        ask(caller, world.backend, "one")
        (agent,) = world.agents("claude")
        for words in ("two", "three"):
            ask(caller, world.backend, words)
        assert world.agents("claude") == [agent]


@pytest.mark.parametrize("then", ["it is asked again", "the daemon is killed"])
def test_of_two_turns_at_the_same_time_neither_vanishes(patient: World, then: str) -> None:
    world = patient
    with world.caller() as caller:
        ask(caller, world.backend, "MANGO-1")
        (session,) = world.sessions()
        held = caller.call("teams_ask", team=world.backend, question="hold on PAPAYA-2", timeout=1)
        wait_until(lambda: "hold on" in last_turns(world), "the turn is under way")
        by_hand(world, "QUINCE-3", "--resume", session)
        (world.project(world.backend) / "go").touch()
        done = caller.call("teams_session", operation="wait", askId=held["askId"], timeout=60_000)
        assert done["response"] == "The command ended."
        if then == "the daemon is killed":
            world.holdfast.kill_daemon()
        ask(caller, world.backend, "LYCHEE-4")
        told = world.model.requests[-1].text
        assert all(word in told for word in ("MANGO-1", "PAPAYA-2", "The command ended.", "QUINCE-3", "LYCHEE-4"))
        ask(caller, world.backend, "and now?")
        assert "QUINCE-3" in world.model.requests[-1].text


def test_a_conversation_that_a_person_has_open_is_left_alone_until_it_is_closed(patient: World) -> None:
    world = patient
    with world.caller() as caller:
        ask(caller, world.backend, "MANGO-1")
        person = threading.Thread(target=by_hand, args=(world, "hold on PAPAYA-2", "--continue"))
        person.start()
        try:
            wait_until(lambda: "hold on" in last_turns(world), "the person's turn is under way")
            refused = caller.call("teams_ask", team=world.backend, question="QUINCE-3", timeout=60_000)
            assert refused["status"] == "failed" and "is open in process" in refused["message"], refused
        finally:
            (world.project(world.backend) / "go").touch()
            person.join()
        ask(caller, world.backend, "LYCHEE-4")
    told = last_turns(world)
    assert all(word in told for word in ("MANGO-1", "PAPAYA-2", "LYCHEE-4")) and "QUINCE-3" not in told
