"""The chaos checker itself: it finds each violation in a history written by hand, and none in a correct one."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.chaos.checker import check
from tests.chaos.damage import Told, check_loss, lost_rows
from tests.chaos.damages import DAMAGES
from tests.chaos.effects import Circumstances
from tests.chaos.faults import FAULTS
from tests.chaos.history import History, Op, Outcome
from tests.chaos.plan import make_plan
from tests.chaos.plants import PLANTS, SOURCES
from tests.chaos.state import State

OK, REFUSED, UNKNOWN = Outcome.OK, Outcome.REFUSED, Outcome.UNKNOWN
TARGET, TEAM, TALK = "desk-a", "oracle-a", "4b2d"


class World:
    """A history and the state that it leads to, written by hand; every step takes a second."""

    def __init__(self) -> None:
        self.history = History()
        self.state = State()
        self.clock = itertools.count(1)
        self.state["sessions"].append({"id": "s", "title": "t", "status": "active", "thought_count": 0})
        self.state["conversations"].append(
            {"id": 1, "from_team": "", "to_team": TEAM, "thread": "main", "session_id": TALK}
        )
        self.state.transcripts[TALK] = []
        self._head()

    def op(
        self,
        client: str,
        kind: str,
        mark: str,
        arguments: dict[str, Any],
        reply: dict[str, Any] | None = None,
        outcome: Outcome = OK,
        error: str = "",
    ) -> Op:
        invoked = float(next(self.clock))
        done = Op(
            len(self.history),
            client,
            kind,
            arguments,
            mark,
            invoked,
            float(next(self.clock)),
            outcome,
            reply or {},
            error,
        )
        return self.history.add(done)

    def _head(self) -> None:
        newest = max((row["seq"] for row in self.state["events"]), default=0)
        self.state.tables["event_head"] = [{"id": 1, "seq": newest}]

    def event(self, kind: str, subject: str, data: dict[str, Any]) -> None:
        self.state["events"].append(
            {"seq": len(self.state["events"]) + 1, "kind": kind, "subject": subject, "data": json.dumps(data)}
        )
        self._head()

    def store_thought(self, mark: str) -> int:
        number = len(self.state["thoughts"]) + 1
        self.state["thoughts"].append({"session_id": "s", "number": number, "content": f"{mark} x", "branch_id": None})
        self.state["sessions"][0]["thought_count"] = number
        self.event("reasoning.thought_added", "s", {"number": number})
        return number

    def think(self, client: str, mark: str, outcome: Outcome = OK, *, stored: bool = True) -> Op:
        number = self.store_thought(mark) if stored else 0
        reply = {"sessionId": "s", "thoughtNumber": number or len(self.state["thoughts"]) + 1}
        return self.op(
            client,
            "think",
            mark,
            {"thought": f"{mark} x", "nextThoughtNeeded": True},
            reply if outcome is OK else {},
            outcome,
        )

    def store_message(self, mark: str, priority: str = "normal") -> dict[str, Any]:
        row = {
            "id": mark,
            "target": TARGET,
            "seq": len(self.state["bridge_messages"]) + 1,
            "text": f"{mark} please",
            "priority": priority,
            "status": "pending",
            "attempts": 0,
            "lease_by": None,
            "outcome": None,
            "reply": None,
        }
        self.state["bridge_messages"].append(row)
        self.event("bridge.queued", mark, {})
        return row

    def send(self, mark: str, outcome: Outcome = OK, *, stored: bool = True, priority: str = "normal") -> Op:
        if stored:
            self.store_message(mark, priority)
        arguments = {"target": TARGET, "message": f"{mark} please", "priority": priority}
        reply = {"queued": True, "id": mark, "target": TARGET} if outcome is OK else {}
        return self.op("writer", "send", mark, arguments, reply, outcome)

    def row(self, message: str) -> dict[str, Any]:
        return next(row for row in self.state["bridge_messages"] if row["id"] == message)

    def take(self, client: str, message: str, attempt: int = 1) -> Op:
        row = self.row(message)
        row |= {"status": "leased", "attempts": attempt}
        reply = {"id": message, "attempt": attempt, "priority": row["priority"], "target": TARGET}
        return self.op(client, "take", f"{client}#t{len(self.history)}.", {"target": TARGET}, reply)

    def finish(self, client: str, message: str, how: str = "done", outcome: Outcome = OK, error: str = "") -> Op:
        mark = f"{client}#f{len(self.history)}."
        reply = f"{mark} answered"
        if outcome is OK and how != "later":
            self.row(message).update(status=how, reply=reply)
            self.update("reply", reply)
        elif outcome is OK:
            self.row(message).update(status="pending")
        arguments = {"id": message, "outcome": how, "reply": reply}
        return self.op(client, "finish", mark, arguments, {"id": message, "status": how}, outcome, error)

    def update(self, kind: str, content: str) -> None:
        rows = self.state["bridge_updates"]
        rows.append({"target": TARGET, "seq": len(rows) + 1, "kind": kind, "message_id": None, "content": content})

    def task(self, mark: str, outcome: Outcome = OK, *, kept: bool = True) -> Op:
        if kept:
            text = f"{mark} at work"
            self.state.tables["bridge_tasks"] = [{"target": TARGET, "current_task": text, "session_id": "a"}]
        if outcome is OK:
            self.update("task", f"{mark} at work")
        return self.op("a", "task", mark, {"target": TARGET, "current_task": f"{mark} at work"}, {}, outcome)

    def ask(self, mark: str, *, answer: str | None = None, status: str = "answered") -> Op:
        answer = answer or f"echo 1: [Message]\n\n{mark} what?"
        row = {"id": f"id-{mark}", "conversation_id": 1, "text": f"{mark} what?", "status": status, "attempts": 1}
        self.state["asks"].append({**row, "answer": answer if status == "answered" else None, "error": None})
        self.state.transcripts[TALK].append(f"[Message]\n\n{mark} what?")
        reply = {"status": status, "askId": f"id-{mark}", "response": answer}
        return self.op("asker", "ask", mark, {"team": TEAM, "question": f"{mark} what?"}, reply)

    def run_start(self, mark: str) -> Op:
        row = {
            "id": "r",
            "root": "/",
            "objective": f"{mark} to do",
            "phase": "INIT",
            "status": "active",
            "summary": None,
        }
        self.state["protocol_runs"].append(row)
        return self.op("runner", "run_start", mark, {}, {"session_id": "r", "phase": "INIT"})

    def advance(self, phase: str, outcome: Outcome = OK, error: str = "") -> Op:
        return self.op("runner", "advance", f"runner#a{len(self.history)}.", {}, {"phase": phase}, outcome, error)

    def found(self, given: Circumstances = Circumstances()) -> set[str]:  # noqa: B008 - frozen
        return {violation.check for violation in check(self.history, self.state, given)}


@pytest.fixture
def world() -> World:
    """An empty one."""
    return World()


def test_a_correct_history_is_clean(world: World) -> None:
    world.think("a", "a#1.")
    world.think("b", "b#1.", UNKNOWN)
    world.think("a", "a#2.", UNKNOWN, stored=False)
    world.think("a", "a#3.", REFUSED, stored=False)
    world.send("w#1.")
    world.send("w#2.", priority="stop")
    world.send("w#3.", UNKNOWN, stored=False)
    world.take("a", "w#2.")
    world.finish("a", "w#2.")
    world.take("a", "w#1.")
    world.finish("a", "w#1.", "later")
    world.take("b", "w#1.", 2)
    world.finish("b", "w#1.")
    world.finish("a", "w#1.", "done", REFUSED, "E_NOT_YOURS: it was finished")
    world.task("a#t1.")
    world.task("a#t2.")
    world.ask("asker#1.")
    world.run_start("runner#1.")
    world.advance("CONTEXT_LOADED")
    world.advance("WORKING")
    assert world.found() == set()


def _lost_thought(world: World) -> None:
    world.think("a", "a#1.", stored=False)


def _thought_twice(world: World) -> None:
    world.think("a", "a#1.")
    world.store_thought("a#1.")


def _unknown_thought_twice(world: World) -> None:
    world.think("a", "a#1.", UNKNOWN)
    world.store_thought("a#1.")


def _refused_thought(world: World) -> None:
    world.think("a", "a#1.", REFUSED)


def _unasked_thought(world: World) -> None:
    world.store_thought("a#9.")


def _changed_thought(world: World) -> None:
    world.think("a", "a#1.")
    world.state["thoughts"][0]["content"] = "a#1. y"


def _moved_thought(world: World) -> None:
    world.think("a", "a#1.").reply["thoughtNumber"] = 2


def _thought_gap(world: World) -> None:
    world.think("a", "a#1.")
    world.state["thoughts"][0]["number"] = 2


def _thought_order(world: World) -> None:
    world.think("a", "a#1.")
    world.think("b", "b#1.")
    first, second = world.state["thoughts"]
    first["content"], second["content"] = second["content"], first["content"]


def _misplaced_thought(world: World) -> None:
    world.op("a", "recall", "a#0.", {}, {"session": {"id": "other", "thoughtCount": 0}})
    world.think("a", "a#1.")


def _evidence_twice(world: World) -> None:
    world.op("runner", "run_evidence", "runner#1.", {}, {})
    for row in range(2):
        world.state["protocol_evidence"].append({"row_id": row, "kind": "content_hash", "subject": "README.md"})


def _stale_recall(world: World) -> None:
    world.think("a", "a#1.")
    world.op("a", "recall", "a#2.", {}, {"session": {"id": "s", "thoughtCount": 0}})


def _lost_session(world: World) -> None:
    world.op("a", "new_session", "a#1.", {}, {"session": {"id": "x"}})


def _lost_message(world: World) -> None:
    world.send("w#1.", stored=False)


def _message_twice(world: World) -> None:
    world.send("w#1.")
    world.store_message("w#1.")["id"] = "other"


def _duplicate_of_nothing(world: World) -> None:
    world.send("w#1.").reply = {"queued": False, "reason": "duplicate"}


def _two_takers_of_one_attempt(world: World) -> None:
    world.send("w#1.")
    world.take("a", "w#1.")
    world.take("b", "w#1.")


def _two_holders(world: World) -> None:
    world.send("w#1.")
    world.take("a", "w#1.")
    world.take("b", "w#1.", 2)


def _two_out(world: World) -> None:
    world.send("w#1.")
    world.send("w#2.")
    world.take("a", "w#1.")
    world.take("b", "w#2.")


def _finished_twice(world: World) -> None:
    world.send("w#1.")
    world.take("a", "w#1.")
    world.finish("a", "w#1.")
    world.take("b", "w#1.", 2)
    world.finish("b", "w#1.")


def _came_again(world: World) -> None:
    world.send("w#1.")
    world.take("a", "w#1.")
    world.finish("a", "w#1.")
    world.take("b", "w#1.", 2)


def _finished_by_a_stranger(world: World) -> None:
    world.send("w#1.")
    world.finish("b", "w#1.")


def _finish_denied(world: World) -> None:
    world.send("w#1.")
    world.take("a", "w#1.")
    world.finish("a", "w#1.", "later", REFUSED, "E_NOT_YOURS: it is pending")


def _finish_lost(world: World) -> None:
    world.send("w#1.")
    world.take("a", "w#1.")
    world.finish("a", "w#1.")
    world.row("w#1.")["status"] = "pending"


def _stop_waits(world: World) -> None:
    world.send("w#1.")
    world.send("w#2.", priority="stop")
    world.take("a", "w#1.")


def _newest_first(world: World) -> None:
    world.send("w#1.")
    world.send("w#2.")
    world.take("a", "w#2.")


def _ended_by_itself(world: World) -> None:
    world.send("w#1.")
    world.row("w#1.")["status"] = "done"


def _dead_early(world: World) -> None:
    world.send("w#1.")
    world.row("w#1.").update(status="dead", attempts=2)


def _task_lost(world: World) -> None:
    world.task("a#1.")
    world.task("a#2.", kept=False)


def _task_told_twice(world: World) -> None:
    world.task("a#1.")
    world.update("task", "a#1. at work")


def _update_gap(world: World) -> None:
    world.task("a#1.")
    world.state["bridge_updates"][0]["seq"] = 2


def _update_skipped(world: World) -> None:
    world.task("a#1.")
    world.task("a#2.")
    told = [{"content": "a#2. at work"}]
    world.op("b", "pull", "b#1.", {"target": TARGET}, {"updates": told, "cursor": "2"})


def _notice_twice(world: World) -> None:
    world.op("a", "notify", "a#1.", {}, {})
    for number in range(2):
        world.state["notices"].append({"id": number, "from_team": "", "to_team": TEAM, "text": "a#1. is due"})


def _ask_crossed(world: World) -> None:
    world.ask("asker#1.", answer="echo 1: [Message]\n\nasker#2. what?")


def _ask_elsewhere(world: World) -> None:
    world.ask("asker#1.")
    world.state["conversations"][0]["thread"] = "side"


def _ask_run_twice(world: World) -> None:
    world.ask("asker#1.")
    world.state.transcripts[TALK] *= 2


def _ask_failed(world: World) -> None:
    world.ask("asker#1.", status="failed")


def _ask_unanswered(world: World) -> None:
    world.ask("asker#1.", status="running")
    world.state.door_asks = {"id-asker#1.": {"status": "pending", "askId": "id-asker#1."}}


def _answered_twice(world: World) -> None:
    world.ask("asker#1.").reply["response"] = "echo 7: [Message]\n\nasker#1. what?"


def _run_skipped(world: World) -> None:
    world.run_start("runner#1.")
    world.advance("WORKING")


def _run_refused(world: World) -> None:
    world.run_start("runner#1.")
    world.advance("", REFUSED, "E_NO_SESSION: there is none")


def _run_skipped_in_events(world: World) -> None:
    world.run_start("runner#1.")
    world.event("protocol.phase", "r", {"phase": "QUALITY_CHECKED"})


def _event_gap(world: World) -> None:
    world.think("a", "a#1.")
    world.think("a", "a#2.")
    world.state["events"][0]["seq"] = 0


def _event_missing(world: World) -> None:
    world.think("a", "a#1.")
    world.state["events"].clear()


def _door_differs(world: World) -> None:
    world.think("a", "a#1.")
    world.state.door_thoughts = {"s": []}


def _unanswered(world: World) -> None:
    world.think("a", "a#1.", Outcome.UNANSWERED, stored=False)


def _internal_error(world: World) -> None:
    world.think("a", "a#1.", Outcome.UNKNOWN).error = "{'code': -32603, 'message': 'Internal server error'}"


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (_lost_thought, "thought-lost"),
        (_thought_twice, "thought-twice"),
        (_unknown_thought_twice, "thought-twice"),
        (_refused_thought, "thought-refused"),
        (_unasked_thought, "thought-unasked"),
        (_changed_thought, "thought-changed"),
        (_moved_thought, "thought-moved"),
        (_thought_gap, "thought-numbers"),
        (_thought_order, "thought-order"),
        (_misplaced_thought, "thought-elsewhere"),
        (_evidence_twice, "evidence-count"),
        (_stale_recall, "recall-stale"),
        (_lost_session, "session-lost"),
        (_lost_message, "message-lost"),
        (_message_twice, "message-twice"),
        (_duplicate_of_nothing, "message-unqueued"),
        (_two_takers_of_one_attempt, "lease-shared"),
        (_two_holders, "lease-overlap"),
        (_two_out, "two-out"),
        (_finished_twice, "finished-twice"),
        (_came_again, "finished-came-again"),
        (_finished_by_a_stranger, "finish-foreign"),
        (_finish_denied, "finish-denied"),
        (_finish_lost, "finish-lost"),
        (_stop_waits, "take-order"),
        (_newest_first, "take-order"),
        (_ended_by_itself, "message-ended-itself"),
        (_dead_early, "message-dead-early"),
        (_task_lost, "task-lost"),
        (_task_told_twice, "task-twice"),
        (_update_gap, "update-numbers"),
        (_update_skipped, "update-skipped"),
        (_notice_twice, "notice-twice"),
        (_ask_crossed, "ask-crossed"),
        (_ask_elsewhere, "ask-elsewhere"),
        (_ask_run_twice, "ask-run-twice"),
        (_ask_failed, "ask-failed"),
        (_ask_unanswered, "ask-unanswered"),
        (_answered_twice, "ask-answered-twice"),
        (_run_skipped, "run-skipped"),
        (_run_refused, "run-refused"),
        (_run_skipped_in_events, "run-skipped"),
        (_event_gap, "event-numbers"),
        (_event_missing, "event-missing"),
        (_door_differs, "door-thoughts"),
        (_unanswered, "unanswered"),
        (_internal_error, "internal-error"),
    ],
)
def test_each_violation_is_found(world: World, spoil: Callable[[World], None], named: str) -> None:
    spoil(world)
    assert named in world.found()


def test_a_thought_after_one_in_doubt_may_go_anywhere(world: World) -> None:
    world.think("a", "a#1.", UNKNOWN, stored=False)
    world.think("a", "a#2.")
    assert world.found() == set()


def test_what_a_fault_allows_is_no_violation(world: World) -> None:
    world.send("w#1.")
    world.take("a", "w#1.")
    world.take("b", "w#1.", 2)
    world.ask("asker#1.", status="failed")
    assert world.found(Circumstances(leases_may_end=True, asks_may_fail=True)) == set()


NOTHING_LOST = Told(0, "Nothing was lost or changed (checked: thoughts).")


@pytest.mark.parametrize(
    ("readable", "told", "named"),
    [
        (False, NOTHING_LOST, {"loss-hidden"}),
        (False, Told(1, "Damage was found."), {"loss-unnamed"}),
        (False, Told(1, "PROBLEM session s: thought 1 is missing"), set()),
        (True, Told(1, "PROBLEM session s: thought 1 is missing"), {"salvage-dropped"}),
    ],
)
def test_a_loss_must_be_named_and_must_have_been_unavoidable(
    world: World, readable: bool, told: Told, named: set[str]
) -> None:
    world.state["sessions"][0]["id"] = "session s"
    world.store_thought("a#1.")
    world.state["thoughts"][0]["session_id"] = "session s"
    after = State(tables={**world.state.tables, "thoughts": []})
    lost = lost_rows(world.state, after)
    assert lost == [("thoughts", ("session s", 1))]
    assert {one.check for one in check_loss(lost, set(lost) if readable else set(), [told])} == named


def test_nothing_lost_is_no_violation_whatever_verify_says(world: World) -> None:
    world.store_thought("a#1.")
    assert lost_rows(world.state, world.state) == []
    assert not list(check_loss([], set(), [NOTHING_LOST, Told(1, "Damage was found.")]))


def test_a_plan_is_a_function_of_its_seed() -> None:
    for fault in (*FAULTS, *DAMAGES):
        assert make_plan(7, "sqlite", fault, 4.0, 2) == make_plan(7, "sqlite", fault, 4.0, 2)
    assert make_plan(7, "sqlite", "kill", 4.0, 2) != make_plan(8, "sqlite", "kill", 4.0, 2)


def test_every_planted_defect_still_fits_the_product() -> None:
    assert len(PLANTS) >= 10
    for plant in PLANTS.values():
        assert set(plant.faults) <= {*FAULTS, *DAMAGES}, plant.name
        for edit in plant.edits:
            text = (SOURCES / "holdfast" / edit.file).read_text()
            assert text.count(edit.old) == edit.times, f"{plant.name}: {edit.file} no longer has {edit.old!r}"
