"""Figures: messages, tokens, cost, lifetimes, pairs and recoveries, over a day, a week or a quarter."""

from __future__ import annotations

from holdfast.dashboard.figures import PERIODS, look
from holdfast.dashboard.page import Download, Page, PageRequest, Part, Shown, shown
from holdfast.dashboard.rooms import Rooms
from holdfast.errors import BadInput, NotFound


def parts(rooms: Rooms) -> list[Part]:
    """Return the page, and each table of it as a file."""

    async def show(request: PageRequest) -> Shown:
        return shown("figures.html", page=await look(rooms, _period(request)), periods=tuple(PERIODS))

    async def table(request: PageRequest) -> Download:
        page = await look(rooms, _period(request))
        figure = page.find(request.path["key"])
        if figure is None:
            names = ", ".join(one.key for one in page.figures)
            raise NotFound("There is no such table.", recovery=f"There are: {names}.")
        return Download(f"holdfast-{figure.key}-{page.period}.csv", figure.csv, "text/csv; charset=utf-8")

    return [Page("/figures", show), Page("/figures/{key}.csv", table)]


def _period(request: PageRequest) -> str:
    name = request.query.get("period", "week")
    if name not in PERIODS:
        raise BadInput("period", f"must be one of {', '.join(PERIODS)}")
    return name
