"""A conversation between teams knows itself alone, whatever ended its process: read off the model's requests."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.agents import teams_world
from tests.agents.claude_code import run_claude
from tests.agents.scripted_model import ScriptedModel
from tests.agents.teams_world import World, ask
from tests.process.agent import Agent

WORDS = {
    ("mobile", "main"): "MANGO-77",
    ("frontend", "main"): "PAPAYA-12",
    ("frontend", "other"): "QUINCE-40",
}


@pytest.mark.parametrize("ended", ["by nothing", "by a crash"])
def test_a_turn_after_a_restart_is_told_nothing_of_another_pair_or_of_a_person(own_world: World, ended: str) -> None:
    world = own_world
    with Agent(world.holdfast, world.project(world.backend), session="a-person") as person:
        person.call("thought", thought="The owner's plan is LYCHEE-5.", nextThoughtNeeded=True)
    with world.caller() as caller:
        for (sender, thread), word in WORDS.items():
            ask(caller, world.backend, f"The launch code is {word}.", fromTeam=sender, threadId=thread)
        for (sender, thread), word in WORDS.items():
            if ended == "by a crash":
                world.lose_agents(caller)
            asked = len(world.model.requests)
            ask(caller, world.backend, "What do you know?", fromTeam=sender, threadId=thread)
            given = "\n".join(request.text for request in world.model.requests[asked:])
            assert word in given, "its own words come back"
            others = {*WORDS.values(), "LYCHEE-5"} - {word}
            assert not {other for other in others if other in given}


@dataclass
class Talk:
    """One pair's thread: the word that is its own, and all that its agent may know."""

    to: str
    sender: str
    thread: str
    word: str
    known: set[str] = field(default_factory=set)
    remembers: bool = False
    """Whether its agent must still know the word: it was said since the last compaction."""

    @property
    def where(self) -> dict[str, str]:
        return {"fromTeam": self.sender, "threadId": self.thread}


