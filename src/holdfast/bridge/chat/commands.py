"""What the owner can do from the chat: commands, buttons, and the first word of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.bridge import idle, restart_decision
from holdfast.bridge.chat import held
from holdfast.bridge.chat.wording import question
from holdfast.bridge.errors import UnknownMessage
from holdfast.bridge.model import IdleDecision, Message, Priority, Refusal, Status
from holdfast.bridge.queries import incarnations, owner, queue, tasks
from holdfast.bridge.queue_changes import cancel
from holdfast.bridge.wording import beginning
from holdfast.errors import Conflict
from holdfast.identity.senders import Sender
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx
from holdfast.times import iso, local

LISTED = 10
BUTTONS = 8
"""Buttons that fit into one row."""
DECISIONS = {"resume": "resume", "new": "fresh"}
PRESSED = ("resume", "new", "approve", "deny", "held", "release", "drop", "fork", "wait", "cancel")
"""The commands that buttons stand for."""
HELP = """What you write here is queued for the agent. A text that begins with "urgent:" goes first, one that begins \
with "stop" halts it.
/status – what it is doing
/queue – which messages are waiting
/cancel – in reply to a message, or alone: take back one that is still waiting; to change it, edit it
/stop – halt it
/resume – after a restart: go on with the task
/new – after a restart: start fresh
/fork – while it is idle at its terminal: a copy of its conversation answers; it asks you before it changes anything
/wait – wait for the terminal
/approve ID, /deny ID – what it asks permission for
/held – messages that came with an archive and wait for your decision
/help – this"""

_COMMAND = re.compile(r"/(?P<name>[A-Za-z0-9_]{1,32})(?:@(?P<bot>[A-Za-z0-9_]{1,64}))?(?:\s+(?P<rest>.*))?", re.DOTALL)
_STOP = re.compile(r"stop(?![\w'’-])", re.IGNORECASE)
_URGENT = re.compile(r"urgent:\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Command:
    """A command to the bridge itself, typed or by a button."""

    name: str
    argument: str = ""
    bot: str | None = None
    """The bot it is addressed to, in a group with several."""
    pressed: bool = False
    """Whether it came from a button."""


def command(text: str) -> Command | None:
    """Parse a text as a command; None if it is for the agent."""
    match = _COMMAND.fullmatch(text.rstrip())
    if match is None:
        return None
    return Command(match["name"].lower(), (match["rest"] or "").strip(), match["bot"])


def pressed(action: str) -> Command | None:
    name, _, argument = action.partition(":")
    return Command(name, argument, pressed=True) if name in PRESSED else None


def urgency(text: str) -> Priority:
    """Read the priority from a text's first word."""
    first = text.lstrip()
    if _STOP.match(first):
        return Priority.STOP
    return Priority.URGENT if _URGENT.match(first) else Priority.NORMAL


@dataclass(frozen=True, slots=True)
class Order:
    """A command for a target, from somebody who may give it."""

    target: str
    command: Command
    message_id: str
    """The id of whatever message it puts into the queue."""
    sender: Sender
    source: str
    quoted: str | None = None
    """The id of the message that it was written in reply to."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the chat answers."""

    text: str
    buttons: tuple[tuple[str, str], ...] = ()


def obey(tx: Tx, order: Order, permission: str | None) -> Said | None:
    """Carry out a command and return the answer. `permission` is the answer to a permission decision."""
    return _cancel(tx, order) if order.command.name == "cancel" else Said(_obey(tx, order, permission))


def _obey(tx: Tx, order: Order, permission: str | None) -> str:
    name = order.command.name
    if name == "status":
        return _status(tx, order.target)
    if name == "queue":
        return _queue(tx, order.target)
    if name == "stop":
        return _stop(tx, order)
    if name in DECISIONS:
        return _decide(tx, order, DECISIONS[name])
    if name in ("fork", "wait"):
        return idle.decide(tx, order.target, order.command.argument, IdleDecision(name))
    if name in ("approve", "deny"):
        return permission or f"Which one? Write /{name} and the id of the request."
    if name == "held":
        return held.show(tx, order.target)
    if name in ("release", "drop"):
        return held.decide(tx, order.target, order.command.argument, drop=name == "drop")
    if name in ("help", "start"):
        return HELP
    return f"There is no command /{name}. /help lists them. To send it to the agent, put another word first."


