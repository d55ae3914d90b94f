"""What every agent's hooks part promises, tried on each agent that has the part."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agents.echo.agent import ECHO

from holdfast.agents import HooksPart
from holdfast.agents.hook_events import HookAnswer, HookKind
from holdfast.agents.registry import AGENTS

HOOKS = [
    pytest.param(agent.name, agent.hooks, id=agent.name)
    for agent in (*AGENTS.values(), ECHO)
    if agent.hooks is not None
]
STARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "claude": ("SessionStart", {"session_id": "s1", "cwd": "/work", "source": "startup"}),
    "echo": ("begin", {"session": "s1", "directory": "/work"}),
}
"""For each agent with hooks: how it tells that a session starts. A new agent adds its own."""
PAYLOADS = st.dictionaries(
    st.sampled_from([*(key for _, payload in STARTS.values() for key in payload), "tool_name", "tool_input", "prompt"])
    | st.text(max_size=5),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.none()),
)


@pytest.mark.parametrize(("name", "hooks"), HOOKS)
def test_the_start_of_a_session_is_recognised(name: str, hooks: HooksPart) -> None:
    event, payload = STARTS[name]
    told = hooks.event(event, payload)
    assert (told.kind, told.session_id, told.cwd, told.is_managed) == (HookKind.STARTED, "s1", "/work", False)
    assert hooks.event(event, payload, is_managed=True).is_managed


@pytest.mark.parametrize(("name", "hooks"), HOOKS)
def test_an_event_that_nobody_knows_is_still_a_sign_of_life(name: str, hooks: HooksPart) -> None:
    told = hooks.event("SomethingNew", STARTS[name][1])
    assert (told.kind, told.session_id) == (HookKind.OTHER, "s1")


@pytest.mark.parametrize(("name", "hooks"), HOOKS)
@given(payload=PAYLOADS)
def test_no_payload_is_too_strange(name: str, hooks: HooksPart, payload: dict[str, Any]) -> None:
    told = hooks.event(STARTS[name][0], payload)
    for text in (told.session_id, told.cwd, told.transcript, told.source, told.prompt, told.reason):
        assert isinstance(text, str)


@pytest.mark.parametrize(("name", "hooks"), HOOKS)
def test_what_there_is_to_say_is_printed_and_else_nothing(name: str, hooks: HooksPart) -> None:
    event = STARTS[name][0]
    assert hooks.output(event, HookAnswer()) == b""
    for answer in (
        HookAnswer(context="marker"),
        HookAnswer(notice="marker"),
        HookAnswer(denied="marker"),
        HookAnswer(keep_going="marker"),
    ):
        printed = hooks.output(event, answer)
        assert b"marker" in printed
        assert printed.endswith(b"\n")
