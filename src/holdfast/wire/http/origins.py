"""Pages of the owner's own that may call Holdfast from a browser: by a key, and never by a cookie."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.errors import BadInput

SETTING = "HOLDFAST_ORIGINS"
HEADERS = "Authorization, Content-Type, Last-Event-ID"
METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
EXPOSED = "Retry-After, WWW-Authenticate"
REMEMBERED_SECONDS = 600


def allowed_origins(text: str) -> frozenset[str]:
    """Return the origins of a setting; raises BadInput for what a browser would never send."""
    found = {one.strip().lower().removesuffix("/") for one in text.split(",") if one.strip()}
    for one in found:
        if not _is_origin(one):
            raise BadInput(
                SETTING,
                "must be origins separated by commas, such as http://127.0.0.1:3000",
                recovery="An origin is the scheme, the host name and the port; * is not one.",
            )
    return frozenset(found)


def _is_origin(text: str) -> bool:
    try:
        parts = urlsplit(text)
        named = parts.hostname and not parts.username and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    whole = f"{parts.scheme}://{parts.netloc}" == text and text.isascii() and "*" not in text
    return bool(named) and whole and parts.scheme in ("http", "https")


def is_for_pages(path: str) -> bool:
    """Return whether another page may ask for this: REST, the event stream and the client module. Nothing else."""
    return path == "/events" or path.startswith(("/api/", "/static/"))


class Origins:
    """Tells browsers that these pages may read the answers. Their cookies are always ignored."""

    def __init__(self, app: ASGIApp, allowed: frozenset[str]) -> None:
        self._app = app
        self._allowed = allowed

    def allows(self, scope: Scope) -> bool:
        """Return whether a request comes from one of the owner's pages, for something that they may ask."""
        origin = Headers(scope=scope).get("origin", "")
        return origin in self._allowed and is_for_pages(scope["path"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        origin = headers["origin"]
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            asked = Response(status_code=204, headers=_told(origin))
            asked.headers["Access-Control-Allow-Methods"] = METHODS
            asked.headers["Access-Control-Allow-Headers"] = HEADERS
            asked.headers["Access-Control-Max-Age"] = str(REMEMBERED_SECONDS)
            return await asked(scope, receive, send)

        async def readable(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in _told(origin).items():
                    answer[name] = value
            await send(message)

        return await self._app(scope, receive, readable)


def _told(origin: str) -> dict[str, str]:
    return {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": EXPOSED, "Vary": "Origin"}


def host_of(url: str) -> str | None:
    """Return the host name of an address."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