class Office:
    """Pairs of teams at work, and people in the same projects, on a random plan."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.words: set[str] = set()
        """All that was ever secret."""
        pairs = [(to, sender) for to in world.names for sender in world.names if to != sender]
        self.talks = [self.talk(*pair, "main") for pair in self.random.sample(pairs, 3)]
        first = self.talks[0]
        self.talks.append(self.talk(first.to, first.sender, "other"))
        self.judged = (0, 0)
        self.steps: list[str] = []

    def word(self, kind: str) -> str:
        """A word that nobody else says."""
        made = f"{kind}-{self.random.randrange(16**10):010x}"
        self.words.add(made)
        return made

    def talk(self, to: str, sender: str, thread: str) -> Talk:
        return Talk(to, sender, thread, self.word("SECRET"))

    def play(self, steps: int) -> None:
        """Have every kind of thing happen in a random order, and after each look at all that the model was told."""
        kinds = [self.ask, self.ask, self.burst, self.person, self.compact, self.fork, self.forget, self.end]
        plan = [*kinds, *self.random.choices(kinds, k=max(0, steps - len(kinds)))]
        self.random.shuffle(plan)
        self.person()
        self.burst()
        for step in plan:
            self.steps.append(step.__name__)
            step()
        self.burst()

    def ask(self) -> None:
        talk = self.random.choice(self.talks)
        with self.world.caller() as caller:
            self.say(caller, talk)

    def say(self, caller: Agent, talk: Talk) -> None:
        words = self.random.choice([f"My word is {talk.word}.", "What do you know?"])
        ask(caller, talk.to, words, **talk.where)
        self.said(talk, words)
        given = self.check(talk)
        if talk.remembers:
            assert talk.word in given, f"its own word comes back; {self}"

    def said(self, talk: Talk, words: str) -> None:
        if talk.word in words:
            talk.known.add(talk.word)
            talk.remembers = True

    def burst(self) -> None:
        """Everybody asks at once, more than there may be processes."""
        with self.world.caller() as caller:
            asked = []
            for talk in self.talks:
                words = f"All at once: {talk.word}."
                sent = {"toTeam": talk.to, "message": words, "waitForResponse": False, **talk.where}
                asked.append(caller.call("teams_send_message", **sent)["askId"])
                self.said(talk, words)
            for ask_id in asked:
                done = caller.call("teams_session", operation="wait", askId=ask_id, timeout=60_000)
                assert done["status"] == "answered", (done, self)
        self.check(None)

    def person(self) -> None:
        """Somebody thinks in a team's project, and works with Claude Code there, which is briefed."""
        project = self.world.project(self.random.choice(self.world.names))
        word = self.word("THOUGHT")
        with Agent(self.world.holdfast, project, session=word) as person:
            person.call("thought", thought=f"My plan is {word}.", nextThoughtNeeded=True)
        with ScriptedModel() as model:
            env = {"CLAUDE_CONFIG_DIR": str(self.world.config), **self.world.holdfast.settings}
            run_claude(model, project, f"Go on with {word}.", home=self.world.place / "home", env=env)
        told = "\n".join(request.text for request in model.requests)
        assert f"My plan is {word}" in told, f"the hooks of this configuration brief people; {self}"

    def compact(self) -> None:
        talk = self.random.choice(self.talks)
        with self.world.caller() as caller:
            caller.call("teams_session", operation="compact", team=talk.to, **talk.where)
        self.check(talk)
        talk.remembers = False

    def fork(self) -> None:
        origin = self.random.choice(self.talks)
        copy = self.talk(origin.to, origin.sender, f"thread-{len(self.talks)}")
        copy.known = set(origin.known)
        with self.world.caller() as caller:
            new = {"newThreadId": copy.thread, **origin.where}
            caller.call("teams_session", operation="fork", team=origin.to, **new)
            self.talks.append(copy)
            for talk in self.random.sample([origin, copy], 2):
                talk.word = self.word("SECRET")
                talk.remembers = False
                self.say(caller, talk)

    def forget(self) -> None:
        talk = self.random.choice(self.talks)
        ways: list[dict[str, Any]] = [{"operation": "reset"}, {"operation": "archive", "deleteFiles": True}]
        how = self.random.choice(ways)
        with self.world.caller() as caller:
            caller.call("teams_session", team=talk.to, **talk.where, **how)
            talk.known.clear()
            talk.remembers = False
            self.say(caller, talk)

    def end(self) -> None:
        """Agents or the daemon end, in one way or another."""
        how = self.random.choice(["agents", "daemon", "stop"])
        if how == "daemon":
            self.world.holdfast.kill_daemon()
        elif how == "stop":
            assert self.world.holdfast.run("stop").returncode == 0
        else:
            with self.world.caller() as caller:
                self.world.lose_agents(caller)

    def check(self, talk: Talk | None) -> str:
        """Judge every request that came since; without a talk each belongs to one that asked at once."""
        model = self.world.model
        new, aside = model.requests[self.judged[0] :], model.side_requests[self.judged[1] :]
        self.judged = self.judged[0] + len(new), self.judged[1] + len(aside)
        for number, request in enumerate([*new, *aside]):
            told = json.dumps(request.body)
            found = {word for word in self.words if word in told}
            owners = [talk] if talk is not None and number < len(new) else self.talks
            assert any(found <= owner.known for owner in owners), f"{found} in {owners}; {self}"
        return "\n".join(request.text for request in new)

    def __str__(self) -> str:
        return f"steps so far: {', '.join(self.steps)}"


@pytest.mark.parametrize(
    ("seed", "steps"), [(1, 8), *[pytest.param(seed, 40, marks=pytest.mark.long) for seed in range(2, 12)]]
)
def test_whatever_happens_no_request_holds_another_pairs_word_or_a_persons_thought(
    tmp_path: Path, seed: int, steps: int
) -> None:
    with teams_world.own_world(tmp_path, maxProcesses=2) as world:
        settled = world.holdfast.run(
            "setup", "claude", "--yes", env={"CLAUDE_CONFIG_DIR": str(world.config), "HOME": str(world.place / "home")}
        )
        assert settled.returncode == 0, settled.stdout + settled.stderr
        Office(world, seed).play(steps)
