"""Messages that wait for the owner's decision: listed, and released to their agent or removed."""

from __future__ import annotations

import hashlib

from holdfast.bridge.errors import UnknownMessage
from holdfast.bridge.model import MAX_PENDING
from holdfast.bridge.queries import owner
from holdfast.bridge.queries.owner import HeldMessage
from holdfast.bridge.queries.queue import is_full
from holdfast.errors import BadInput, Busy
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx
from holdfast.teams.config_fields import shown

MOST_LISTED = 100


@dataclass(frozen=True, slots=True)
class Held:
    messages: list[HeldMessage]
    more: bool
    """Whether there are more than these."""


def held(tx: Tx, target: str | None, most: int = MOST_LISTED) -> Held:
    """List held messages, oldest first and whole: what is released is what was shown."""
    found = owner.held(tx, target, most + 1)
    return Held(found[:most], len(found) > most)


def digest_of(message: HeldMessage) -> str:
    """Identify a held message as it was shown: another text or sender gives another digest."""
    told = [message.id, message.target, message.sender, message.priority.word, message.text]
    return hashlib.sha256(repr(told).encode("utf-8", "surrogatepass")).hexdigest()[:40]


def decide(tx: Tx, target: str, ids: list[str], *, drop: bool) -> None:
    """Release held messages to the end of the target's queue, or remove them."""
    if not ids:
        raise BadInput("ids", "must name the messages", recovery="`holdfast release` lists them.")
    tx.lock(f"bridge:{target}")
    for message_id in ids:
        message = next(iter(owner.held(tx, target, 1, message_id)), None)
        if message is None:
            raise UnknownMessage(
                f"No message {shown(message_id)} is held for {shown(target)}.",
                recovery="`holdfast release` lists them.",
            )
        if drop:
            owner.drop(tx, message.row_id)
            tx.emit("bridge.dropped", message_id, {"target": target})
            continue
        if is_full(tx, target, message.priority):
            raise Busy(f"{MAX_PENDING} messages are already waiting for {target}.", recovery="Release it later.")
        owner.release(tx, target, message.row_id)
        tx.emit("bridge.queued", message_id, {"target": target, "priority": message.priority.word})
