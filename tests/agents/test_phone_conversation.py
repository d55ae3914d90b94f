"""A phone, a scripted Bot API, and the real Claude Code that is idle at its terminal."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agents.agent_world import LINGERING
from tests.agents.scripted_model import Reply, Request, text, tool_use
from tests.agents.teams_world import World, own_world
from tests.agents.terminal import Terminal
from tests.bot_api import OWNER, TOKEN, Sent, bot_api
from tests.installation import wait_until

from holdfast.agents.claude.settings import PURPOSES, installed

CHAT = "-100"
COPY, WAIT = "Answer in a copy", "Wait"
STORED, TAKEN, DONE, NOT_DONE = "👌", "👀", "👍", "👎"


class Phone:
    """Somebody's phone, with the Bot API on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self._thread.start()
        self._ready.wait()

    async def _serve(self) -> None:
        async with bot_api() as self.api:
            self._ready.set()
            await self._over.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()

    def write(self, words: str) -> int:
        """Write a message; its number in the chat."""

        async def write() -> int:
            return self.api.write(words)

        return asyncio.run_coroutine_threadsafe(write(), self._loop).result()

    def press(self, label: str) -> None:
        """Press the last button with this label, once it is shown."""
        self._loop.call_soon_threadsafe(lambda: self.api.press(self.asked(label)[-1]))

    def sees(self, number: int, step: str) -> None:
        """Wait until the last thing that a message shows is this step."""
        wait_until(lambda: self.api.reacted(number)[-1:] == [step], f"the message shows {step}")

    def asked(self, label: str) -> list[str]:
        """The buttons with this label, by what they do, the last one last."""
        return [action for one in self.shown() for name, action in one.buttons if name == label]

    def shown(self) -> list[Sent]:
        return [one for one in self.api.sent if one.chat == CHAT]

    def hears(self, words: str, times: int = 1) -> None:
        wait_until(lambda: self.count(words) >= times, f"the phone shows {words!r}")

    def count(self, words: str) -> int:
        return sum(words in one.text for one in self.shown())

    def is_asked(self, label: str, times: int = 1) -> None:
        wait_until(lambda: len(self.asked(label)) >= times, f"the phone is asked {label!r}")


@pytest.fixture
def phone() -> Iterator[Phone]:
    phone = Phone()
    try:
        yield phone
    finally:
        phone.close()


class Mind:
    """What the model of all agents here says: the word if it was told it, and what it is asked to do."""

    def __init__(self) -> None:
        self.note = Path()
        self.meanwhile: dict[str, Callable[[], object]] = {}
        """What happens once when the model is asked something with these words, before it answers."""

    def __call__(self, request: Request) -> Reply:
        results = [one for one in request.tool_results if not one.text.startswith("The user doesn't want to")]
        if results:  # and not of a turn that was interrupted
            return text("I may not." if results[-1].is_error else "It is written.")
        said = request.user_turns[-1]
        for words in [words for words in self.meanwhile if words in said]:
            self.meanwhile.pop(words)()
        if "Write the note" in said:
            return tool_use("Write", {"file_path": str(self.note), "content": "MANGO"})
        if "Sleep" in said:
            return tool_use("Bash", {"command": LINGERING, "description": "as told"})
        return text("The word is MANGO." if "MANGO" in request.text else "I know no word.")


