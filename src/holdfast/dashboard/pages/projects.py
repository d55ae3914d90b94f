"""Projects: every project that Holdfast knows, the last used first, and what is open in each."""

from __future__ import annotations

from holdfast.dashboard.page import Page, PageRequest, Part, Shown, shown
from holdfast.dashboard.projects import Projects, name_of
from holdfast.dashboard.urls import place_of, project_url

AT_ONCE = 30


def parts(projects: Projects) -> list[Part]:
    """Return the list."""

    async def show(request: PageRequest) -> Shown:
        known, everywhere = await projects.all(), await projects.everywhere()
        number = _number(request.query.get("page"))
        some = known[number * AT_ONCE : (number + 1) * AT_ONCE]
        rows = [(one, name_of(one), place_of(one.roots[0]), project_url(one.name), everywhere.of(one)) for one in some]
        more = len(known) > (number + 1) * AT_ONCE
        return shown("projects.html", rows=rows, count=len(known), number=number, more=more)

    return [Page("/projects", show)]


def _number(given: str | None) -> int:
    return int(given) - 1 if given is not None and given.isascii() and given.isdigit() and int(given[:6]) > 0 else 0
