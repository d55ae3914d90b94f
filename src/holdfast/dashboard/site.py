"""The dashboard as it is served: who is signed in, what may be changed, and the headers of every answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from holdfast.connections.browser_sessions import BrowserSessions, SignedIn
from holdfast.connections.keys import Key
from holdfast.connections.keys import Scope as KeyScope
from holdfast.dashboard.activity import LATELY_MS, look
from holdfast.dashboard.capability import FIRST_NAMES
from holdfast.dashboard.page import Action, Done, Download, Page, PageRequest, Part, in_order
from holdfast.dashboard.pages import all_parts
from holdfast.dashboard.rendering import Renderer, Values
from holdfast.dashboard.rooms import Rooms
from holdfast.dashboard.sign_in import SignIn, attempt_of, cookie_of, is_own_origin
from holdfast.dashboard.static_files import StaticFiles, icon
from holdfast.dashboard.waiting import UNCOUNTED, Waiting
from holdfast.errors import HoldfastError
from holdfast.store.events import Event
from holdfast.store.from_settings import clock_of
from holdfast.version import __version__
from holdfast.wire.http.event_stream import MAX_STREAMS, EventStreams
from holdfast.wire.http.gate import KEY
from holdfast.wire.http.rest import STATUS_OF

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: then browsers send `Origin: null` with forms, which cannot be told from a foreign page.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
MAX_FORM = 2 * 1024 * 1024
MAX_FIELDS = 50
MAX_QUERY = 4_096
PARTS = "holdfast-parts"
"""The header with the live regions that the script wants."""
QUIET = "holdfast-quiet"
"""The header of a form that the script sends, to be answered with a sentence instead of a page."""
FOR_ADMINS = ("audit.", "browser.", "key.")
"""Kinds of events that a read-only session does not get."""

logger = logging.getLogger(__name__)

Answer = Callable[[Request, SignedIn], Awaitable[Response]]


class Site:
    """Everything that a browser can ask for."""

    def __init__(self, rooms: Rooms, browsers: BrowserSessions, streams: EventStreams) -> None:
        self._rooms = rooms
        self._browsers = browsers
        self._keys = rooms.keys
        self._streams = streams
        self._static = StaticFiles()
        self._renderer = Renderer(self._static.url, clock_of(rooms.settings))
        self._waiting = Waiting(rooms)
        self._said: dict[str, str] = {}
        """What an action did, by session, until its next page."""
        sign_in = SignIn(browsers, self._render)
        parts = self.parts = in_order(all_parts(rooms, browsers, self._waiting))
        for part in parts:
            if part.path.split("/")[1] not in FIRST_NAMES:
                raise ValueError(f"{part.path}: add its first name to FIRST_NAMES")
        self._app = Starlette(
            routes=[
                Route("/static/{name:path}", _Endpoint(self._serve_static)),
                Route("/icon/{number:int}.svg", _Endpoint(self._icon)),
                Route("/open/{token}", _Endpoint(sign_in.by_link)),
                Route("/sign-in", _Endpoint(sign_in.by_key)),
                Route("/sign-out", _Endpoint(self._for_signed_in(self._sign_out))),
                Route("/events", _Endpoint(self._events)),
                *(
                    Route(path, _Endpoint(self._for_signed_in(self._answers(list(same)))))
                    for path, same in groupby(parts, key=lambda part: part.path)
                ),
                Route("/{rest:path}", _Endpoint(self._for_signed_in(self._not_found))),
            ],
            exception_handlers={Exception: self._failed},
        )
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, protected)

    async def prepare(self) -> None:
        """Do beforehand what would make the first pages slow: compile templates, and read what is then kept."""
        await asyncio.to_thread(self._renderer.prepare)
        recently = await self._rooms.briefings.recently(LATELY_MS)
        await asyncio.gather(self._waiting.cards(recently), look(self._rooms, recently))

    # -- who is asking ------------------------------------------------------------------------------------------------

    def _for_signed_in(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        async def checked(request: Request) -> Response:
            try:
                who = await self._who(request)
                if who is None:
                    return self._render("sign_in.html", {"problem": None}, 401)
                return await answer(request, who)
            except HTTPException as error:
                return self._refuse(request, error.status_code, error.detail)
            except HoldfastError as error:
                return self._refuse(request, _status(error), str(error))

        return checked

    async def _who(self, request: Request) -> SignedIn | None:
        secret = request.cookies.get(cookie_of(request))
        who = await self._browsers.find(secret) if secret else None
        if who is not None:
            request.scope[KEY] = who.key  # from here on the connection is not closed to make room for others
        return who

    # -- pages and actions --------------------------------------------------------------------------------------------

    def _answers(self, parts: Sequence[Part]) -> Answer:
        page = next((part for part in parts if isinstance(part, Page)), None)
        action = next((part for part in parts if isinstance(part, Action)), None)

        async def answer(request: Request, who: SignedIn) -> Response:
            if request.method in ("GET", "HEAD") and page is not None:
                return await self._show(page, request, who)
            if request.method == "POST" and action is not None:
                return await self._act(action.act, request, who)
            raise HTTPException(405, "This page does not support that method.")

        return answer

    async def _show(self, page: Page, request: Request, who: SignedIn) -> Response:
        seen = await self._streams.head()  # before anything is read, so that the page never misses a change
        page_request = _page_request(request, who)
        found = await page.show(page_request)
        if isinstance(found, Download):
            disposition = f'attachment; filename="{found.name}"'
            return Response(found.content, media_type=found.kind, headers={"Content-Disposition": disposition})
        values = {**await self._base(page_request, seen), **found.values}
        if page_request.parts is not None:
            return _html(self._renderer.parts(found.template, values, page_request.parts | {"head"}), found.status)
        return self._render(found.template, values, found.status)

    async def _base(self, page_request: PageRequest, seen: int) -> Values:
        """Return what the frame of every page shows."""
        return {
            "request": page_request,
            "sees_secrets": page_request.sees_secrets,
            "csrf": page_request.who.csrf,
            "seen": seen,
            "waiting": await self._waiting.count(self._streams.last_other(seen, UNCOUNTED)),
            "said": self._said.pop(page_request.who.session.id, None) if page_request.parts is None else None,
            "here": page_request.url.split("?")[0].split("/")[1],
            "version": __version__,
        }

    async def _act(
        self, act: Callable[[PageRequest], Awaitable[Done]], request: Request, who: SignedIn, *, reader: bool = False
    ) -> Response:
        if not is_own_origin(request):
            raise HTTPException(403, "Changes are accepted only from a page of the dashboard itself.")
        form = await _form(request)
        if not who.may_change(form.get("csrf", "")):
            raise HTTPException(403, "This page is out of date. Reload it and try again.")
        if who.key.scope is not KeyScope.ADMIN and not reader:
            raise HTTPException(403, "You are signed in read-only: nothing can be changed.")
        done = await act(_page_request(request, who, form))
        to = done.to or _local(form.get("back", "/"))
        if QUIET in request.headers:
            return JSONResponse({"said": done.said, "to": done.to})
        if len(self._said) > 1_000:
            self._said.clear()
        self._said[who.session.id] = done.said
        return RedirectResponse(to, 303)

    async def _sign_out(self, request: Request, who: SignedIn) -> Response:
        async def end(page_request: PageRequest) -> Done:
            await self._browsers.sign_out(who.session.id, page_request.attempt)
            return Done("Signed out.", "/")

        if request.method != "POST":
            raise HTTPException(405, "Sign out with the button.")
        response = await self._act(end, request, who, reader=True)
        response.delete_cookie(cookie_of(request), httponly=True, samesite="strict")
        self._said.pop(who.session.id, None)
        return response

    async def _not_found(self, request: Request, who: SignedIn) -> Response:
        raise HTTPException(404, "There is no such page.")

    # -- what needs no page -------------------------------------------------------------------------------------------

    async def _events(self, request: Request) -> Response:
        try:
            key = await self._reader(request)
        except HoldfastError as error:
            return Response(str(error), _status(error), headers={"Retry-After": "1"}, media_type="text/plain")
        if key is None:
            return Response("Not signed in: run `holdfast open`.", 401, media_type="text/plain")
        if self._streams.open >= MAX_STREAMS:
            return Response("Too many streams are open.", 503, headers={"Retry-After": "5"}, media_type="text/plain")
        after = request.headers.get("last-event-id") or request.query_params.get("after", "")
        cursor = int(after) if after.isascii() and after.isdigit() and len(after) < 19 else None

        async def holds() -> bool:
            return await self._reader(request) is not None

        stream = self._streams.follow(cursor, _allows(key), holds)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _reader(self, request: Request) -> Key | None:
        """Return who follows events: the holder of the key that is sent, or of the cookie on one of our own pages."""
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind:
            key = await self._keys.check(given) if kind.lower() == "bearer" else None
            return key if key is not None and key.teams is None else None
        who = await self._who(request) if is_own_origin(request) else None
        return who.key if who is not None else None

    async def _serve_static(self, request: Request) -> Response:
        return self._static.response(request)

    async def _icon(self, request: Request) -> Response:
        headers = {"Cache-Control": "public, max-age=86400"}
        return Response(icon(request.path_params["number"]), media_type="image/svg+xml", headers=headers)

    # -- answers ------------------------------------------------------------------------------------------------------

    def _render(self, template: str, values: Values, status: int = 200) -> Response:
        return _html(self._renderer.whole(template, values), status)

    def _refuse(self, request: Request, status: int, problem: str) -> Response:
        if QUIET in request.headers:
            return JSONResponse({"problem": problem}, status)
        back = _local(request.url.path) if request.method in ("GET", "HEAD") else "/"
        return self._render("error.html", {"problem": problem, "status": status, "back": back}, status)

    async def _failed(self, request: Request, error: Exception) -> Response:
        """Answer 500 without details; the server logs the error itself."""
        return self._refuse(request, 500, "Something went wrong in the daemon; its log says what.")


class _Endpoint:
    """Takes every method of a path, so that who is asking is checked before anything else."""

    def __init__(self, answer: Callable[[Request], Awaitable[Response]]) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)


def _page_request(request: Request, who: SignedIn, form: dict[str, str] | None = None) -> PageRequest:
    wanted = request.headers.get(PARTS)
    if len(request.url.query) > MAX_QUERY:
        raise HTTPException(414, f"The query must have at most {MAX_QUERY} characters.")
    return PageRequest(
        who,
        f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path,
        dict(request.path_params),
        dict(parse_qsl(request.url.query, keep_blank_values=True, errors="replace", max_num_fields=MAX_FIELDS)),
        form or {},
        frozenset(wanted.split()) if wanted is not None else None,
        attempt_of(request, who.key.name),
    )


def _html(text: str, status: int) -> Response:
    # Half a character in a text is shown as such; it must not keep the page from being sent.
    return Response(text.encode("utf-8", "backslashreplace"), status, media_type="text/html")


async def _form(request: Request) -> dict[str, str]:
    data = bytearray()
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > MAX_FORM:
                raise HTTPException(413, f"The form must have at most {MAX_FORM} bytes.")
    except ClientDisconnect:
        raise HTTPException(400, "The form did not arrive.") from None
    try:
        fields = parse_qsl(data.decode("ascii"), keep_blank_values=True, errors="replace", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise HTTPException(400, "The form cannot be read.") from None
    return {name: value.replace("\r\n", "\n") for name, value in fields}


def _local(path: str) -> str:
    """Return a path of this site, whatever a form says."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"


def _allows(key: Key) -> Callable[[Event], bool]:
    if key.scope is KeyScope.ADMIN:
        return lambda event: True
    return lambda event: not event.kind.startswith(FOR_ADMINS)


def _status(error: HoldfastError) -> int:
    return next((status for kind, status in STATUS_OF.items() if isinstance(error, kind)), 503)