class Homelab:
    """A target with a chat, whose agent is at a terminal."""

    def __init__(self, world: World, phone: Phone, mind: Mind) -> None:
        self.world, self.mind, self.holdfast = world, mind, world.holdfast
        self.project = world.project(world.backend)
        self.note = mind.note = self.project / "note.txt"
        installed(self.project, PURPOSES["bridge"], home=str(self.holdfast.home)).write()
        world.teams[world.backend] |= {
            "idleSeconds": 1,
            "chat": {"id": int(CHAT), "allowedUsers": [OWNER]},
            "skipPermissions": True,
            "allowedTools": ["Write"],
        }
        allowing = {"permissions": {"allow": ["Write", "Bash"]}}
        world.config.mkdir()
        (world.config / "settings.json").write_text(json.dumps(allowing))
        world.write()
        self.holdfast.settings |= {"HOLDFAST_TELEGRAM_TOKEN": TOKEN, "HOLDFAST_TELEGRAM_API": phone.api.url}
        self.holdfast.serve()

    def terminal(self, place: Path | None = None, config: Path | None = None) -> Terminal:
        """Claude Code at a terminal: in the project, with the team's settings, unless told otherwise."""
        place, config = place or self.project, config or self.world.config
        return Terminal(self.world.model, place, config, mcp_config=self.holdfast.mcp_config())

    def updates(self, kind: str) -> list[dict[str, Any]]:
        pulled = self.holdfast.run("pull", self.world.backend, "--json")
        return [one for one in json.loads(pulled.stdout)["updates"] if one["type"] == kind]

    def idle(self, terminal: Terminal, words: str) -> None:
        """Wait until a turn that said these words is over."""
        wait_until(lambda: '"subtype":"turn_duration"' in terminal.transcript().partition(words)[2], "the turn is over")


@pytest.fixture
def homelab(tmp_path: Path, phone: Phone) -> Iterator[Homelab]:
    mind = Mind()
    with own_world(tmp_path, mind) as world:
        yield Homelab(world, phone, mind)


def _said(terminal: Terminal) -> list[str]:
    """What the terminal's transcript has of the conversation; Claude Code adds lines about itself at any time."""
    lines = terminal.transcript().splitlines()
    return [line for line in lines if json.loads(line).get("type") in ("user", "assistant")]


def test_an_idle_agent_is_reached_through_a_copy_that_asks_before_it_writes_whatever_settings_allow(
    homelab: Homelab, phone: Phone
) -> None:
    with homelab.terminal() as terminal:
        terminal.type("Remember MANGO.")
        homelab.idle(terminal, "Remember MANGO.")
        before = _said(terminal)
        phone.write("Which word was it?")
        phone.is_asked(COPY)
        assert phone.count("idle at its terminal") == 1 and len(phone.asked(WAIT)) == 1
        phone.press(COPY)
        phone.hears("The word is MANGO.")
        assert _said(terminal) == before, "the conversation itself is as it was"

        phone.write("Write the note, then.")
        phone.is_asked("Deny")
        assert not homelab.note.exists()
        phone.press("Deny")
        phone.hears("I may not.")
        phone.write("Write the note, really.")
        phone.is_asked("Approve", times=2)
        phone.press("Approve")
        phone.hears("It is written.")
        assert phone.count(f"[The copy changed {homelab.note}]") == 1
        assert homelab.note.read_text() == "MANGO"
        assert len(phone.asked(COPY)) == 1, "the decision holds while nobody writes at the terminal"

        terminal.type("Anything new?")
        told = homelab.world.model.requests[-1].text
        assert told.count("was answered by a copy of this conversation") == 3
        assert "Which word was it?" in told and f"[The copy changed {homelab.note}]" in told
        homelab.idle(terminal, "Anything new?")
        terminal.type("And now?")
        assert homelab.world.model.requests[-1].text.count("was answered by a copy of this conversation") == 3


