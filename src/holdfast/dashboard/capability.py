"""What the dashboard offers: its pages, and the link that signs a browser in."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from holdfast.capability import Capability, Command, Life
from holdfast.connections.browser_sessions import BrowserSessions
from holdfast.dashboard.rooms import Rooms
from holdfast.errors import HoldfastError
from holdfast.wire.http.event_stream import EventStreams

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from holdfast.dashboard.site import Site
    from holdfast.wire.http.pages import Pages

FIRST_NAMES = frozenset(
    {"", "approvals", "asks", "events", "figures", "find", "icon", "messages", "open", "projects", "questions"}
    | {"sessions", "settings", "sign-in", "sign-out", "static", "teams", "work"}
)
"""The first names of all paths of the dashboard."""

logger = logging.getLogger(__name__)


def capability(rooms: Rooms, owner_key: str) -> Capability:
    """Build the dashboard; `owner_key` is the secret with which the cookies of browsers are hashed."""
    browsers, streams = BrowserSessions(rooms.store, rooms.keys, owner_key), EventStreams(rooms.store)
    site = _SiteOnDemand(rooms, browsers, streams)

    def commands() -> list[Command]:
        from holdfast.dashboard.commands import commands

        return commands(browsers, site.prepare)

    def pages() -> list[Pages]:
        from holdfast.wire.http.pages import Pages

        return [Pages(FIRST_NAMES, site)]

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
        self._site: Site | None = None
        self._making = asyncio.Lock()
        self._preparing: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        site = await self._made()
        await site(scope, receive, send)

    def prepare(self) -> None:
        """Make the pages in the background, because somebody is about to ask for the first one."""
        if self._preparing is None:
            self._preparing = asyncio.create_task(self._prepare())

    async def _prepare(self) -> None:
        try:
            await (await self._made()).prepare()
        except HoldfastError as error:  # the first page will say so
            logger.info("The dashboard could not be prepared: %s", error)

    async def _made(self) -> Site:
        if self._site is None:
            async with self._making:
                if self._site is None:
                    self._site = await asyncio.to_thread(self._make)
        return self._site

    def _make(self) -> Site:
        from holdfast.dashboard.site import Site

        return Site(*self._parts)
