"""Once-only calls: a repeated call gets the first one's result and has no second effect.

A call that takes effect in one transaction is wrapped in `once`. One that takes several steps begins each of its
transactions with `require_unanswered`, the one that reads what it will check first of all, and stores its result with
`once` in the last. Errors are not stored: a call that failed runs again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from holdfast.store import Tx

KEEP_MS = 24 * 60 * 60 * 1000


@dataclass(slots=True, unsafe_hash=True)  # the mark is no part of the hash
class CallKey:
    """What makes two calls the same call."""

    caller: str
    key: str
    tool: str
    arguments: str
    settled: bool = field(default=False, compare=False)
    """Whether a repetition is provided for: a result was stored or found, or the call had no effect."""

    @staticmethod
    def of(caller: str, key: str, tool: str, arguments: dict[str, Any]) -> CallKey:
        """The key of one call; a client's own id counts only together with the same arguments."""
        text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
        return CallKey(caller, key, tool, hashlib.sha256(text.encode()).hexdigest())


class AlreadyAnswered(Exception):
    """This very call was answered before, so a step of it must not be taken again. The wire gives that answer."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__("This call was answered before.")
        self.result = result


def once(call: CallKey | None, effect: Callable[[Tx], dict[str, Any]]) -> Callable[[Tx], dict[str, Any]]:
    """`effect`, but only the first time `call` is seen; afterwards its stored result."""
    if call is None:
        return effect

    def write(tx: Tx) -> dict[str, Any]:
        known = locked_answer(tx, call)
        if known is not None:
            return known
        result = effect(tx)
        store_answer(tx, call, result)
        return result

    return write


def require_unanswered(tx: Tx, call: CallKey | None, *, reads_only: bool = False) -> None:
    """Raise AlreadyAnswered if the call has its result; until a transaction that writes ends, nobody stores one."""
    known = find_answer(tx, call) if reads_only else locked_answer(tx, call)
    if known is not None:
        raise AlreadyAnswered(known)


def locked_answer(tx: Tx, call: CallKey | None) -> dict[str, Any] | None:
    """The stored result of a call; until the transaction ends nobody else stores one."""
    if call is not None:
        tx.lock(f"call:{call.caller}:{call.key}")
    return find_answer(tx, call)


def find_answer(tx: Tx, call: CallKey | None) -> dict[str, Any] | None:
    """The stored result of a call, as of this transaction."""
    if call is None:
        return None
    known = tx.one(
        "SELECT result FROM calls WHERE caller = :caller AND call_key = :key AND tool = :tool"
        " AND arguments = :arguments",
        caller=call.caller,
        key=call.key,
        tool=call.tool,
        arguments=call.arguments,
    )
    if known is None:
        return None
    call.settled = True
    return dict(json.loads(known["result"]))


def store_answer(tx: Tx, call: CallKey | None, result: dict[str, Any]) -> None:
    """Keep the result of a call in the transaction of its effect, in place of an earlier one."""
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
        result=json.dumps(result, ensure_ascii=False, separators=(",", ":")),
        at=tx.now(),
    )
    call.settled = True


def had_no_effect(call: CallKey | None) -> None:
    """Note that the call changed nothing, so that its repetition may run as if it were the first."""
    if call is not None:
        call.settled = True


def forget_old(tx: Tx) -> int:
    """Drop the results of calls nobody will repeat any more."""
    return tx.run("DELETE FROM calls WHERE at < :limit", limit=tx.now() - KEEP_MS)
