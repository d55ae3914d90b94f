"""The rules of a protocol: no way past an unmet blocking gate, and no dead end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.protocol import definition, model
from holdfast.protocol.model import (
    BLOCKED,
    COMPLETE,
    INIT,
    VIOLATION,
    WORKING,
    Protocol,
    Standing,
    Status,
    run_id,
    says_something,
)
from holdfast.protocol.protocols import AGENTS, PROTOCOLS, SIMPLE

protocols = st.sampled_from(list(PROTOCOLS.values()))


@st.composite
def _acts(draw: st.DrawFn) -> tuple[Protocol, list[tuple[str, str, Status]]]:
    protocol = draw(protocols)
    names = st.sampled_from([gate.name for gate in protocol.gates])
    act = st.tuples(st.sampled_from(["verify", "advance", "hold", "violate"]), names, st.sampled_from(list(Status)))
    return protocol, draw(st.lists(act, max_size=60))


def _after(protocol: Protocol, standing: Standing, act: tuple[str, str, Status]) -> Standing:
    what, name, status = act
    gate = protocol.gate(name)
    assert gate is not None
    match what:
        case "verify":
            return model.verified(standing, name, status)
        case "hold" | "violate":
            if standing.at == COMPLETE:
                return standing
            return model.held(standing, gate, BLOCKED if what == "hold" else VIOLATION)
    after, step = model.advance(protocol, standing), protocol.next_step(standing.phase)
    return after or (standing if step is None else model.held(standing, step.gate))


@given(_acts())
def test_no_path_reaches_the_end_past_an_unmet_blocking_gate(
    acts: tuple[Protocol, list[tuple[str, str, Status]]],
) -> None:
    protocol, steps = acts
    standing, ever_met = Standing(), set()
    for act in steps:
        if act[0] == "verify" and act[2].met:
            ever_met.add(act[1])
        standing = _after(protocol, standing, act)
        for gate in protocol.before(standing.at):
            assert not gate.blocking or gate.name in ever_met
        if standing.phase == COMPLETE:
            assert all(gate.name in ever_met for gate in protocol.gates if gate.blocking)


@given(_acts())
def test_from_everywhere_meeting_what_is_asked_leads_to_the_end(
    acts: tuple[Protocol, list[tuple[str, str, Status]]],
) -> None:
    protocol, steps = acts
    standing = Standing()
    for act in steps:
        standing = _after(protocol, standing, act)
    for _ in range(3 * len(protocol.phases)):
        if standing.phase == COMPLETE:
            break
        step = protocol.next_step(standing.at)
        asked = standing.held_by or (step.gate.name if step else "")
        standing = model.verified(standing, asked, Status.PASS)
        standing = _after(protocol, standing, ("advance", asked, Status.PASS))
    assert standing.phase == COMPLETE


@given(_acts())
def test_what_holds_a_run_up_can_be_named(acts: tuple[Protocol, list[tuple[str, str, Status]]]) -> None:
    protocol, steps = acts
    standing = Standing()
    for act in steps:
        standing = _after(protocol, standing, act)
        if standing.phase in (BLOCKED, VIOLATION):
            gate = protocol.gate(standing.held_by or "")
            assert gate is not None and gate.recovery and standing.held_from in protocol.phases


def test_the_agents_protocol_is_the_seeds() -> None:
    assert [(step.source, step.target, step.gate.name, step.gate.blocking) for step in AGENTS.transitions] == [
        ("INIT", "SERENA_READY", "SERENA_INIT", True),
        ("SERENA_READY", "SKILLS_VALIDATED", "SKILL_VALIDATION", True),
        ("SKILLS_VALIDATED", "CONTEXT_LOADED", "CONTEXT_RETRIEVAL", True),
        ("CONTEXT_LOADED", "READY", "SESSION_LOG", True),
        ("READY", "WORKING", "GIT_STATE", False),
        ("WORKING", "DOCUMENTING", "DOCS_UPDATE", False),
        ("DOCUMENTING", "QUALITY_CHECKED", "QUALITY_CHECKS", True),
        ("QUALITY_CHECKED", "QA_COMPLETE", "QA_VALIDATION", True),
        ("QA_COMPLETE", "COMPLETE", "GIT_COMMIT", True),
    ]
    assert model.blocked_until(AGENTS, Standing()) == [
        "SERENA_INIT",
        "SKILL_VALIDATION",
        "CONTEXT_RETRIEVAL",
        "SESSION_LOG",
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=list(PROTOCOLS))
def test_a_protocol_is_one_chain_from_init_through_work_to_complete(protocol: Protocol) -> None:
    phases = protocol.phases
    assert phases[0] == INIT and phases[-1] == COMPLETE and WORKING in phases and len(set(phases)) == len(phases)
    assert all(step.source == before for step, before in zip(protocol.transitions, phases, strict=False))
    names = {gate.name for gate in protocol.gates}
    assert len(names) == len(protocol.gates)
    assert {item.gate for item in protocol.checklist if item.gate} <= names
    assert all(gate.recovery for gate in protocol.gates)


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=list(PROTOCOLS))
def test_a_run_keeps_the_protocol_it_began_with(protocol: Protocol) -> None:
    assert definition.loads(definition.dumps(protocol)) == protocol


@pytest.mark.parametrize(
    "text",
    ["N/A", "n/a", " TODO ", "todo: later", "done", "Done.", "skipped", "[x]", "pending", "-", "", "`tbd`", "ok"],
)
def test_words_that_say_nothing_are_no_evidence(text: str) -> None:
    assert not says_something(text)


@pytest.mark.parametrize("text", ["Listed 12 scripts", "HANDOFF.md hash: abc123", "981ebf7", ".agents/qa/report.md"])
def test_words_that_name_something_are_evidence(text: str) -> None:
    assert says_something(text)


@pytest.mark.parametrize(("number", "name"), [(1, "01"), (9, "09"), (42, "42"), (100, "100"), (1234, "1234")])
def test_ids_have_two_digits_and_three_past_ninety_nine(number: int, name: str) -> None:
    assert run_id("2026-11-16", number) == f"2026-11-16-session-{name}"


def test_commits_are_too_early_only_while_a_start_gate_is_unmet() -> None:
    gate = model.unmet_before_work(SIMPLE, Standing())
    assert gate is not None and gate.name == "CONTEXT_RETRIEVAL"
    assert model.unmet_before_work(SIMPLE, Standing(gates={"CONTEXT_RETRIEVAL": Status.SKIPPED})) is None
