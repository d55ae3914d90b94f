"""Connections on the wire: the tool that takes a connection up again."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from holdfast.connections.service import Connections
from holdfast.connections.views import reconnect_view
from holdfast.wire.mcp.tools import Call, Offer, Params, Repetition, Tool


class ReconnectParams(Params):
    """What `reconnect_session` takes."""

    session_id: str = Field(description="Of your connection")
    reconnect_token: str = Field(description="Its last token")


def offer(connections: Connections) -> Offer:
    async def handle(call: Call, params: ReconnectParams) -> dict[str, Any]:
        done = await connections.reconnects.reconnect(
            params.session_id, params.reconnect_token, call.attempt, call.caller, call.key
        )
        return reconnect_view(done)

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
    return Offer(tools=[reconnect], order=40)
