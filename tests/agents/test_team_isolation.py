"""A conversation between teams knows itself alone, whatever ended its process: read off the model's requests."""

from __future__ import annotations

import pytest
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
