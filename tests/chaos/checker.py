"""The checker: what was told and what is there must fit. Pure functions of a history and a state."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator

from tests.chaos.checks_of_agents import check_asks, check_notices, check_runs
from tests.chaos.checks_of_leases import check_leases
from tests.chaos.effects import Circumstances, counted, mark_of, times
from tests.chaos.history import History, Op, Outcome
from tests.chaos.state import Rows, State
from tests.chaos.violation import Violation

ATTEMPTS_OF_MESSAGE = 5
INTERNAL_ERROR = "'code': -32603"
"""How JSON-RPC says it, as clients note it."""


def check(history: History, state: State, given: Circumstances) -> list[Violation]:
    """Everything that does not fit."""
    checks: tuple[Callable[[History, State, Circumstances], Iterable[Violation]], ...] = (
        _answered,
        _internal_errors,
        _thoughts,
        _thought_numbers,
        _places,
        _recalls,
        _sessions,
        _sends,
        _finishes,
        _statuses,
        lambda history, state, given: check_leases(history, leases_may_end=given.leases_may_end),
        _tasks,
        _updates,
        check_notices,
        check_asks,
        check_runs,
        _events,
        _doors,
    )
    return [violation for one in checks for violation in one(history, state, given)]


def _answered(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    for op in history:
        if op.outcome is Outcome.UNANSWERED:
            yield Violation("unanswered", f"{op.kind} of {op.client} had no answer while its relay lived", [op])


def _internal_errors(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    """An answer that says only that something went wrong: no fault may cause one."""
    for op in history:
        if INTERNAL_ERROR in op.error:
            yield Violation("internal-error", f"{op.kind} of {op.client} was answered with {op.error}", [op])


# -- reasoning ------------------------------------------------------------------------------------------------------


def _thoughts(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    ops = history.of("think")
    yield from counted("thought", ops, times(row["content"] for row in state["thoughts"]), given)
    stored = {(row["session_id"], row["number"]): row for row in state["thoughts"]}
    for op in ops:
        if not op.ok or op.mark in given.excused:
            continue
        place = (op.reply.get("sessionId"), op.reply.get("thoughtNumber"))
        row = stored.get((str(place[0]), int(place[1] or 0)))
        if row is None or mark_of(row["content"]) != op.mark:
            yield Violation("thought-moved", f"{op.mark} is not at {place}, where it was acknowledged", [op])
        elif row["content"] != op.arguments["thought"] or row["branch_id"] != op.arguments.get("branchId"):
            yield Violation("thought-changed", f"{op.mark} is not as it was sent", [op])


def _thought_numbers(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    """Numbers without gap, in an order that fits what clients saw."""
    ops = {op.mark: op for op in history.of("think") if op.ok}
    sessions: dict[str, Rows] = defaultdict(list)
    for row in state["thoughts"]:
        sessions[row["session_id"]].append(row)
    counts = {row["id"]: row["thought_count"] for row in state["sessions"]}
    for session, rows in sessions.items():
        rows.sort(key=lambda row: int(row["number"]))
        numbers = [int(row["number"]) for row in rows]
        if numbers != list(range(1, len(rows) + 1)) and not given.excused:
            yield Violation("thought-numbers", f"session {session} has the numbers {numbers}", [])
        if counts.get(session) != len(rows) and not given.excused:
            yield Violation("thought-count", f"{session} counts {counts.get(session)}, there are {len(rows)}", [])
        latest: Op | None = None
        for row in reversed(rows):
            op = ops.get(mark_of(row["content"]))
            if op is None:
                continue
            # Going down: none may have been over before one with a lower number began.
            if latest is not None and latest.before(op):
                yield Violation("thought-order", f"{latest.mark} came first and has the higher number", [op, latest])
            latest = op if latest is None or op.end < latest.end else latest


def _places(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    """A client's thoughts go on in the session it is on, until it turns to another or another takes it up.

    A client whose connection broke for a moment is not live, and then its session may be given to another one.
    """
    if given.leases_may_end:
        return  # after two hours a session is not continued by itself
    users: dict[str, set[str]] = defaultdict(set)
    ops = history.of("think", "new_session", "recall")
    for op in ops:
        users[_session_of(op)].add(op.client)
    on: dict[str, str] = {}
    for op in ops:
        if op.in_doubt:
            on[op.client] = ""
        elif op.ok:
            told, expected = _session_of(op), op.arguments.get("sessionId") or on.get(op.client, "")
            if op.kind == "think" and expected not in ("", told) and users[expected] == {op.client}:
                yield Violation("thought-elsewhere", f"{op.mark} belongs to {expected} and went to {told}", [op])
            on[op.client] = told


def _session_of(op: Op) -> str:
    return str(op.reply.get("session", {}).get("id") or op.reply.get("sessionId") or "")


def _recalls(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    """Whoever loads a session is told of every thought that was acknowledged before."""
    thoughts = [op for op in history.of("think") if op.ok and "sessionId" in op.reply]
    for recall in history.of("recall"):
        session = recall.reply.get("session", {})
        if not recall.ok or "id" not in session:
            continue
        known = [op for op in thoughts if op.reply["sessionId"] == session["id"] and op.before(recall)]
        newest = max(known, key=lambda op: int(op.reply["thoughtNumber"]), default=None)
        told = session.get("thoughtCount", 0)
        if newest is not None and told < newest.reply["thoughtNumber"]:
            yield Violation("recall-stale", f"load_context told {told} thoughts of {session['id']}", [newest, recall])


def _sessions(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    named = [row["title"] for row in state["sessions"] if row["title"].endswith(" begins")]
    yield from counted("session", history.of("new_session"), times(named), given)


# -- the bridge -----------------------------------------------------------------------------------------------------


def _sends(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    ops = history.of("send")
    yield from counted("message", ops, times(row["text"] for row in state["bridge_messages"]), given, repeated=True)
    rows = {mark_of(row["text"]): row for row in state["bridge_messages"]}
    for op in ops:
        row = rows.get(op.mark)
        if (
            op.ok
            and row is not None
            and (row["text"], row["target"]) != (op.arguments["message"], op.arguments["target"])
        ):
            yield Violation("message-changed", f"{op.mark} is not as it was sent", [op])
        if op.ok and op.reply.get("queued") and row is not None and row["id"] != op.reply["id"]:
            yield Violation("message-id", f"{op.mark} was acknowledged as {op.reply['id']} and is {row['id']}", [op])
        earlier = [other for other in ops if other.mark == op.mark and other.number < op.number]
        if op.ok and not op.reply.get("queued") and not any(other.in_doubt or other.ok for other in earlier):
            yield Violation("message-unqueued", f"{op.mark} was sent once, and the answer was {op.reply}", [op])


def _finishes(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    """A message ends once, as whoever held it was told; nothing that ended comes again."""
    rows = {row["id"]: row for row in state["bridge_messages"]}
    takes = [op for op in history.of("take") if op.ok and "id" in op.reply]
    ended: dict[str, Op] = {}
    for op in history.of("finish"):
        if not op.ok or op.reply.get("repeated"):
            continue
        message, outcome = str(op.arguments["id"]), op.arguments["outcome"]
        if outcome == "later":
            continue
        if message in ended:
            yield Violation("finished-twice", f"{message} was ended by two calls", [ended[message], op])
        ended[message] = op
        row = rows.get(message)
        if row is None:
            if op.mark not in given.excused and message not in given.excused:
                yield Violation("message-lost", f"{message} was finished and is not there", [op])
        elif (row["status"], row["reply"]) != (outcome, op.arguments["reply"]):
            yield Violation("finish-lost", f"{message} was ended as {outcome} and is {row['status']}", [op])
        again = next((take for take in takes if take.reply["id"] == message and op.before(take)), None)
        if again is not None:
            yield Violation("finished-came-again", f"{message} was ended and handed out again", [op, again])
    refused = {op.mark for op in history.of("finish") if op.outcome is Outcome.REFUSED}
    for row in rows.values():
        if row["reply"] and mark_of(row["reply"]) in refused:
            yield Violation("finish-refused", f"{row['id']} ended by a call that was refused", [])


def _statuses(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    """Everything sent is waiting, out, over or a dead letter, for a reason."""
    finished = {str(op.arguments["id"]) for op in history.of("finish") if op.outcome is not Outcome.REFUSED}
    taken = {str(op.reply["id"]) for op in history.of("take") if op.ok and "id" in op.reply}
    doubtful_takes = any(op.in_doubt for op in history.of("take"))
    for row in state["bridge_messages"]:
        status, name = row["status"], row["id"]
        if status in ("done", "failed") and name not in finished:
            yield Violation("message-ended-itself", f"{name} is {status} and nobody ended it", [])
        elif status == "dead" and row["attempts"] < ATTEMPTS_OF_MESSAGE:
            yield Violation("message-dead-early", f"{name} was handed out {row['attempts']} times", [])
        elif status == "expired" and not given.leases_may_end:
            yield Violation("message-expired", f"{name} expired although no time passed", [])
        elif status not in ("pending", "leased", "done", "failed", "dead", "expired"):
            yield Violation("message-status", f"{name} is {status!r}", [])
        if row["attempts"] and name not in taken and not doubtful_takes:
            yield Violation("message-taken-by-nobody", f"{name} was handed out and no client got it", [])


def _tasks(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    """The last task is one that no later one replaced."""
    ops = history.of("task")
    for row in state["bridge_tasks"]:
        mark = mark_of(row["current_task"])
        saved = next((op for op in ops if op.mark == mark), None)
        if saved is None or saved.outcome is Outcome.REFUSED:
            yield Violation("task-unasked", f"{row['target']} has the task {mark}", [saved] if saved else [])
            continue
        same = [op for op in ops if op.ok and op.arguments["target"] == row["target"]]
        later = next((op for op in same if saved.before(op)), None)
        if later is not None:
            yield Violation("task-lost", f"{later.mark} was saved after {mark} and is not the task", [saved, later])
    told = {row["target"] for row in state["bridge_tasks"]}
    for op in ops:
        if op.ok and op.arguments["target"] not in told and op.mark not in given.excused:
            yield Violation("task-lost", f"{op.arguments['target']} has no task", [op])


def _updates(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    """Each reply and each task is told once; whoever follows with a cursor misses nothing."""
    rows = state["bridge_updates"]
    over = [op for op in history.of("finish") if op.arguments["outcome"] != "later"]
    replies = times(row["content"] for row in rows if row["kind"] == "reply")
    yield from counted("reply", over, replies, given)
    tasks = times(row["content"] for row in rows if row["kind"] == "task")
    yield from counted("task", history.of("task"), tasks, given)
    by_target: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        by_target[row["target"]].append(int(row["seq"]))
    for target, numbers in by_target.items():
        if sorted(numbers) != list(range(1, len(numbers) + 1)) and not given.excused:
            yield Violation("update-numbers", f"{target} has the updates {sorted(numbers)}", [])
    yield from _followed(history, rows)


def _followed(history: History, rows: Rows) -> Iterator[Violation]:
    shown = {(row["target"], int(row["seq"])): row["content"] for row in rows if row["kind"] != "message"}
    for op in history.of("pull"):
        if not op.ok:
            continue
        target, since, until = op.arguments["target"], int(op.arguments.get("since", 0)), int(op.reply["cursor"])
        told = [update["content"] for update in op.reply["updates"]]
        there = [shown[target, seq] for seq in range(since + 1, until + 1) if (target, seq) in shown]
        if told != there and (len(told) < 100 or told != there[:100]):
            yield Violation("update-skipped", f"between {since} and {until} {target} was told {told}", [op])


# -- the whole ------------------------------------------------------------------------------------------------------


def _events(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    """Events are numbered without gap, and each thought and message has one."""
    numbers = sorted(int(row["seq"]) for row in state["events"])
    if given.excused:
        return
    head = state["event_head"][0]["seq"] if state["event_head"] else 0
    if numbers and (numbers != list(range(numbers[0], numbers[-1] + 1)) or numbers[-1] != head):
        yield Violation("event-numbers", f"{len(numbers)} events from {numbers[0]} to {numbers[-1]}, head {head}", [])
    added = Counter(
        (row["subject"], json.loads(row["data"])["number"])
        for row in state["events"]
        if row["kind"] == "reasoning.thought_added"
    )
    thoughts = Counter((row["session_id"], row["number"]) for row in state["thoughts"])
    if added != thoughts:
        yield Violation(
            "event-missing", f"thoughts and their events differ: {(added - thoughts) + (thoughts - added)}", []
        )
    queued = Counter(row["subject"] for row in state["events"] if row["kind"] == "bridge.queued")
    messages = Counter(row["id"] for row in state["bridge_messages"])
    if queued != messages:
        yield Violation(
            "event-missing", f"messages and their events differ: {(queued - messages) + (messages - queued)}", []
        )


def _doors(history: History, state: State, given: Circumstances) -> Iterator[Violation]:
    """What users are told is what is stored."""
    if state.door_thoughts is not None:
        told = {(session, t["number"], t["content"]) for session, rows in state.door_thoughts.items() for t in rows}
        stored = {(row["session_id"], row["number"], row["content"]) for row in state["thoughts"]}
        stored = {one for one in stored if one[0] in state.door_thoughts}
        if told != stored:
            yield Violation("door-thoughts", f"exports and store differ: {sorted(told ^ stored)[:3]}", [])
    if state.door_messages is not None:
        listed = set(state.door_messages)
        kept = {(row["target"], row["id"]) for row in state["bridge_messages"]}
        if listed != kept:
            yield Violation("door-messages", f"REST and store differ: {sorted(listed ^ kept)[:5]}", [])
    if state.door_updates is not None:
        followed = [(target, one["content"]) for target, rows in state.door_updates.items() for one in rows]
        rows = sorted(state["bridge_updates"], key=lambda row: (row["target"], int(row["seq"])))
        if sorted(followed) != sorted((row["target"], row["content"]) for row in rows if row["kind"] != "message"):
            yield Violation("door-updates", "pull_updates and store differ", [])
