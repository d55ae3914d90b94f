"""What Telegram sends, read with suspicion: any JSON gives an arrival or nothing, never an error. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.bridge.chat.splitting import clean
from holdfast.bridge.wording import beginning
from holdfast.lazy_dataclass import dataclass
from holdfast.teams.team import Chat, Team

GENERAL_TOPIC = 1
"""The topic of a forum that messages do not name."""
MAX_STORED_INTEGER = 2**63 - 1
KINDS = ("message", "edited_message", "callback_query")
"""The kinds of updates to request."""

_ATTACHMENTS = (
    "photo",
    "voice",
    "audio",
    "video",
    "video_note",
    "animation",
    "sticker",
    "document",
    "location",
    "contact",
    "poll",
)


@dataclass(frozen=True, slots=True)
class Arrival:
    """Something that somebody wrote or a button that they pressed in a chat."""

    number: int
    """The update's own number, by which repetitions are recognised."""
    chat: str
    chat_name: str | None
    topic: int | None
    user: int | None
    """None if the sender is unknown."""
    user_name: str
    message: int
    text: str
    edited_at: int | None = None
    quoted: str | None = None
    quoted_message: int | None = None
    press: str | None = None
    """The id of the button press to answer, if it was one."""
    action: str | None = None
    old: bool = False
    """Whether it is a button of a message so old that Telegram no longer names its topic."""


def number_of(raw: Any) -> int | None:
    """Return the number of an update; None if it has none that can be stored."""
    return _whole(raw.get("update_id")) if isinstance(raw, dict) else None


def arrival(raw: Any) -> Arrival | None:
    """Read what came in; None if nobody wrote or pressed anything."""
    number = number_of(raw)
    if number is None:
        return None
    press = raw.get("callback_query")
    if isinstance(press, dict):
        return _pressed(number, press)
    for kind in KINDS[:2]:
        if isinstance(raw.get(kind), dict):
            return _written(number, raw[kind])
    return None


def target_of(found: Arrival, targets: Mapping[str, Team]) -> str | None:
    """Find the target whose chat and topic it came from."""
    places = [name for name, team in targets.items() if team.chat and _is_place(found, team.chat)]
    if found.old and len(places) > 1:
        return None
    return places[0] if places else None


def may_order(found: Arrival, chat: Chat | None) -> bool:
    """Whether its author is on the chat's list; a chat without a list accepts nobody."""
    return chat is not None and found.user is not None and found.user in chat.allowed_users


def _is_place(found: Arrival, chat: Chat) -> bool:
    if chat.id.startswith("@"):
        same = found.chat_name is not None and found.chat_name.lower() == chat.id[1:].lower()
    else:
        same = found.chat == chat.id
    return same and (found.old or found.topic == (None if chat.topic == GENERAL_TOPIC else chat.topic))


def _written(number: int, message: dict[str, Any]) -> Arrival | None:
    text, quoted = _content(message), message.get("reply_to_message")
    said = _content(quoted) if isinstance(quoted, dict) else ""
    found = _arrival(number, message, message.get("from"))
    if found is None or not text:
        return None
    return replace(
        found,
        text=text,
        edited_at=_whole(message.get("edit_date")),
        quoted=beginning(said) if said else None,
        quoted_message=_whole(quoted.get("message_id")) if isinstance(quoted, dict) and said else None,
    )


def _pressed(number: int, press: dict[str, Any]) -> Arrival | None:
    message, action, press_id = press.get("message"), press.get("data"), press.get("id")
    if not isinstance(message, dict) or not isinstance(action, str) or not isinstance(press_id, str):
        return None
    found = _arrival(number, message, press.get("from"))
    old = message.get("date") == 0
    return found and replace(found, press=press_id, action=clean(action)[:64], old=old)


def _arrival(number: int, message: dict[str, Any], sender: Any) -> Arrival | None:
    """Return where something came from and from whom, without its text; None if it names no chat."""
    place = _place(message)
    if place is None:
        return None
    return Arrival(number, *place, *_sender(sender), message=_whole(message.get("message_id")) or 0, text="")


def _place(message: dict[str, Any]) -> tuple[str, str | None, int | None] | None:
    chat = message.get("chat")
    number = _whole(chat.get("id")) if isinstance(chat, dict) else None
    if number is None or not isinstance(chat, dict):
        return None
    name = chat.get("username")
    # Outside of forums a thread is just a chain of replies.
    topic = _whole(message.get("message_thread_id")) if message.get("is_topic_message") is True else None
    return str(number), name if isinstance(name, str) else None, None if topic == GENERAL_TOPIC else topic


def _sender(sender: Any) -> tuple[int | None, str]:
    if not isinstance(sender, dict):
        return None, "somebody"
    names = [sender.get("first_name"), sender.get("last_name")]
    name = " ".join(clean(part) for part in names if isinstance(part, str))
    return _whole(sender.get("id")), " ".join(name.split())[:80] or "somebody"


def _content(message: dict[str, Any]) -> str:
    """Return the text or caption, and the names of attachments; nothing is ever downloaded."""
    parts = [_attachment(kind, message[kind]) for kind in _ATTACHMENTS if message.get(kind)]
    # An animation comes with the same file as a document.
    if "animation" in message and len(parts) > 1:
        parts = parts[:1]
    for name in ("text", "caption"):
        value = message.get(name)
        if isinstance(value, str):
            parts.append(clean(value))
    return "\n".join(part for part in parts if part.strip()).strip()


def _attachment(kind: str, content: Any) -> str:
    name = content.get("file_name") if isinstance(content, dict) else None
    if isinstance(name, str) and name.strip():
        return f"[{kind}: {' '.join(clean(name).split())[:120]}]"
    return f"[{kind}]"


def _whole(value: Any) -> int | None:
    good = isinstance(value, int) and not isinstance(value, bool) and -MAX_STORED_INTEGER <= value <= MAX_STORED_INTEGER
    return value if good else None