def put(tx: Tx, order: Order, text: str, priority: Priority, reply_to: str | None = None) -> str | Refusal:
    return queue.enqueue(
        tx,
        order.target,
        text,
        message_id=order.message_id,
        priority=priority,
        sender=order.sender.label,
        source=order.source,
        reply_to=reply_to,
    )


def refused(reason: Refusal) -> str:
    if reason is Refusal.FULL:
        return "Not queued: the queue is full. /queue shows what is waiting; send it again when some of that is done."
    return f"Not queued: {reason}."


def _status(tx: Tx, target: str) -> str:
    task, session, seen = (
        tasks.of_target(tx, target),
        incarnations.incarnation(tx, target),
        incarnations.last_seen(tx, target),
    )
    working = queue.leased(tx, target)
    lines = [f"**{target}**"]
    if task is not None:
        step = f" (step {task.last_completed_step})" if task.last_completed_step else ""
        lines.append(f"Task: {task.current_task}{step}")
    lines += [f"Working on: {beginning(message.text)}" for message in working]
    if task is None and not working:
        lines.append("Nothing in progress.")
    lines.append(f"Waiting: {queue.count(tx, target, Status.PENDING)}")
    if waits := queue.count(tx, target, Status.HELD):
        lines.append(f"Waiting for your decision: {waits} (/held)")
    if dead := queue.count(tx, target, Status.DEAD):
        lines.append(f"Dead letters: {dead}")
    lines.append(f"Session: {session}" if session else "Session: none seen yet")
    if seen is not None:
        lines.append(f"Last seen: {local(iso(seen))}")
    return "\n".join(lines)


def _queue(tx: Tx, target: str) -> str:
    return _listed(tx, target, queue.pending(tx, target, LISTED))


def _listed(tx: Tx, target: str, messages: Sequence[Message]) -> str:
    total = queue.count(tx, target, Status.PENDING)
    if total == 0:
        return "No messages waiting."
    lines = [f"{total} waiting:"]
    for number, message in enumerate(messages, 1):
        priority = Priority(message.priority)
        mark = "" if priority is Priority.NORMAL else f" [{priority.word}]"
        lines.append(f"{number}.{mark} {beginning(message.text)} ({message.sender})")
    if total > len(messages):
        lines.append(f"… and {total - len(messages)} more")
    return "\n".join(lines)


def _cancel(tx: Tx, order: Order) -> Said | None:
    """Cancel the message that a button, the text or the quoted message names; without one, ask which.

    That it is cancelled is an update of the target, so it needs no other answer."""
    tx.lock(f"bridge:{order.target}")
    named = order.command.argument
    if order.command.pressed:
        named = (owner.in_row(tx, order.target, int(named)) if named.isdecimal() and len(named) < 19 else None) or ""
    elif not named and order.quoted is not None:
        edited = queue.waiting_from_chat(tx, order.target, order.quoted)
        named = order.quoted if edited is None else edited.id
    try:
        ended = cancel(tx, named, order.target, order.sender) if named else None
    except Conflict as error:
        return Said(error.message)
    except UnknownMessage:
        ended = None
    if ended is not None:
        return Said("It is already cancelled.") if ended.repeated else None
    messages = queue.pending(tx, order.target, BUTTONS)
    buttons = tuple((str(number), f"cancel:{message.row_id}") for number, message in enumerate(messages, 1))
    question = "Which one is to be cancelled? " if buttons else ""
    return Said(f"{question}{_listed(tx, order.target, messages)}", buttons)


def _stop(tx: Tx, order: Order) -> str:
    text = f"STOP {order.command.argument}".strip()
    made = put(tx, order, text, Priority.STOP)
    return refused(made) if isinstance(made, Refusal) else "STOP is queued: it halts the agent before its next step."


def _decide(tx: Tx, order: Order, decision: str) -> str:
    asked = order.command.argument
    try:
        decided = restart_decision.decide(
            tx,
            order.target,
            decision,
            lambda text: put(tx, order, text, Priority.URGENT),
            (lambda session: asked == question(session)) if order.command.pressed else None,
        )
    except Conflict as error:
        return error.message
    return refused(decided) if isinstance(decided, Refusal) else decided


def permission_buttons(request_id: str, *, may_approve: bool) -> list[tuple[str, str]]:
    approve = [("Approve", f"approve:{request_id}")] if may_approve else []
    return [*approve, ("Deny", f"deny:{request_id}")]
