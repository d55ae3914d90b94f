"""Held messages: what an archive would have agents do is held until the owner releases it.

Messages, unseen notices and tasks from elsewhere become messages with the status `held`. Only `pending` messages are
delivered, so none of them reaches an agent before the owner releases it (bridge/held_messages.py). What agents there
reported is stored as updates of a kind of their own, which are not sent to a chat.
"""

from __future__ import annotations

import hashlib
import json

from holdfast.bridge.model import ADOPTED, Priority, Status, UpdateKind, fingerprint
from holdfast.bridge.queries import updates as update_queries
from holdfast.reasoning.limits import MAX_TAG, MAX_TAGS
from holdfast.reasoning.model import ADOPTED as SESSION_ADOPTED
from holdfast.store import Row, Tx
from holdfast.teams.config_fields import shown
from holdfast.text import bounded_json

LONGEST_SENDER = 100
OPEN = (Status.PENDING.value, Status.LEASED.value, Status.HELD.value)


def adopted_message(row: Row, origin: str) -> Row:
    """Return a message as it is stored here: finished ones stay finished, open ones are held."""
    waits = {"status": Status.HELD.value, "way": None, "attempts": 0} if row["status"] in OPEN else {}
    return {**row, **waits, "source": ADOPTED, "sender": _sender(row["sender"], origin)}


def from_notice(row: Row, origin: str) -> Row:
    """Return an unseen notice as a held message."""
    text = f"A notice from team {shown(row['from_team'] or 'outside')}:\n{row['text']}"
    return _held(notice_id(row), row["to_team"], text, row["created_at"], f"team {row['from_team']}", origin)


def from_task(row: Row, origin: str) -> Row:
    """Return what an agent there was working on as a held message."""
    step = f"\nThe last completed step was: {row['last_completed_step']}" if row["last_completed_step"] else ""
    text = f"An agent elsewhere was working on this:\n{row['current_task']}{step}"
    return _held(task_id(row), row["target"], text, row["updated_at"], "its agent", origin)


def adopted_update(row: Row, origin: str) -> Row:
    """Return an update from elsewhere, marked as such, without buttons and names that look like ours."""
    data = json.dumps({"archive": origin, "kind": kind_there(row)})
    return {**row, "kind": UpdateKind.ADOPTED.value, "data": data}


def kind_there(row: Row) -> str:
    """Return the kind of an update before it was first adopted."""
    if row["kind"] != UpdateKind.ADOPTED:
        return str(row["kind"])
    kind = bounded_json.loads(row["data"]).get("kind")
    return kind if isinstance(kind, str) and kind in set(UpdateKind) else UpdateKind.MESSAGE.value


def update_hash(row: Row) -> int:
    """Return a hash by which the same update is recognised here and in an archive."""
    return hash((kind_there(row), row["message_id"], row["content"], row["created_at"]))


def tell_chat(tx: Tx, team: str, held: int, origin: str) -> None:
    """Tell the team's chat how many messages are held."""
    text = f"{held} messages came with {origin}. No agent gets them before you say so: /held shows them here,"
    text += f" `holdfast release {team}` in the terminal."
    update_queries.add(tx, team, UpdateKind.MESSAGE, text, buttons=[("Show them", "held:")], chat_only=True)


def tags_with_origin(tags: str, origin: str) -> str:
    """Return a session's tags with one that names the archive it came with."""
    kept = [tag for tag in bounded_json.loads(tags) if isinstance(tag, str) and not tag.startswith(SESSION_ADOPTED)]
    return json.dumps([*kept[: MAX_TAGS - 1], f"{SESSION_ADOPTED}{origin}"[:MAX_TAG]])


def notice_id(row: Row) -> str:
    """Return the id of the message that a notice becomes, the same each time."""
    return "notice-" + _digest(row["to_team"], row["id"])


def task_id(row: Row) -> str:
    """Return the id of the message that a task becomes, the same each time."""
    return "task-" + _digest(row["target"], row["current_task"], row["last_completed_step"], row["updated_at"])


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _held(message_id: str, target: str, text: str, at: int, sender: str, origin: str) -> Row:
    return {
        "id": message_id,
        "target": target,
        "text": text,
        "fingerprint": fingerprint(text),
        "sender": _sender(sender, origin),
        "source": ADOPTED,
        "priority": int(Priority.NORMAL),
        "status": Status.HELD.value,
        "attempts": 0,
        "created_at": at,
        "expires_at": at,
    }


def _sender(there: str, origin: str) -> str:
    """Return the sender as shown here: its name was written elsewhere and proves nothing."""
    return f'{origin}, adopted; there from "{shown(there, LONGEST_SENDER)}"'
