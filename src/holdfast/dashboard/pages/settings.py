"""Settings: which browsers are signed in."""

from __future__ import annotations

from holdfast.connections.browser_sessions import BrowserSessions
from holdfast.dashboard.page import Action, Done, Page, PageRequest, Part, Shown, shown
from holdfast.dashboard.rooms import Rooms


def parts(rooms: Rooms, browsers: BrowserSessions) -> list[Part]:
    """Return the page, and what can be ended there."""

    async def show(request: PageRequest) -> Shown:
        return shown("settings.html", browsers=await browsers.list())

    async def revoke(request: PageRequest) -> Done:
        await browsers.revoke(request.path["id"], request.attempt)
        return Done("That browser is signed out.")

    return [Page("/settings", show), Action("/settings/browsers/{id}/revoke", revoke)]
