"""Several capabilities answer one hook event: their answers become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Answer = dict[str, Any]
"""What a hook prints: JSON as the agent reads it."""

STRICTNESS = ("allow", "ask", "deny")


def combined(event: str, answers: Sequence[Answer]) -> Answer:
    """One answer: the strictest decision, with every reason; all that is said, in order."""
    specific = [answer["hookSpecificOutput"] for answer in answers if "hookSpecificOutput" in answer]
    out: Answer = {}
    messages = [answer["systemMessage"] for answer in answers if answer.get("systemMessage")]
    if messages:
        out["systemMessage"] = "\n".join(messages)
    reasons = [answer.get("reason", "") for answer in answers if answer.get("decision") == "block"]
    if reasons:
        out |= {"decision": "block", "reason": "\n\n".join(filter(None, reasons))}
    joined: Answer = {}
    contexts = [one["additionalContext"] for one in specific if one.get("additionalContext")]
    if contexts:
        joined["additionalContext"] = "\n\n".join(contexts)
    decided = [one for one in specific if one.get("permissionDecision") in STRICTNESS]
    if decided:
        strictest = max((one["permissionDecision"] for one in decided), key=STRICTNESS.index)
        joined["permissionDecision"] = strictest
        joined["permissionDecisionReason"] = "\n\n".join(
            one["permissionDecisionReason"]
            for one in decided
            if one["permissionDecision"] == strictest and one.get("permissionDecisionReason")
        )
    if joined:
        out["hookSpecificOutput"] = {"hookEventName": event, **joined}
    return out
