"""An agent that is idle at its terminal calls no hook: its owner is asked whether a copy of it may answer.

Each is a function of a transaction.
"""

from __future__ import annotations

from collections.abc import Collection

from holdfast.bridge.model import IdleDecision, UpdateKind
from holdfast.bridge.queries import idle, incarnations, queue, updates
from holdfast.bridge.queries.idle import CopyAnswer
from holdfast.bridge.wording import answered_by_copy
from holdfast.store import Tx

ANSWERS = {
    IdleDecision.FORK: "A copy of its conversation answers. It asks you before it changes anything.",
    IdleDecision.WAIT: "What is waiting is delivered when somebody writes at the terminal.",
    IdleDecision.OVER: "It is at work again at its terminal, and gets there what is waiting.",
}


def ask(tx: Tx, target: str, session_id: str, seconds: int, *, in_chat: bool = True) -> None:
    """Ask the owner, once each time a session is idle while messages wait; without a chat, name the commands."""
    tx.lock(f"bridge:{target}")
    known, waiting = idle.state(tx, target), queue.waiting(tx, target)
    is_asked = known is not None and known.decision != IdleDecision.OVER
    if is_asked or not waiting or incarnations.incarnation(tx, target) != session_id:
        return
    question = idle.ask(tx, target)
    messages = "1 message is" if waiting == 1 else f"{waiting} messages are"
    text = (
        f"💤 The agent of {target} is idle at its terminal (nothing for {seconds} s), and {messages} waiting. Shall a"
        " copy of its conversation answer, which asks you before it changes anything? Or wait for the terminal?"
    )
    if not in_chat:
        text += f" Decide with `holdfast bridge fork {target}` or `holdfast bridge wait {target}`."
    buttons = [("Answer in a copy", f"fork:{question}"), ("Wait", f"wait:{question}")]
    updates.add(tx, target, UpdateKind.IDLE, text, buttons=buttons)


def decide(tx: Tx, target: str, question: str, decision: IdleDecision) -> str:
    """Store the owner's decision and return the answer; without an id it applies to the latest question."""
    tx.lock(f"bridge:{target}")
    known = idle.state(tx, target)
    if known is None or question not in ("", known.question):
        return "Nothing is asked about this agent now."
    if known.decision == IdleDecision.OVER:
        return ANSWERS[IdleDecision.OVER]
    if known.decision != decision:
        idle.decide(tx, target, decision.value)
    return ANSWERS[decision]


def end(tx: Tx, target: str, session_id: str) -> None:
    """Record that a session is at work again, which ends the question."""
    known = idle.state(tx, target)
    if known is not None and known.session_id == session_id and known.decision != IdleDecision.OVER:
        idle.decide(tx, target, IdleDecision.OVER.value)


def tell(tx: Tx, target: str, seen: Collection[str]) -> list[str]:
    """Tell the agent at the terminal what copies answered, until its transcript contains it (`seen`, by message)."""
    unknown: list[CopyAnswer] = []
    for answer in idle.answered(tx, target):
        if answer.message.way == idle.TOLD and answer.message.id in seen:
            idle.mark(tx, answer.message, idle.KNOWN)
        else:
            unknown.append(answer)
    now, later = unknown[: idle.AT_ONCE], len(unknown) - idle.AT_ONCE
    for answer in now:
        idle.mark(tx, answer.message, idle.TOLD)
    told = [answered_by_copy(answer.message, answer.reply) for answer in now]
    more = "1 more message was" if later == 1 else f"{later} more messages were"
    return [*told, f"[{more} answered by a copy; you are told with the next prompt.]"] if later > 0 else told
