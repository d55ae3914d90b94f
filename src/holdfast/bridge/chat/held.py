"""Held messages in a chat: shown whole, and released or dropped there by users who may give the agent orders."""

from __future__ import annotations

from holdfast.bridge import held_messages
from holdfast.bridge.errors import UnknownMessage
from holdfast.bridge.model import UpdateKind
from holdfast.bridge.queries import updates
from holdfast.bridge.queries.owner import HeldMessage
from holdfast.errors import Busy
from holdfast.redaction import masked
from holdfast.store import Tx
from holdfast.teams.config_fields import shown

FITS = 3_000
"""Characters of a message that always fit into one chat text."""
AT_ONCE = 5
"""Messages that one /held shows."""


def show(tx: Tx, target: str) -> str:
    """Put the oldest held messages into the chat, each with its buttons; returns the text below them."""
    found = held_messages.held(tx, target, AT_ONCE)
    for message in found.messages:
        digest = held_messages.digest_of(message)
        release = [("Release", f"release:{digest}")] if fits(message) else []
        buttons = [*release, ("Drop", f"drop:{digest}")]
        updates.add(tx, target, UpdateKind.MESSAGE, asked(message), buttons=buttons, chat_only=True)
    if not found.messages:
        return "No messages are waiting for your decision."
    more = " There are more: /held shows them once these are decided." if found.more else ""
    return f"Release gives a message to the agent, Drop removes it.{more}"


def decide(tx: Tx, target: str, digest: str, *, drop: bool) -> str:
    """Release or drop the message above a button, exactly as it was shown; returns the answer."""
    listed = held_messages.held(tx, target).messages
    message = next((one for one in listed if held_messages.digest_of(one) == digest), None)
    if message is None:
        return "No such message is waiting for your decision; /held shows those that are."
    if not drop and not fits(message):
        return in_terminal(target)
    try:
        held_messages.decide(tx, target, [message.id], drop=drop)
    except (UnknownMessage, Busy) as error:
        return str(error)
    return "It was removed." if drop else "Released: it is queued for the agent."


def asked(message: HeldMessage) -> str:
    """Render a held message in full, or say where it can be read."""
    head = f"{message.priority.word.capitalize()} message from `{_plain(message.sender)}`"
    if not fits(message):
        return f"{head}\n{in_terminal(message.target)}"
    return f"{head}\n```\n{_text(message)}\n```"


def fits(message: HeldMessage) -> bool:
    """Return whether one chat text shows all of it: only what was shown may be released."""
    text = _text(message)
    return len(text) + len(message.sender) <= FITS and masked(text) == text


def in_terminal(target: str) -> str:
    return f"It is too long, or holds a secret, and is not shown here. In the terminal: `holdfast release {target}`"


def _text(message: HeldMessage) -> str:
    lines = message.text.splitlines() or [""]
    return "\n".join(_plain(line) for line in lines)


def _plain(line: str) -> str:
    """Make one line safe to show as code: without the mark that would end it."""
    return shown(line, FITS + 1).replace("`", "\u02cb")
