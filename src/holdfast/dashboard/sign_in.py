"""Signing in: by a link that works once, or by a key. Either becomes a cookie that no script can read."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from holdfast.connections.browser_sessions import LIFE_MS, BrowserSessions, NotSignedIn
from holdfast.connections.model import Attempt
from holdfast.dashboard.rendering import Values
from holdfast.wire.http.rest import client_name

MAX_FORM = 4_096
COOKIE = "holdfast"

Render = Callable[[str, Values, int], Response]


class SignIn:
    """The two pages that are open to everybody; they show no data."""

    def __init__(self, browsers: BrowserSessions, render: Render) -> None:
        self._browsers = browsers
        self._render = render

    async def by_link(self, request: Request) -> Response:
        """Use the link that `holdfast open` made."""
        if request.method != "GET":
            return self._problem("Open the link in a browser.", 405)
        try:
            secret = await self._browsers.use_link(request.path_params["token"], attempt_of(request))
        except NotSignedIn as error:
            return self._problem(str(error), 401)
        return self._welcome(request, secret)

    async def by_key(self, request: Request) -> Response:
        """Take a key that somebody typed in."""
        if request.method != "POST":
            return self._problem(None, 401)
        if not is_own_origin(request):
            return self._problem("Sign in on this page itself.", 403)
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_FORM:
                return self._problem("That is no key.", 413)
        key = parse_qs(body.decode("ascii", "replace")).get("key", [""])[0].strip()
        try:
            secret = await self._browsers.use_key(key, attempt_of(request))
        except NotSignedIn as error:
            return self._problem(str(error), 401)
        return self._welcome(request, secret)

    def _welcome(self, request: Request, secret: str) -> Response:
        # A page that forwards by itself instead of a redirect: with a redirect, a browser that came from another site
        # (a link in a mail, a terminal in a browser) would not send a strict cookie along.
        response = self._render("signed_in.html", {}, 200)
        response.set_cookie(
            cookie_of(request),
            secret,
            max_age=LIFE_MS // 1000,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    def _problem(self, problem: str | None, status: int) -> Response:
        return self._render("sign_in.html", {"problem": problem}, status)


def cookie_of(request: Request) -> str:
    """Return the cookie's name: browsers do not tell ports apart, and two daemons may serve on one host."""
    return f"{COOKIE}-{request.url.port or 80}"


def is_own_origin(request: Request) -> bool:
    """Return whether a change comes from a page on this port.

    The gate lets other ports of this host through, because their pages may use REST with a key. A cookie would be sent
    along with their requests too.
    """
    fetch_site = request.headers.get("sec-fetch-site")
    if fetch_site is not None and fetch_site != "same-origin":
        return False
    origin = request.headers.get("origin")
    if origin is None:
        return True  # no browser: those send it with every change
    return urlsplit(origin).netloc == request.headers.get("host")


def attempt_of(request: Request, principal: str | None = None) -> Attempt:
    """Return who asks, as far as the connection tells."""
    address = request.client.host if request.client else "unknown"
    return Attempt(address, client_name(request), principal)
