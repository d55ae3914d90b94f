"""Find: one search box over everything, with results as you type."""

from __future__ import annotations

from holdfast.dashboard.find import LONGEST, Found, find
from holdfast.dashboard.page import Page, PageRequest, Part, Shown, shown
from holdfast.dashboard.rooms import Rooms
from holdfast.errors import BadInput
from holdfast.reasoning.session_browser import NOT_INDEXED


def parts(rooms: Rooms) -> list[Part]:
    """Return the page."""

    async def show(request: PageRequest) -> Shown:
        query = request.query.get("q", "").replace("\0", " ").strip()[:LONGEST]
        found, problem = Found(), None
        try:
            found = await find(rooms, query, sees_secrets=request.sees_secrets) if query else found
        except BadInput as error:
            problem = str(error)
        return shown("find.html", query=query, found=found, problem=problem, not_indexed=NOT_INDEXED)

    return [Page("/find", show)]
