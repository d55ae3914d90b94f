"""Routes for what other services bring by themselves: they have a secret of their own instead of a key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.lazy_dataclass import dataclass
from holdfast.wire.http.rest import refusal

MAX_BODY = 1024 * 1024
"""Less than of others: it is read before anything is known of who sends it."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """One route that is open to any client that knows its secret."""

    path: str
    header: str
    """Where the secret is sent."""
    take: Callable[[bytes, str], Awaitable[int]]
    """Takes in the body, with the secret that was sent; returns the status to answer with."""

    def route(self) -> Route:
        """Return it as it is served."""
        return Route(self.path, self._serve, methods=["POST"])

    async def _serve(self, request: Request) -> Response:
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY:
                    return refusal(413, "The body is too long.")
        except ClientDisconnect:
            return refusal(400, "The body did not come.")  # the client is gone, which is no error of ours
        return Response(status_code=await self.take(bytes(body), request.headers.get(self.header, "")))
