"""Changes to a queue by a message's sender or the queue's owner: cancelling, editing and retrying.

What an agent already has is never taken back: a STOP halts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.bridge.errors import UnknownMessage
from holdfast.bridge.model import MAX_PENDING, Priority, Status, UpdateKind, check_text
from holdfast.bridge.queries import figures, owner, queue, updates
from holdfast.bridge.queries.figures import SentMessages
from holdfast.bridge.queries.owner import ListedMessage
from holdfast.bridge.results import Finished, Sent
from holdfast.bridge.service import Targets
from holdfast.errors import Busy, Conflict
from holdfast.identity.senders import OWNER, Sender
from holdfast.store import Store, Tx
from holdfast.store.calls import CallKey, first_time
from holdfast.text.quoting import quoted

UNDONE = (Status.DEAD, Status.FAILED, Status.EXPIRED)
"""The statuses of messages that ended undone."""
NOT_WAITING = {
    Status.PENDING: "it is still waiting",
    Status.LEASED: "its agent already has it",
    Status.HELD: "it is held until its owner decides",
}
"""Why a message cannot be changed or retried; for an ended one its status says so."""


class QueueChanges:
    """Lists the messages of all targets, and changes them."""

    def __init__(self, store: Store, targets: Targets) -> None:
        self._store = store
        self._targets = targets

    async def listed(
        self, target: str | None, status: Status | None, limit: int, sender: Sender = OWNER
    ) -> list[ListedMessage]:
        """List messages, newest first, of the targets that the sender may act for."""
        if target is not None:
            sender.require(target, "The queue")
        targets = [target] if target is not None else (None if sender.teams is None else sorted(sender.teams))
        return await self._store.read(lambda tx: owner.listed(tx, targets, status, limit))

    async def search(self, words: Sequence[str], limit: int) -> list[ListedMessage]:
        """Return the newest messages of all targets with all of these words in their text or reply."""
        return await self._store.read(lambda tx: owner.search(tx, words, limit))

    async def sent(self, begin: int, step_ms: int) -> list[SentMessages]:
        """Count the messages sent since a time by interval and by what became of them."""
        return await self._store.read(lambda tx: figures.sent(tx, begin, step_ms))

    async def unfinished(self, target: str, limit: int) -> list[ListedMessage]:
        """List a target's messages that are in progress, wait, or are dead letters, in this order."""
        return await self._store.read(lambda tx: owner.unfinished(tx, target, limit))

    async def retry(self, message_id: str, target: str | None = None, sender: Sender = OWNER) -> ListedMessage:
        """Queue a message that ended undone again, behind those already waiting."""
        return await self._store.write(lambda tx: _retry(tx, message_id, target, sender))

    async def cancel(
        self, message_id: str, target: str | None = None, sender: Sender = OWNER, key: CallKey | None = None
    ) -> Finished:
        """Cancel a waiting message; repeating it changes nothing."""
        return await self._store.write(first_time(key, lambda tx: cancel(tx, message_id, target, sender)))

    async def edit(
        self,
        target: str,
        message_id: str,
        text: str,
        priority: Priority | None,
        sender: Sender = OWNER,
        key: CallKey | None = None,
    ) -> Sent:
        """Replace the text of a waiting message, and its priority if one is given; return why not if it cannot be."""
        check_text(text)

        def write(tx: Tx) -> Sent:
            message = _chosen(tx, message_id, target, _may_change(sender))
            if message.status != Status.PENDING:
                return Sent(target, reason=f"not waiting: {_why_not(message)}")
            queue.rewrite(tx, message, text, Priority(message.priority) if priority is None else priority)
            team = self._targets().get(target)
            if team is not None and team.chat is not None:
                told = f"{sender.label} (edited): {text}"
                updates.add(tx, target, UpdateKind.MESSAGE, told, message.id, chat_only=True)
            return Sent(target, message.id)

        return await self._store.write(first_time(key, write))


def cancel(tx: Tx, message_id: str, target: str | None, sender: Sender) -> Finished:
    """Cancel a waiting message of the sender's, or of a target that it may act for; Conflict if it is too late."""
    message = _chosen(tx, message_id, target, _may_change(sender))
    if message.status == Status.PENDING:
        queue.cancel(tx, message, sender.label)
    elif message.status != Status.CANCELLED:
        halt = " Send a STOP to halt the agent." if message.status == Status.LEASED else ""
        raise Conflict(f"Message {message.id} cannot be cancelled: {_why_not(message)}.{halt}")
    waiting, repeated = queue.waiting(tx, message.target), message.status == Status.CANCELLED
    return Finished(message.id, Status.CANCELLED, waiting, repeated)


def _retry(tx: Tx, message_id: str, target: str | None, sender: Sender) -> ListedMessage:
    if target is not None:
        sender.require(target, "The queue")
    message = _chosen(tx, message_id, target, lambda one: sender.may_act_for(one.target))
    if message.status not in UNDONE:
        raise Conflict(
            f"Message {message.id} cannot be retried: {_why_not(message)}.",
            recovery="Only a dead letter, or a message that failed or expired, is queued again.",
        )
    if queue.is_full(tx, message.target, Priority(message.priority)):
        raise Busy(f"{MAX_PENDING} messages are already waiting for {message.target}.", recovery="Retry it later.")
    owner.requeue(tx, message)
    queue.report(tx, message.id, message.target, message.source, Status.PENDING)
    return replace(message, status=Status.PENDING.value)


def _may_change(sender: Sender) -> Callable[[ListedMessage], bool]:
    return lambda message: sender.may_act_for(message.target) or message.sender == sender.label


def _chosen(tx: Tx, message_id: str, target: str | None, may: Callable[[ListedMessage], bool]) -> ListedMessage:
    """Return the one message with an id that the caller may change, as it is under the lock of its queue."""
    found = [message for message in owner.named(tx, message_id) if target in (None, message.target) and may(message)]
    if not found:
        raise UnknownMessage(
            f"You have no message {quoted(message_id, 64)}.",
            recovery="`holdfast queue TARGET` and GET /api/bridge/messages list them.",
        )
    if len(found) > 1:
        names = ", ".join(message.target for message in found)
        raise Conflict(f"Several targets have a message {message_id[:64]}: {names}.", recovery="Name the target.")
    queue.front(tx, found[0].target)  # under its lock, expired leases are over
    return next(one for one in owner.named(tx, message_id) if one.target == found[0].target)


def _why_not(message: ListedMessage) -> str:
    status = Status(message.status)
    return NOT_WAITING.get(status, f"it is {status.value} already")
