"""The owner's decision after a restart: the agent resumes its task, or starts fresh. Of two, the first counts."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.bridge.model import Refusal, decision_text
from holdfast.bridge.queries import incarnations, tasks
from holdfast.errors import Conflict
from holdfast.store import Tx


def decide(
    tx: Tx, target: str, decision: str, enqueue: Callable[[str], str | Refusal], is_asked: Callable[[str], bool] | None
) -> Refusal | str:
    """Store and pass on the decision; return the outcome, or raise Conflict with the reason.

    `is_asked` tells whether the question was about this session; None where no certain question is answered.
    """
    tx.lock(f"bridge:{target}")
    session, task = incarnations.incarnation(tx, target), tasks.of_target(tx, target)
    if is_asked is not None and not is_asked(session or ""):
        raise Conflict("That question is from an earlier restart.")
    if task is None:
        raise Conflict("There is no saved task to decide on.")
    if task.decision is not None:
        known = "resume" if task.decision == "resume" else "start fresh"
        raise Conflict(f"Already decided: {known}. To change that, write it to the agent as a message.")
    if is_asked is not None and task.session_id is not None and task.session_id == session:
        raise Conflict(f"The agent continued without a decision and is working on: {task.current_task}")
    made = enqueue(decision_text(decision, task.current_task))
    if isinstance(made, Refusal):
        return made
    tasks.decide(tx, target, decision)
    return f"It will resume: {task.current_task}" if decision == "resume" else "It will start fresh."
