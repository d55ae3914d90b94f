"""Find: one search box over everything, with results as you type."""

from __future__ import annotations

from holdfast.dashboard.find import LONGEST, Group, find
from holdfast.dashboard.page import Page, PageRequest, Part, Shown, shown
from holdfast.dashboard.rooms import Rooms
from holdfast.errors import BadInput


def parts(rooms: Rooms) -> list[Part]:
    """Return the page."""

    async def show(request: PageRequest) -> Shown:
        query = request.query.get("q", "").replace("\0", " ").strip()[:LONGEST]
        groups: tuple[Group, ...] = ()
        problem = None
        try:
            groups = await find(rooms, query, sees_secrets=request.sees_secrets) if query else ()
        except BadInput as error:
            problem = str(error)
        found = sum(len(group.hits) for group in groups)
        return shown("find.html", query=query, groups=groups, found=found, problem=problem)

    return [Page("/find", show)]
