"""Connections on the wire: the tool that takes a connection up again."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from holdfast.connections.model import Refused
from holdfast.connections.service import Connections
from holdfast.wire.tools import Call, Offer, Params, Repetition, Tool


class ReconnectParams(Params):
    """What `reconnect_session` takes."""

    session_id: str = Field(description="Of your connection")
    reconnect_token: str = Field(description="Its last token")


def offer(connections: Connections) -> Offer:
    """All that connections put on the wire."""

    async def handle(call: Call, params: ReconnectParams) -> dict[str, Any]:
        done = await connections.reconnects.reconnect(
            params.session_id, params.reconnect_token, call.attempt, call.caller, call.key
        )
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
            "restored": f"Restored: {', '.join(done.restored)}." if done.restored else "Nothing was attached to it.",
            **done.issued.view(),
        }

    reconnect = Tool(
        name="reconnect_session",
        hands_out_token=True,
        title="[Connection] Take up your earlier connection",
        description=(
            "Reconnect as who you were, with your root and session, by the last `connection` you were given. To find a"
            " project's thoughts instead use init load_context."
        ),
        params=ReconnectParams,
        handler=handle,
        repetition=Repetition.HANDLE,
        meets=False,
        rebinds=True,
        for_anonymous=True,
        failed=lambda reply: not reply["success"],
    )
    return Offer(tools=[reconnect])