def test_each_message_of_a_phone_conversation_is_answered_once_over_kills_of_agent_and_daemon(
    homelab: Homelab, phone: Phone
) -> None:
    with homelab.terminal() as terminal:
        terminal.type("Remember MANGO.")
        homelab.idle(terminal, "Remember MANGO.")
        first = phone.write("First: which word was it?")
        homelab.mind.meanwhile["First:"] = lambda: phone.sees(first, TAKEN)
        phone.is_asked(COPY)
        phone.sees(first, STORED)
        homelab.holdfast.kill_daemon()
        homelab.holdfast.serve()
        phone.press(COPY)
        phone.hears("The word is MANGO.")
        assert len(phone.asked(COPY)) == 1, "a new daemon does not ask again"

        second = phone.write("Second: and which word was it?")

        def killed_while_it_works() -> None:
            phone.sees(second, TAKEN)
            homelab.holdfast.kill_daemon()

        homelab.mind.meanwhile["Second:"] = killed_while_it_works
        wait_until(lambda: not homelab.mind.meanwhile, "the daemon was killed in the middle of the turn")
        wait_until(lambda: homelab.holdfast.daemon() is not None, "the relay at the terminal has started another")
        phone.hears("It was asked again.")
        assert phone.count("The word is MANGO.") == 2

        terminal.type("Sleep a little.")
        wait_until(lambda: terminal.runs(LINGERING), "it sleeps")
        terminal.interrupt()
        third = phone.write("Third: are you there?")
        phone.is_asked(WAIT, times=2)
        phone.press(WAIT)
        phone.hears("when somebody writes at the terminal")
        phone.sees(third, STORED)
        homelab.mind.meanwhile["Here I am."] = lambda: phone.sees(third, TAKEN)
        terminal.type("Here I am.")
        assert "Third: are you there?" in homelab.world.model.requests[-1].text
        phone.hears("The word is MANGO.", times=3)

        terminal.kill()
        fourth = phone.write("Fourth: and now?")
        homelab.mind.meanwhile["Fourth:"] = lambda: phone.sees(fourth, TAKEN)
        phone.hears("I know no word.")
        for number in (first, second, third, fourth):
            phone.sees(number, DONE)
            assert TAKEN in phone.api.reacted(number)
    replies = homelab.updates("reply")
    assert len(replies) == len({one["message_id"] for one in replies}) == 4
    assert [one["type"] for one in homelab.updates("idle")] == ["idle", "idle"]
    assert phone.count("The word is MANGO.") == 3 and phone.count("I know no word.") == 1
    assert homelab.updates("session_restart") == [] and phone.api.violations == []


def test_an_agent_to_which_nobody_has_spoken_yet_is_reached_through_a_copy_too(homelab: Homelab, phone: Phone) -> None:
    with homelab.terminal() as terminal:
        phone.write("Write the note.")
        phone.is_asked(COPY)
        assert terminal.transcript() == ""
        phone.press(COPY)
        phone.is_asked("Deny")
        phone.press("Deny")
        phone.hears("I may not.")
        terminal.type("Anything new?")
        assert homelab.world.model.requests[-1].text.count("was answered by a copy of this conversation") == 1


def test_a_copy_of_an_agent_below_its_project_tells_what_it_changed(homelab: Homelab, phone: Phone) -> None:
    below = homelab.project / "part"
    below.mkdir()
    installed(below, PURPOSES["bridge"], home=str(homelab.holdfast.home)).write()
    with homelab.terminal(below) as terminal:
        terminal.type("Remember MANGO.")
        homelab.idle(terminal, "Remember MANGO.")
        phone.write("Write the note.")
        phone.is_asked(COPY)
        phone.press(COPY)
        phone.is_asked("Approve")
        phone.press("Approve")
        phone.hears(f"It is written.\n\n[The copy changed {homelab.note}]")


def test_a_conversation_that_the_team_cannot_find_fails_its_message_and_says_what_to_do(
    homelab: Homelab, phone: Phone
) -> None:
    with homelab.terminal(config=homelab.world.place / "elsewhere" / "claude") as terminal:
        terminal.type("Remember MANGO.")
        homelab.idle(terminal, "Remember MANGO.")
        number = phone.write("Which word was it?")
        phone.is_asked(COPY)
        phone.press(COPY)
        phone.hears(f"Session {terminal.session} cannot be copied")
        phone.hears("give the team the same one under")
        phone.sees(number, NOT_DONE)
