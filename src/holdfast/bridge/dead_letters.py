"""Messages as their owner looks after them: listed by what became of them, and sent on their way again."""

from __future__ import annotations

from dataclasses import replace

from holdfast.bridge.errors import UnknownMessage
from holdfast.bridge.model import MAX_PENDING, Priority, Status
from holdfast.bridge.queries import owner
from holdfast.bridge.queries.owner import ListedMessage
from holdfast.bridge.queries.queue import is_full
from holdfast.errors import Busy, Conflict
from holdfast.identity.senders import OWNER, Sender
from holdfast.store import Store, Tx

UNDONE = (Status.DEAD, Status.FAILED, Status.EXPIRED)
"""The statuses of messages that ended undone."""


class DeadLetters:
    """Lists the messages of all targets and retries those that ended undone."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def listed(
        self, target: str | None, status: Status | None, limit: int, sender: Sender = OWNER
    ) -> list[ListedMessage]:
        """List messages, newest first, of the targets that the sender may act for."""
        if target is not None:
            sender.require(target, "The queue")
        targets = [target] if target is not None else (None if sender.teams is None else sorted(sender.teams))
        return await self._store.read(lambda tx: owner.listed(tx, targets, status, limit))

    async def retry(self, message_id: str, target: str | None = None, sender: Sender = OWNER) -> ListedMessage:
        """Queue a message that ended undone again, behind those already waiting."""
        return await self._store.write(lambda tx: _retry(tx, message_id, target, sender))


def _retry(tx: Tx, message_id: str, target: str | None, sender: Sender) -> ListedMessage:
    if target is not None:
        sender.require(target, "The queue")
    own = [message for message in owner.named(tx, message_id) if sender.may_act_for(message.target)]
    found = [message for message in own if target in (None, message.target)]
    if not found:
        raise UnknownMessage(f"There is no message {message_id[:64]}.", recovery="GET /api/bridge/messages lists them.")
    if len(found) > 1:
        names = ", ".join(message.target for message in found)
        raise Conflict(f"Several targets have a message {message_id[:64]}: {names}.", recovery="Name the target.")
    tx.lock(f"bridge:{found[0].target}")
    (message,) = [one for one in owner.named(tx, message_id) if one.target == found[0].target]
    if message.status not in UNDONE:
        raise Conflict(
            f"Message {message.id} is {message.status}; only one that is {', '.join(UNDONE)} can be retried.",
            recovery="Send a new message.",
        )
    if is_full(tx, message.target, Priority(message.priority)):
        raise Busy(f"{MAX_PENDING} messages are already waiting for {message.target}.", recovery="Retry it later.")
    owner.requeue(tx, message)
    return replace(message, status=Status.PENDING.value)
