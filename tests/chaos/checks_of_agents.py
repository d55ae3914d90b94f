"""Asks and working sessions: answered once and in their own conversation; one phase for each advance."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.effects import Circumstances, counted, mark_of, times
from tests.chaos.history import History, Op, Outcome
from tests.chaos.state import State
from tests.chaos.violation import Violation

from holdfast.text.quoting import MARK

PHASES = ("INIT", "CONTEXT_LOADED", "WORKING", "QUALITY_CHECKED", "COMPLETE")
"""The phases of the simple protocol."""
ATTEMPTS_OF_ASK = 2


# -- teams ----------------------------------------------------------------------------------------------------------


def check_notices(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    yield from counted("notice", history.of("notify"), times(row["text"] for row in state["notices"]), given)


def check_asks(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    """Each ask is stored once, answered with its own answer, in its own conversation."""
    ops = {op.mark: op for op in history.of("ask")}
    yield from counted("ask", list(ops.values()), times(row["text"] for row in state["asks"]), given)
    conversations = {row["id"]: row for row in state["conversations"]}
    owners = {row["session_id"]: row["id"] for row in state["conversations"]}
    heard: dict[str, list[str]] = defaultdict(list)
    for session, texts in state.transcripts.items():
        for text in texts:
            heard[_question(text)].append(session)
    for row in state["asks"]:
        mark = mark_of(row["text"])
        op = ops.get(mark)
        if op is None:
            continue
        talk = conversations.get(row["conversation_id"], {})
        wanted = (op.arguments.get("team") or op.arguments.get("toTeam"), op.arguments.get("threadId", "main"))
        if (talk.get("to_team"), talk.get("thread")) != wanted:
            yield Violation("ask-elsewhere", f"{mark} is in the conversation {talk}", [op])
        if row["status"] == "answered" and _question(row["answer"]) != mark:
            yield Violation("ask-crossed", f"{mark} was answered with {row['answer'][:120]!r}", [op])
        if row["status"] == "failed" and not given.asks_may_fail:
            yield Violation("ask-failed", f"{mark} failed: {row['error']}", [op])
        sessions = heard.get(mark, [])
        if len(sessions) > min(row["attempts"], ATTEMPTS_OF_ASK):
            yield Violation("ask-run-twice", f"{mark} was run {len(sessions)} times, {row['attempts']} known", [op])
        if any(owners.get(session) not in (None, row["conversation_id"]) for session in sessions):
            yield Violation("ask-elsewhere", f"{mark} was asked in the conversation of another", [op])
    yield from _answers(history, state, ops)


def _answers(history: History, state: State, ops: dict[str, Op]) -> Iterator[Violation]:
    stored = {row["id"]: row for row in state["asks"]}
    told = [(op, op.reply) for op in history.of("ask", "await") if op.ok]
    told += [(ops[mark], reply) for mark, reply in _door_asks(state, stored) if mark in ops]
    for op, reply in told:
        row = stored.get(reply.get("askId", ""))
        if row is None:
            continue  # counted as lost already
        mark = mark_of(row["text"])
        if op.kind == "ask" and mark != op.mark:
            yield Violation("ask-crossed", f"{op.mark} was given the id of {mark}", [op])
        if reply.get("status") == "answered" and _question(reply["response"]) != mark:
            yield Violation("ask-crossed", f"{mark} was told {reply['response'][:120]!r}", [op])
        if reply.get("status") == "answered" and reply["response"] != row["answer"]:
            yield Violation("ask-answered-twice", f"{mark} was told another answer than is stored", [op])
    for mark, reply in _door_asks(state, stored):
        if reply.get("status") not in ("answered", "failed"):
            yield Violation("ask-unanswered", f"{mark} is {reply.get('status')} at the end", [ops[mark]])


def _door_asks(state: State, stored: dict[str, dict[str, object]]) -> list[tuple[str, dict[str, object]]]:
    return [
        (mark_of(str(stored[ask]["text"])), reply) for ask, reply in (state.door_asks or {}).items() if ask in stored
    ]


def _question(text: str) -> str:
    """The mark of the question in what an agent was told, or answered: the first line after the frame."""
    return mark_of((text.partition("\n\n")[2] or text).removeprefix(MARK))


# -- protocol -------------------------------------------------------------------------------------------------------


def check_runs(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    """A run goes on by one phase for each advance, and ends once."""
    objectives = times(row["objective"] for row in state["protocol_runs"])
    yield from counted("run", history.of("run_start"), objectives, given)
    summaries = times(row["summary"] for row in state["protocol_runs"] if row["summary"])
    yield from counted("run-end", history.of("run_end"), summaries, given)
    yield from _steps_of_runs(history, given)
    evidence = history.of("run_evidence")
    kept = sum(row["kind"] != "tips" for row in state["protocol_evidence"])  # those the server stores by itself
    possible = sum(op.outcome is not Outcome.REFUSED for op in evidence)
    if not sum(op.ok for op in evidence) <= kept <= possible and not given.excused:
        yield Violation("evidence-count", f"{possible} pieces of evidence at most were given, {kept} are there", [])
    steps: dict[str, list[str]] = defaultdict(list)
    for row in sorted(state["events"], key=lambda row: int(row["seq"])):
        if row["kind"] == "protocol.phase":
            steps[row["subject"]].append(json.loads(row["data"])["phase"])
    for run, phases in steps.items():
        reached = [PHASES.index(phase) for phase in phases if phase in PHASES]
        if any(after - before > 1 for before, after in zip([0, *reached], reached, strict=False)):
            yield Violation("run-skipped", f"{run} went through {phases}", [])


def _steps_of_runs(history: History, given: Circumstances) -> Iterator[Violation]:
    """One client has one run after the other, so what it was told follows from what it was told before."""
    active: bool | None = False
    """Whether a run is active; None when that is not known."""
    at: int | None = None
    for op in history.of("run_start", "run_evidence", "run_gate", "advance", "run_end", "run_look"):
        if op.in_doubt:
            active = at = None
        elif op.ok and op.kind == "run_start":
            if active:
                yield Violation("run-beside-another", "a run began while another was active", [op])
            active, at = True, 0
        elif op.ok and op.kind == "advance":
            reached = PHASES.index(op.reply["phase"])
            if at is not None and reached != at + 1:
                yield Violation("run-skipped", f"one advance led from {PHASES[at]} to {PHASES[reached]}", [op])
            active, at = True, reached
        elif op.ok and op.kind == "run_end":
            active, at = False, None
        elif op.outcome is Outcome.REFUSED and op.kind != "run_look":
            expired = given.leases_may_end and "E_NO_SESSION" in op.error
            if (active or (active is False and op.kind == "run_start")) and not expired and "E_STORE" not in op.error:
                yield Violation("run-refused", f"{op.kind} was refused: {op.error}", [op])
            active = at = None
