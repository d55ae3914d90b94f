"""Once-only calls: a repeated call gets the first one's result and has no second effect."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.store import Tx

KEEP_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class CallKey:
    """What makes two calls the same call."""

    caller: str
    key: str
    tool: str
    arguments: str

    @staticmethod
    def of(caller: str, key: str, tool: str, arguments: dict[str, Any]) -> CallKey:
        """The key of one call; a client's own id counts only together with the same arguments."""
        text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
        return CallKey(caller, key, tool, hashlib.sha256(text.encode()).hexdigest())


def once(call: CallKey | None, effect: Callable[[Tx], dict[str, Any]]) -> Callable[[Tx], dict[str, Any]]:
    """`effect`, but only the first time `call` is seen; afterwards its stored result."""
    if call is None:
        return effect

    def write(tx: Tx) -> dict[str, Any]:
        tx.lock(f"call:{call.caller}:{call.key}")
        known = tx.one(
            "SELECT result FROM calls WHERE caller = :caller AND call_key = :key AND tool = :tool"
            " AND arguments = :arguments",
            caller=call.caller,
            key=call.key,
            tool=call.tool,
            arguments=call.arguments,
        )
        if known is not None:
            return dict(json.loads(known["result"]))
        result = effect(tx)
        tx.run(
            "INSERT INTO calls (caller, call_key, tool, arguments, result, at)"
            " VALUES (:caller, :key, :tool, :arguments, :result, :at)",
            caller=call.caller,
            key=call.key,
            tool=call.tool,
            arguments=call.arguments,
            result=json.dumps(result, ensure_ascii=False, separators=(",", ":")),
            at=tx.now(),
        )
        return result

    return write


def forget_old(tx: Tx) -> int:
    """Drop the results of calls nobody will repeat any more."""
    return tx.run("DELETE FROM calls WHERE at < :limit", limit=tx.now() - KEEP_MS)
