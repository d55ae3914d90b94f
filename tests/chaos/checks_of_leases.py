"""Who had which message when: one taker at a time, one message per target, the most urgent and oldest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.chaos.history import History, Op, Outcome
from tests.chaos.violation import Violation

RANK = {"normal": 0, "urgent": 1, "stop": 2}


@dataclass(frozen=True, slots=True)
class Hold:
    """A message that a client certainly had: it was told so, and had not begun to give it back."""

    message: str
    target: str
    client: str
    attempt: int
    stop: bool
    since: float
    until: float
    take: Op


def check_leases(history: History, *, leases_may_end: bool) -> Iterator[Violation]:
    """Everything that contradicts the leases."""
    holds = _holds(history)
    yield from _one_attempt_one_taker(holds)
    if leases_may_end:
        return
    yield from _one_at_a_time(holds)
    yield from _only_holders_finish(history, holds)
    yield from _order(history)


def _holds(history: History) -> list[Hold]:
    finishes: dict[str, list[Op]] = defaultdict(list)
    for op in history.of("finish"):
        finishes[op.client].append(op)
    holds = []
    for take in history.of("take"):
        if not take.ok or "id" not in take.reply or take.completed is None:
            continue
        message = str(take.reply["id"])
        given_back = (
            op.invoked for op in finishes[take.client] if op.arguments["id"] == message and op.number > take.number
        )
        holds.append(
            Hold(
                message,
                take.arguments["target"],
                take.client,
                int(take.reply["attempt"]),
                take.reply["priority"] == "stop",
                take.completed,
                min(given_back, default=float("inf")),
                take,
            )
        )
    return holds


def _one_attempt_one_taker(holds: list[Hold]) -> Iterator[Violation]:
    first: dict[tuple[str, str, int], Hold] = {}
    for hold in holds:
        known = first.setdefault((hold.target, hold.message, hold.attempt), hold)
        if known.client != hold.client:
            text = f"attempt {hold.attempt} of {hold.message} went to {known.client} and {hold.client}"
            yield Violation("lease-shared", text, [known.take, hold.take])


def _one_at_a_time(holds: list[Hold]) -> Iterator[Violation]:
    by_target: dict[str, list[Hold]] = defaultdict(list)
    for hold in holds:
        by_target[hold.target].append(hold)
    for target, some in by_target.items():
        some.sort(key=lambda hold: hold.since)
        for number, one in enumerate(some):
            for other in some[number + 1 :]:
                if other.since >= one.until:
                    break
                together = [one.take, other.take]
                if one.message == other.message and one.client != other.client:
                    yield Violation(
                        "lease-overlap", f"{one.message} was with {one.client} and {other.client}", together
                    )
                elif one.message != other.message and not (one.stop or other.stop):
                    yield Violation("two-out", f"{one.message} and {other.message} of {target} were both out", together)


def _only_holders_finish(history: History, holds: list[Hold]) -> Iterator[Violation]:
    """Whoever ends a message had it; whoever had it can end it."""
    doubtful = {op.client for op in history.of("take") if op.in_doubt}
    finishes = history.of("finish")
    for op in finishes:
        message = str(op.arguments["id"])
        own = [
            hold for hold in holds if hold.message == message and hold.client == op.client and hold.since < op.invoked
        ]
        last = max(own, key=lambda hold: hold.since, default=None)
        if op.ok and not op.reply.get("repeated") and op.client not in doubtful:
            given_back = last is not None and any(
                other.ok
                for other in finishes
                if other.client == op.client
                and other.arguments["id"] == message
                and last.take.number < other.number < op.number
            )
            if last is None or given_back:
                yield Violation("finish-foreign", f"{op.client} ended {message}, which it did not have", [op])
        if (
            last is not None
            and last.until == op.invoked
            and op.outcome is Outcome.REFUSED
            and "E_NOT_YOURS" in op.error
        ):
            yield Violation("finish-denied", f"{op.client} had {message} of {last.target}", [last.take, op])


def _order(history: History) -> Iterator[Violation]:
    """Nothing is handed out while something more urgent, or equally urgent and older, certainly waits."""
    sends = [op for op in history.of("send") if op.ok and op.reply.get("queued")]
    takes = [op for op in history.of("take") if op.completed is not None]
    seen: dict[tuple[str, str], int] = {}
    for take in takes:
        target = take.arguments["target"]
        if not take.ok or "id" not in take.reply:
            continue
        taken, attempt = str(take.reply["id"]), int(take.reply["attempt"])
        again = seen.get((take.client, taken)) == attempt
        seen[take.client, taken] = attempt
        if again:
            continue  # it still had this one
        others = [op for op in history.of("take") if op.arguments["target"] == target and op is not take]
        if any(op.in_doubt and op.invoked < take.end for op in others):
            continue  # whoever got no answer may have what waits
        own = next((op for op in sends if op.reply["id"] == taken), None)
        if own is None:
            continue
        for waiting in sends:
            if waiting.arguments["target"] != target or not waiting.before(take) or waiting is own:
                continue
            rank, other = RANK[own.arguments["priority"]], RANK[waiting.arguments["priority"]]
            first = other > rank or (other == rank and waiting.before(own))
            begun = [
                op for op in others if op.ok and op.reply.get("id") == waiting.reply["id"] and op.invoked < take.end
            ]
            ended = [
                op
                for op in history.of("finish")
                if op.arguments["id"] == waiting.reply["id"] and op.outcome is not Outcome.REFUSED
            ]
            if first and not begun and not [op for op in ended if op.invoked < take.end]:
                text = f"{taken} was handed out while {waiting.reply['id']} waited"
                yield Violation("take-order", text, [waiting, own, take])
                break
