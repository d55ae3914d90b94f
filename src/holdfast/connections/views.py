"""Connections as JSON, for tools and commands; what REST clients get is in rest_models.py."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from holdfast.connections.model import Issued, Reconnected, Refused
from holdfast.connections.results import StoredKey


def issued_view(issued: Issued) -> dict[str, Any]:
    return {
        "session_id": issued.connection_id,
        "reconnect_token": issued.token,
        "expires_in_minutes": issued.expires_in_minutes,
    }


def reconnect_view(done: Reconnected | Refused) -> dict[str, Any]:
    """Show a reconnected connection, or why it was refused and what to do."""
    if isinstance(done, Refused):
        reply: dict[str, Any] = {
            "success": False,
            "reason": done.reason.value,
            "message": f"Reconnection failed: {done.reason.value}",
            "next_step": done.next_step,
        }
        if done.retry_after_s is not None:
            reply["retry_after_seconds"] = done.retry_after_s
        return reply
    return {
        "success": True,
        "message": "Session reconnected successfully",
        "reconnect_count": done.reconnect_count,
        "restored": f"Restored: {', '.join(done.restored)}." if done.restored else "It had no root and no session.",
        **issued_view(done.issued),
    }


def key_view(key: StoredKey) -> dict[str, Any]:
    """Show a key of an HTTP client, without its hash."""
    return {name: value for name, value in asdict(key).items() if name != "hash"}
