"""Messages as their owner looks after them: listed by what became of them, and sent on their way again."""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.bridge.errors import UnknownMessage
from holdfast.bridge.model import MAX_PENDING, Message, Priority, Status
from holdfast.bridge.queries import MESSAGE, NEXT_SEQ, is_full
from holdfast.errors import Busy, Conflict
from holdfast.senders import OWNER, Sender
from holdfast.store import Store, Tx
from holdfast.times import iso

LETTER = f"{MESSAGE}, source, reply, created_at, finished_at"
SHOWN = 2_000
"""Characters of a message and of its reply in a list."""
UNDONE = (Status.DEAD, Status.FAILED, Status.EXPIRED)
"""How a message ends that nobody did."""


@dataclass(slots=True)
class Letter(Message):
    """A message with where it came from and what became of it."""

    source: str
    reply: str | None
    created_at: int
    finished_at: int | None


class Letters:
    """The messages of all targets."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def listed(
        self, target: str | None, status: Status | None, limit: int, sender: Sender = OWNER
    ) -> list[dict[str, Any]]:
        """Messages, the newest first; those of the targets that whoever asks may act for."""
        if target is not None:
            sender.require(target, "The queue")
        targets = [target] if target is not None else (None if sender.teams is None else sorted(sender.teams))
        found = await self._store.read(lambda tx: _listed(tx, targets, status, limit))
        return [letter_view(letter) for letter in found]

    async def retry(self, message_id: str, target: str | None = None, sender: Sender = OWNER) -> dict[str, Any]:
        """A message that ended without being done waits again, behind those that wait already."""
        return await self._store.write(lambda tx: _retry(tx, message_id, target, sender))


def letter_view(letter: Letter) -> dict[str, Any]:
    """A message with all that became of it."""
    view: dict[str, Any] = {
        "id": letter.id,
        "target": letter.target,
        "status": letter.status,
        "priority": Priority(letter.priority).word,
        "from": letter.sender,
        "source": letter.source,
        "text": _shown(letter.text),
        "attempts": letter.attempts,
        "reply": None if letter.reply is None else _shown(letter.reply),
        "reply_to": letter.reply_to,
        "created_at": iso(letter.created_at),
        "expires_at": iso(letter.expires_at) if letter.status == Status.PENDING else None,
        "finished_at": None if letter.finished_at is None else iso(letter.finished_at),
    }
    return {name: value for name, value in view.items() if value is not None}


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _listed(tx: Tx, targets: Sequence[str] | None, status: Status | None, limit: int) -> list[Letter]:
    given: dict[str, str] = {} if status is None else {"status": status.value}
    conditions = [f"{name} = :{name}" for name in given]
    if targets is not None:
        names = {f"target{number}": target for number, target in enumerate(targets)}
        conditions.append(f"target IN ({', '.join(f':{name}' for name in names)})" if names else "1 = 0")
        given |= names
    where = " AND ".join(conditions) or "1 = 1"
    rows = tx.all(
        f"SELECT {LETTER} FROM bridge_messages WHERE {where} ORDER BY row_id DESC LIMIT :limit", limit=limit, **given
    )
    return [Letter(**row) for row in rows]


def _retry(tx: Tx, message_id: str, target: str | None, sender: Sender) -> dict[str, Any]:
    if target is not None:
        sender.require(target, "The queue")
    own = [message for message in named(tx, message_id) if sender.may_act_for(message.target)]
    found = [message for message in own if target in (None, message.target)]
    if not found:
        raise UnknownMessage(f"There is no message {message_id[:64]}.", recovery="GET /api/bridge/messages lists them.")
    if len(found) > 1:
        names = ", ".join(message.target for message in found)
        raise Conflict(f"Several targets have a message {message_id[:64]}: {names}.", recovery="Name the target.")
    tx.lock(f"bridge:{found[0].target}")
    (message,) = [one for one in named(tx, message_id) if one.target == found[0].target]
    if message.status not in UNDONE:
        raise Conflict(
            f"Message {message.id} is {message.status}; only one that is {', '.join(UNDONE)} can wait again.",
            recovery="Send a new message.",
        )
    if is_full(tx, message.target, Priority(message.priority)):
        raise Busy(f"{MAX_PENDING} messages wait for {message.target} already.", recovery="Retry it later.")
    _requeue(tx, message)
    return {"id": message.id, "target": message.target, "status": Status.PENDING.value}


def named(tx: Tx, message_id: str) -> list[Letter]:
    """The messages of an id, one in each target at most."""
    rows = tx.all(f"SELECT {LETTER} FROM bridge_messages WHERE id = :id ORDER BY row_id", id=message_id)
    return [Letter(**row) for row in rows]


def _requeue(tx: Tx, message: Letter) -> None:
    """One attempt stays counted, so that whoever gets it is told that it was handed out before."""
    tx.run(
        f"UPDATE bridge_messages SET status = 'pending', seq = {NEXT_SEQ}, attempts = :attempts, expires_at = :expires,"
        " lease_by = NULL, lease_until = NULL, way = NULL, outcome = NULL, reply = NULL, finished_at = NULL"
        " WHERE row_id = :row",
        target=message.target,
        attempts=min(message.attempts, 1),
        expires=tx.now() + message.expires_at - message.created_at,
        row=message.row_id,
    )
    tx.emit("bridge.queued", message.id, {"target": message.target, "priority": Priority(message.priority).word})
