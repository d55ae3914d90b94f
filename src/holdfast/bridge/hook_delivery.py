"""The life of a message that an agent gets through its hooks: each step a function of a transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from holdfast.bridge.model import MAX_TEXT, Message, Outcome, Priority, Restart, Task
from holdfast.bridge.queries import queue, tasks
from holdfast.bridge.wording import delivered, resumption
from holdfast.store import Tx, leases
from holdfast.text import clipped
from holdfast.text.quoting import quoted

HOLD_MS = 30 * 60_000
"""The lease of a message for a turn; it is renewed while the agent lives."""
LONGEST_TEXT = 8_000
"""Characters of a message that a hook delivers: agents cut off what is much longer."""
LONGEST_OPENING = 600
"""Characters of the text at the start of a session: it stays in the context for the whole conversation."""

_HOOK = "hook"
HOOKED = replace(queue.MESSAGES, held="status = 'leased' AND way = 'hook'")
"""Messages delivered by hooks: only their leases are renewed while the agent lives."""


def holder(session: str) -> str:
    return f"{queue.OF_SESSION}{session}"


def held(tx: Tx, target: str, session: str) -> list[Message]:
    """Return the messages of a session that end with its turn: those delivered by a hook, and every STOP."""
    mine = queue.leased(tx, target, holder(session))
    return [message for message in mine if message.way == _HOOK or message.priority == Priority.STOP]


def hand_over(tx: Tx, target: str, session: str, least: Priority = Priority.NORMAL) -> Message | None:
    """Lease the next message to a session for its turn."""
    return queue.take(tx, target, holder(session), _HOOK, HOLD_MS, least=least)


def end_turn(tx: Tx, messages: Iterable[Message], said: str, *, halted: bool = False) -> bool:
    """End the messages of a turn; says whether a STOP was among them. Halted ones are not done."""
    over = list(messages)
    halted = halted or any(message.priority == Priority.STOP for message in over)
    for message in over:
        if halted and message.priority != Priority.STOP:
            queue.finish(tx, message, Outcome.FAILED, plain(f"Halted by a STOP. {said}"))
        else:
            queue.finish(tx, message, Outcome.DONE, plain(said) or None)
    return halted


def interrupt_turn(tx: Tx, messages: Iterable[Message], seen: Collection[str], why: str) -> None:
    """Requeue what was delivered in a turn that was interrupted, unless a STOP was the reason."""
    over = [message for message in messages if message.id in seen]
    if any(message.priority == Priority.STOP for message in over):
        end_turn(tx, over, why)
        return
    for message in over:
        queue.give_back(tx, message)


def leave(tx: Tx, target: str, session: str) -> None:
    """Requeue the messages of a session that ended; its STOP is thereby done."""
    tx.lock(f"bridge:{target}")
    for message in queue.leased(tx, target, holder(session)):
        if message.priority == Priority.STOP:
            queue.finish(tx, message, Outcome.DONE, "The session ended.")
        else:
            queue.give_back(tx, message)


def end_stops(tx: Tx, target: str, session: str | None, why: str, *, last_seq: int) -> Message | None:
    """End the waiting STOPs up to a queue position, and those that a session has; return the last of them."""
    mine = queue.leased(tx, target, holder(session)) if session else []
    ended = [message for message in mine if message.priority == Priority.STOP]
    for stop in ended:
        queue.finish(tx, stop, Outcome.DONE, why)
    while (first := _first(tx, target)) and first.priority == Priority.STOP and first.seq <= last_seq:
        queue.finish(tx, first, Outcome.DONE, why)
        ended.append(first)
    return ended[-1] if ended else None


def stop_for(tx: Tx, target: str, session: str) -> Message | None:
    """Return the STOP that a session has, or will get next."""
    for message in queue.leased(tx, target, holder(session)):
        if message.priority == Priority.STOP:
            return message
    first = _first(tx, target)
    waits = first is not None and first.priority == Priority.STOP and first.expires_at >= tx.now()
    return first if waits else None


def cuts_in(tx: Tx, target: str) -> bool:
    """Return whether a message is waiting that may be delivered in the middle of a turn."""
    first = _first(tx, target)
    if first is None or first.priority == Priority.NORMAL:
        return False
    return first.priority == Priority.STOP or not queue.leased(tx, target)


def _first(tx: Tx, target: str) -> Message | None:
    return next(iter(queue.pending(tx, target, 1)), None)


def prolong(tx: Tx, sessions: Iterable[str]) -> None:
    """Renew the leases of sessions that are still at work."""
    for session in sessions:
        leases.renew(tx, HOOKED, HOLD_MS, holder=holder(session))


def text_of(tx: Tx, message: Message, beside: int = 0) -> str:
    """Return a message as a hook delivers it, if that many characters are already taken."""
    shown, longest = message, LONGEST_TEXT - beside
    if len(message.text) > longest:
        more = f"… [cut after {longest} of {len(message.text)} characters: take_message gives it whole]"
        shown = replace(message, text=message.text[:longest] + more)
    return delivered(shown, waiting=queue.waiting(tx, message.target))


def resuming(task: Task, old: str | None) -> str:
    """Tell a new incarnation about the task, within the length limit."""
    return clipped(resumption(task, old, task.decision), LONGEST_OPENING - 50)


def opening(tx: Tx, target: str, session: str, source: str, restart: Restart | None) -> str | None:
    """Tell an agent whose session starts or continues about its task and waiting messages."""
    told: list[str] = []
    task = tasks.of_target(tx, target) if restart else None
    if restart is not None and task is not None:
        told.append(resuming(task, restart.old))
    if source == "compact":
        told += [
            f"You are working on message {quoted(one.id, 128)}: take_message gives it whole."
            for one in held(tx, target, session)
        ]
    elif waiting := queue.waiting(tx, target):
        told.append(f"{waiting} {'message is' if waiting == 1 else 'messages are'} waiting; they come in order.")
    return clipped("\n".join(told), LONGEST_OPENING) if told else None


def plain(text: str) -> str:
    """Clean an agent's words so that they can be stored and sent."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()[:MAX_TEXT].strip()
