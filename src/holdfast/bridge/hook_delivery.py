"""What becomes of a message that a live agent gets with its hooks: each a function of a transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from holdfast.bridge.model import MAX_TEXT, Message, Outcome, Priority, Task
from holdfast.bridge.queries import incarnations, queue, tasks
from holdfast.bridge.wording import delivered, resumption
from holdfast.store import Tx, leases
from holdfast.text import clipped
from holdfast.text.quoting import quoted

HOLD_MS = 30 * 60_000
"""How long a message belongs to a turn of which nothing is heard; while its agent lives, it is prolonged."""
LONGEST_TEXT = 8_000
"""Characters of a message that come with a hook: an agent cuts what is much longer."""
LONGEST_OPENING = 600
"""Characters of what an agent is told when it begins: it carries them through the whole conversation."""

_HOOK = "hook"
HOOKED = replace(queue.MESSAGES, held="status = 'leased' AND way = 'hook'")
"""Messages that came with a hook: these alone are prolonged while their agent lives."""


def holder(session: str) -> str:
    """Whose a message is that a session has."""
    return f"{queue.OF_SESSION}{session}"


def held(tx: Tx, target: str, session: str) -> list[Message]:
    """What a session has that ends with its turn: what came with a hook, and every STOP."""
    mine = queue.leased(tx, target, holder(session))
    return [message for message in mine if message.way == _HOOK or message.priority == Priority.STOP]


def hand_over(tx: Tx, target: str, session: str, least: Priority = Priority.NORMAL) -> Message | None:
    """The next message, for the turn that a session is in."""
    return queue.take(tx, target, holder(session), _HOOK, HOLD_MS, least=least)


def end_turn(tx: Tx, messages: Iterable[Message], said: str, *, halted: bool = False) -> bool:
    """End what an agent had in its turn; whether a STOP was in it. What was halted is not done."""
    over = list(messages)
    halted = halted or any(message.priority == Priority.STOP for message in over)
    for message in over:
        if halted and message.priority != Priority.STOP:
            queue.finish(tx, message, Outcome.FAILED, plain(f"Halted by a STOP. {said}"))
        else:
            queue.finish(tx, message, Outcome.DONE, plain(said) or None)
    return halted


def interrupt_turn(tx: Tx, messages: Iterable[Message], seen: Collection[str], why: str) -> None:
    """A turn broke off: what was seen in it comes back to the queue, unless a STOP was the reason."""
    over = [message for message in messages if message.id in seen]
    if any(message.priority == Priority.STOP for message in over):
        end_turn(tx, over, why)
        return
    for message in over:
        queue.give_back(tx, message)


def leave(tx: Tx, target: str, session: str) -> None:
    """A session ended: what it still had comes back to the queue. A STOP has what it asked for."""
    tx.lock(f"bridge:{target}")
    for message in queue.leased(tx, target, holder(session)):
        if message.priority == Priority.STOP:
            queue.finish(tx, message, Outcome.DONE, "The session ended.")
        else:
            queue.give_back(tx, message)


def stop_for(tx: Tx, target: str, session: str) -> Message | None:
    """The STOP that a session has, or is to get."""
    for message in queue.leased(tx, target, holder(session)):
        if message.priority == Priority.STOP:
            return message
    first = next(iter(queue.pending(tx, target, 1)), None)
    waits = first is not None and first.priority == Priority.STOP and first.expires_at >= tx.now()
    return first if waits else None


def cuts_in(tx: Tx, target: str) -> bool:
    """Whether something waits that an agent is given in the middle of its turn."""
    first = next(iter(queue.pending(tx, target, 1)), None)
    if first is None or first.priority == Priority.NORMAL:
        return False
    return first.priority == Priority.STOP or not queue.leased(tx, target)


def prolong(tx: Tx, sessions: Iterable[str]) -> None:
    """Sessions are still at work on what came with their hooks."""
    for session in sessions:
        leases.renew(tx, HOOKED, HOLD_MS, holder=holder(session))


def text_of(tx: Tx, message: Message) -> str:
    """A message as it comes with a hook."""
    shown = message
    if len(message.text) > LONGEST_TEXT:
        more = f"… [cut after {LONGEST_TEXT} of {len(message.text)} characters: take_message gives it whole]"
        shown = replace(message, text=message.text[:LONGEST_TEXT] + more)
    return delivered(shown, waiting=queue.waiting(tx, message.target))


def resuming(task: Task, old: str | None) -> str:
    """What a new incarnation is told of the task, within what it can carry."""
    return clipped(resumption(task, old, task.decision), LONGEST_OPENING - 50)


def opening(tx: Tx, target: str, session: str, source: str, *, restarted: bool) -> str | None:
    """What an agent is told when its session begins or goes on: its task, and what waits for it."""
    told: list[str] = []
    now = incarnations.present(tx, target)
    # A call that comes twice is answered twice alike, so it is the store that knows, not the first call.
    took_over = now is not None and now.session_id == session and source in ("startup", "clear")
    task = tasks.of_target(tx, target)
    if now is not None and now.previous is not None and task is not None and (restarted or took_over):
        told.append(resuming(task, now.previous))
    if source == "compact":
        told += [
            f"You are working on message {quoted(one.id, 128)}: take_message gives it whole."
            for one in held(tx, target, session)
        ]
    elif waiting := queue.waiting(tx, target):
        told.append(f"{waiting} {'message waits' if waiting == 1 else 'messages wait'}; they come in order.")
    return clipped("\n".join(told), LONGEST_OPENING) if told else None


def plain(text: str) -> str:
    """Words of an agent, as they can be stored and sent on."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()[:MAX_TEXT].strip()
