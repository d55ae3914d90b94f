"""An agent that is idle at its terminal: what its owner decided, and what a copy of its conversation answered.

Each query is a function of a transaction.
"""
# ruff: noqa: S608 - the texts are put together from constants alone

from __future__ import annotations

from holdfast.bridge.model import Idle, Message
from holdfast.bridge.queries.queue import MESSAGE
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx

COPY = "copy"
"""How a message is handed out to a copy of the conversation at the terminal."""
TOLD, KNOWN = "copy-told", "copy-known"
"""The same message after the agent at the terminal was told of it, and once its transcript contains that."""
AT_ONCE = 3
"""Answers of a copy that an agent is told per prompt."""
MOST = 100
"""Answers that are considered per prompt."""
CURRENT = "row_id = (SELECT incarnation FROM bridge_targets WHERE target = :target)"


@dataclass(frozen=True, slots=True)
class CopyAnswer:
    """A message that a copy of the conversation answered."""

    message: Message
    reply: str


def state(tx: Tx, target: str) -> Idle | None:
    """Return the question whether a copy may answer, for the session at work for a target."""
    row = tx.one(
        f"SELECT session_id, question, decision FROM bridge_incarnations WHERE {CURRENT} AND question IS NOT NULL",
        target=target,
    )
    return None if row is None else Idle(**row)


def ask(tx: Tx, target: str) -> str:
    """Store a question to the owner; return its id."""
    question = tx.new_id()
    sql = f"UPDATE bridge_incarnations SET question = :question, decision = NULL WHERE {CURRENT}"
    tx.run(sql, question=question, target=target)
    return question


def decide(tx: Tx, target: str, decision: str) -> None:
    tx.run(f"UPDATE bridge_incarnations SET decision = :decision WHERE {CURRENT}", decision=decision, target=target)
    tx.emit("bridge.idle", target, {"decision": decision})


def answered(tx: Tx, target: str) -> list[CopyAnswer]:
    """Return messages that copies answered and the agent at the terminal may not know, the oldest first."""
    rows = tx.all(
        f"SELECT {MESSAGE}, reply FROM bridge_messages WHERE target = :target AND (way = '{COPY}' OR way = '{TOLD}')"
        " AND status IN ('done', 'failed') ORDER BY seq LIMIT :limit",
        target=target,
        limit=MOST,
    )
    return [CopyAnswer(reply=row.pop("reply") or "", message=Message(**row)) for row in rows]


def mark(tx: Tx, message: Message, way: str) -> None:
    """Record whether the agent at the terminal was told of an answered message, and has it in its transcript."""
    tx.run("UPDATE bridge_messages SET way = :way WHERE row_id = :row", way=way, row=message.row_id)
