"""What the dashboard offers: its pages, and the link that signs a browser in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.capability import Capability, Command, Life
from holdfast.connections.browser_sessions import BrowserSessions
from holdfast.dashboard.rooms import Rooms
from holdfast.wire.http.event_stream import EventStreams

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from holdfast.wire.http.pages import Pages

FIRST_NAMES = frozenset(
    {"", "approvals", "asks", "events", "figures", "find", "icon", "messages", "open", "projects", "questions"}
    | {"sessions", "settings", "sign-in", "sign-out", "static", "teams", "work"}
)
"""The first names of all paths of the dashboard."""


def capability(rooms: Rooms, owner_key: str) -> Capability:
    """Build the dashboard; `owner_key` is the secret with which the cookies of browsers are hashed."""
    browsers, streams = BrowserSessions(rooms.store, rooms.keys, owner_key), EventStreams(rooms.store)

    def commands() -> list[Command]:
        from holdfast.dashboard.commands import commands

        return commands(browsers)

    def pages() -> list[Pages]:
        from holdfast.wire.http.pages import Pages

        return [Pages(FIRST_NAMES, _SiteOnDemand(rooms, browsers, streams))]

    return Capability(
        name="dashboard",
        service=browsers,
        pages=pages,
        commands=commands,
        life=Life(
            sweep=browsers.forget_old,
            on_events=streams.on_events,
            stopping=streams.end,
            is_busy=lambda: streams.open > 0,
        ),
    )


class _SiteOnDemand:
    """The pages, imported at the first request: most daemons never need them."""

    def __init__(self, rooms: Rooms, browsers: BrowserSessions, streams: EventStreams) -> None:
        self._parts = rooms, browsers, streams
        self._site: ASGIApp | None = None
        self._making = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._site is None:
            async with self._making:
                if self._site is None:
                    self._site = await asyncio.to_thread(self._make)
        site: ASGIApp = self._site
        await site(scope, receive, send)

    def _make(self) -> ASGIApp:
        from holdfast.dashboard.site import Site

        return Site(*self._parts)
