"""Idempotent calls: a repeated call gets the first one's result and has no second effect.

A call that takes effect in one transaction is wrapped in `once`. One that takes several begins each of them with
`require_unanswered`, including the first, which only reads, and stores its result with `once` in the last. Errors are
not stored: a call that failed runs again.

A service that returns dataclasses uses `first_time`: the view on the call's key makes the reply from the
result, the reply is stored, and the wire layer answers a repetition with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeVar

from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx
from holdfast.store.events import to_json

KEEP_MS = 24 * 60 * 60 * 1000
_sorted_json = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

T = TypeVar("T")


@dataclass(slots=True, unsafe_hash=True)  # the mark is not part of the hash
class CallKey:
    """Identity of a call: equal keys mean the same call, repeated."""

    caller: str
    key: str
    tool: str
    arguments: str
    settled: bool = field(default=False, compare=False)
    """Whether it is safe to repeat: a result was stored or found, or the call had no effect."""
    view: Callable[[Any], dict[str, Any]] | None = field(default=None, compare=False)
    """Makes the reply, which is what is stored, from a service's result; set by the tool that was called."""
    reply: dict[str, Any] | None = field(default=None, compare=False)
    """The reply that the view made and that was stored."""

    @staticmethod
    def of(caller: str, key: str, tool: str, arguments: dict[str, Any]) -> CallKey:
        """Build the key of a call; a client's id counts only together with the same arguments."""
        return CallKey(caller, key, tool, hashlib.sha256(_sorted_json(arguments).encode()).hexdigest())


class AlreadyAnswered(Exception):
    """This call was answered before, so none of its steps may run again. The wire layer sends the stored answer."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__("This call was answered before.")
        self.result = result


def once(call: CallKey | None, effect: Callable[[Tx], dict[str, Any]]) -> Callable[[Tx], dict[str, Any]]:
    """Wrap `effect` so that it runs only the first time `call` is seen; later its stored result is returned."""
    if call is None:
        return effect

    def write(tx: Tx) -> dict[str, Any]:
        stored = locked_answer(tx, call)
        if stored is not None:
            return stored
        result = effect(tx)
        store_answer(tx, call, result)
        return result

    return write


def first_time(call: CallKey | None, effect: Callable[[Tx], T]) -> Callable[[Tx], T]:
    """Wrap `effect` so that it runs only the first time `call` is seen; later AlreadyAnswered is raised."""
    if call is None:
        return effect

    def write(tx: Tx) -> T:
        require_unanswered(tx, call)
        result = effect(tx)
        if call.view is None:
            raise RuntimeError(f"{call.tool} gave no view, so its result cannot be stored for a repetition")
        call.reply = call.view(result)
        store_answer(tx, call, call.reply)
        return result

    return write


def require_unanswered(tx: Tx, call: CallKey | None, *, reads_only: bool = False) -> None:
    """Raise AlreadyAnswered if the call has a result; in a writing transaction, also keep others from storing one."""
    stored = find_answer(tx, call) if reads_only else locked_answer(tx, call)
    if stored is not None:
        raise AlreadyAnswered(stored)


def locked_answer(tx: Tx, call: CallKey | None) -> dict[str, Any] | None:
    """Return the stored result of a call, and keep others from storing one until the transaction ends."""
    if call is not None:
        tx.lock(f"call:{call.caller}:{call.key}")
    return find_answer(tx, call)


def find_answer(tx: Tx, call: CallKey | None) -> dict[str, Any] | None:
    """Return the stored result of a call, as of this transaction."""
    if call is None:
        return None
    row = tx.one(
        "SELECT result FROM calls WHERE caller = :caller AND call_key = :key AND tool = :tool"
        " AND arguments = :arguments",
        caller=call.caller,
        key=call.key,
        tool=call.tool,
        arguments=call.arguments,
    )
    if row is None:
        return None
    call.settled = True
    return dict(json.loads(row["result"]))


def store_answer(tx: Tx, call: CallKey | None, result: dict[str, Any]) -> None:
    """Store the result of a call in the transaction of its effect, replacing an earlier one."""
    if call is None:
        return
    tx.run(
        "INSERT INTO calls (caller, call_key, tool, arguments, result, at)"
        " VALUES (:caller, :key, :tool, :arguments, :result, :at)"
        " ON CONFLICT (caller, call_key, tool, arguments) DO UPDATE SET result = excluded.result, at = excluded.at",
        caller=call.caller,
        key=call.key,
        tool=call.tool,
        arguments=call.arguments,
        result=to_json(result),
        at=tx.now(),
    )
    call.settled = True


def had_no_effect(call: CallKey | None) -> None:
    """Mark the call as having changed nothing, so that a repetition may run as if it were the first."""
    if call is not None:
        call.settled = True


def forget_old(tx: Tx) -> int:
    """Delete the results of calls too old to be repeated."""
    return tx.run("DELETE FROM calls WHERE at < :limit", limit=tx.now() - KEEP_MS)


def carry_over(tx: Tx, before: int, now: int) -> None:
    """Keep stored answers as long after a leap of the clock as if there had been none."""
    tx.run("UPDATE calls SET at = :now WHERE at >= :before AND at < :now", now=now, before=before - KEEP_MS)


def keep(tx: Tx, call: CallKey) -> None:
    """Keep a stored answer for another whole time."""
    sql = "UPDATE calls SET at = :now WHERE caller = :caller AND call_key = :key"
    tx.run(sql, now=tx.now(), caller=call.caller, key=call.key)
