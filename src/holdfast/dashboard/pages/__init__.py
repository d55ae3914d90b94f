"""The pages, one module each: `parts(rooms)` returns its pages and actions."""

from __future__ import annotations

from holdfast.connections.browser_sessions import BrowserSessions
from holdfast.dashboard.page import Part
from holdfast.dashboard.pages import (
    conversations,
    figures,
    find,
    now,
    project,
    projects,
    sessions,
    settings,
    survival,
    teams,
)
from holdfast.dashboard.projects import Projects
from holdfast.dashboard.rooms import Rooms
from holdfast.dashboard.waiting import Waiting


def all_parts(rooms: Rooms, browsers: BrowserSessions, waiting: Waiting) -> list[Part]:
    """Return every page and action. A new page is one line here."""
    known = Projects(rooms)
    return [
        *now.parts(rooms, waiting),
        *find.parts(rooms),
        *sessions.parts(rooms),
        *projects.parts(known),
        *project.parts(rooms, known),
        *survival.parts(rooms, known),
        *settings.parts(rooms, browsers),
        *teams.parts(rooms),
        *conversations.parts(rooms),
        *figures.parts(rooms),
    ]
