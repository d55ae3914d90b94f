"""The hooks of an agent that a person runs in a target's project, as the agent calls them, and the owner's commands."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bot_api import OWNER, TOKEN, bot_api
from tests.installation import PATIENCE, Installation, wait_until
from tests.process.agent import Agent
from tests.process.hooks import call_hook

from holdfast.agents.claude.settings import PURPOSES, installed


class Terminal:
    """An agent in a target's project, and its owner's phone."""

    def __init__(self, holdfast: Installation, project: Path, delivery: str, **more: Any) -> None:
        self.holdfast, self.project = holdfast, project
        self.transcript = project.with_suffix(".jsonl")
        project.mkdir(parents=True)
        self.transcript.write_text("")
        holdfast.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        team = {"project": str(project), "delivery": delivery, **more}
        (holdfast.home / "teams.json").write_text(json.dumps({"teams": {"homelab": team}}))
        installed(project, PURPOSES["bridge"], home=str(holdfast.home)).write()

    def hook(self, event: str, **payload: Any) -> dict[str, Any]:
        answer = call_hook(self.holdfast, event, self.project, self.transcript, **payload)
        with self.transcript.open("a") as file:  # what a hook told the agent stands there
            file.write(json.dumps({"message": answer}) + "\n")
        return answer

    def starts_anew(self) -> None:
        """Another session of the agent takes the place of this one."""
        self.transcript = self.transcript.with_stem(f"{self.transcript.stem}-again")
        self.transcript.write_text("")
        self.starts()

    def starts(self, **more: Any) -> None:
        self.hook("SessionStart", source="startup", **more)

    def gets(self, prompt: str, **more: Any) -> dict[str, Any]:
        return self.hook("UserPromptSubmit", prompt=prompt, **more)

    def is_denied(self, **more: Any) -> bool:
        answer = self.hook("PreToolUse", tool_name="Bash", tool_input={"command": "true"}, **more)
        return "deny" in answer.get("hookSpecificOutput", {}).values()

    def stops(self, said: str) -> dict[str, Any]:
        return self.hook("Stop", stop_hook_active=False, last_assistant_message=said)

    def sends(self, message_id: str, *options: str) -> None:
        sent = self.holdfast.run("send", "homelab", "--id", message_id, *options, f"Words of {message_id}")
        assert sent.returncode == 0, sent.stderr

    def queue(self) -> tuple[int, int]:
        """How many messages wait and are in progress."""
        (target,) = json.loads(self.holdfast.run("queue", "homelab", "--json").stdout)["targets"].values()
        return target["pending"], target["in_progress"]

    def replies(self) -> dict[str, str]:
        pulled = json.loads(self.holdfast.run("pull", "homelab", "--json").stdout)["updates"]
        return {one["message_id"]: one["content"] for one in pulled if one["type"] == "reply"}


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """What stands for an agent's process."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("delivery", ["hook", "auto"])
def test_a_stop_to_an_idle_agent_is_over_at_once_and_denies_nothing_of_the_next_prompt(
    embedded: Installation, tmp_path: Path, delivery: str
) -> None:
    agent = Terminal(embedded, tmp_path / "homelab", delivery)
    embedded.serve()
    agent.starts()
    agent.gets("Mend the fence.")
    assert not agent.is_denied()
    agent.stops("It is mended.")

    agent.sends("idle", "--stop")
    wait_until(lambda: agent.replies() == {"idle": "Nothing was under way."}, "the STOP is over")
    agent.gets("Paint it.")
    assert not agent.is_denied()

    agent.sends("halt", "--stop")
    assert agent.is_denied(), "a turn under way is halted as before"
    agent.stops("I have stopped.")
    assert agent.replies()["halt"] == "I have stopped."


def test_a_stop_that_its_turn_did_not_outlive_is_not_for_the_next_prompt(
    embedded: Installation, tmp_path: Path
) -> None:
    agent = Terminal(embedded, tmp_path / "homelab", "hook")
    embedded.serve()
    agent.starts()
    agent.gets("Mend the fence.")
    agent.sends("late", "--stop")  # and the owner interrupts the turn, of which no hook tells
    agent.gets("Paint it.")
    assert agent.replies() == {"late": "The turn was interrupted."}
    assert not agent.is_denied()


def test_what_an_agent_had_when_it_was_killed_waits_again_at_once_and_a_stop_to_it_is_over(
    embedded: Installation, tmp_path: Path, process: subprocess.Popen[bytes]
) -> None:
    agent = Terminal(embedded, tmp_path / "homelab", "hook")
    embedded.serve()
    agent.starts(pid=process.pid)
    agent.sends("m1")
    assert "Words of m1" in str(agent.gets("Mend the fence.", pid=process.pid))
    assert agent.queue() == (0, 1)
    process.kill()
    wait_until(lambda: agent.queue() == (1, 0), "the message waits again")
    agent.sends("halt", "--stop")
    wait_until(lambda: agent.replies() == {"halt": "Nothing was under way."}, "the STOP is over")


def test_without_a_chat_the_owner_of_an_idle_agent_is_told_how_to_decide_and_does(
    embedded: Installation, tmp_path: Path
) -> None:
    agent = Terminal(embedded, tmp_path / "homelab", "auto", idleSeconds=1)
    embedded.serve()
    agent.starts()
    agent.sends("m1")
    wait_until(lambda: "holdfast bridge wait homelab" in embedded.run("pull", "homelab").stdout, "the owner is asked")
    for _ in range(2):
        decided = embedded.run("bridge", "wait", "homelab")
        assert (decided.returncode, "writes at the terminal" in decided.stdout) == (0, True), decided.stderr
    assert "Words of m1" in str(agent.gets("Here I am."))
    late = embedded.run("bridge", "fork", "homelab")
    assert (late.returncode, "at work again at its terminal" in late.stdout) == (0, True), late.stderr


@pytest.mark.anyio
async def test_of_resume_and_start_fresh_the_first_counts_and_reaches_the_agent_once(
    embedded: Installation, tmp_path: Path
) -> None:
    async with bot_api() as api, asyncio.timeout(2 * PATIENCE):
        embedded.settings |= {"HOLDFAST_TELEGRAM_TOKEN": TOKEN, "HOLDFAST_TELEGRAM_API": api.url}
        chat = {"id": -100, "allowedUsers": [OWNER]}
        agent = Terminal(embedded, tmp_path / "homelab", "hook", chat=chat)

        def restart() -> None:
            embedded.serve()
            agent.starts()
            with Agent(embedded, agent.project, session="another") as caller:
                caller.call("save_task", current_task="Mend the fence", target="homelab")
            agent.starts_anew()

        await asyncio.to_thread(restart)
        while not any(one.buttons for one in api.sent):  # noqa: ASYNC110 - polled
            await asyncio.sleep(0.05)
        buttons = dict(api.sent[-1].buttons)
        for label in ("Resume", "Start fresh", "Resume"):
            api.press(buttons[label])
        while len(api.answered) < 3:  # noqa: ASYNC110 - polled
            await asyncio.sleep(0.05)
        answers = [answer for _, answer in api.answered]
        assert answers[0] == "It will resume: Mend the fence"
        assert all("Already decided: resume" in answer for answer in answers[1:])
        assert "The owner decided: resume the task" in str(await asyncio.to_thread(agent.gets, "Go on."))
        assert await asyncio.to_thread(agent.stops, "I have resumed it.") == {}
        assert await asyncio.to_thread(agent.queue) == (0, 0)
        await asyncio.to_thread(embedded.run, "stop")
