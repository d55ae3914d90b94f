"""Settings: connections, tool latencies, audit, keys, browsers and the settings in force."""

from __future__ import annotations

from holdfast.connections.browser_sessions import BrowserSessions
from holdfast.connections.model import Connection, State
from holdfast.dashboard.page import Action, Done, Page, PageRequest, Part, Shown, shown
from holdfast.dashboard.rooms import Rooms
from holdfast.dashboard.settings_in_force import settings_in_force
from holdfast.dashboard.urls import project_url
from holdfast.errors import BadInput, NotFound
from holdfast.identity.project import path_of
from holdfast.lazy_dataclass import dataclass

PER_PAGE = 50
MOST_CONNECTED = 200
NEWEST_CALLS = 5_000
BROWSERS = (("Edg/", "Edge"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Version/", "Safari"))
"""How browsers are recognised, special ones first: most call themselves Chrome and Safari too."""
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)
STATES = {
    State.ACTIVE: "active",
    State.IDLE: "idle",
    State.DETACHED: "away",
    State.EXPIRED: "ended",
    State.REVOKED: "revoked",
}
"""What a person would call the states."""


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    """A connection as the page shows it."""

    connection: Connection
    state: str
    project: str | None
    project_url: str | None

    @property
    def can_end(self) -> bool:
        """Whether there is still something to revoke."""
        return not self.connection.ended


def parts(rooms: Rooms, browsers: BrowserSessions) -> list[Part]:
    """Return the pages, and what can be ended there."""

    async def show(request: PageRequest) -> Shown:
        keys = await rooms.keys.list() if request.wants("keys") else []
        return shown(
            "settings.html",
            browsers=await browsers.list(),
            browser_name=browser_name,
            keys=[key for key in keys if key.revoked_at is None],
            revoked=sum(key.revoked_at is not None for key in keys),
            settings=settings_in_force(rooms.settings),
        )

    async def show_connections(request: PageRequest) -> Shown:
        before = _moment(request.query.get("before"))
        connected = await rooms.connections.connected(MOST_CONNECTED) if before is None else []
        found = await rooms.connections.unconnected(before, PER_PAGE + 1)
        others = found[:PER_PAGE]
        return shown(
            "settings_connections.html",
            first=before is None,
            connected=[_row(one) for one in connected],
            others=[_row(one) for one in others],
            older=f"{others[-1].seen_at}.{others[-1].id}" if len(found) > PER_PAGE else None,
        )

    async def show_tools(request: PageRequest) -> Shown:
        return shown("settings_tools.html", tools=await rooms.connections.latencies(NEWEST_CALLS), newest=NEWEST_CALLS)

    async def show_audit(request: PageRequest) -> Shown:
        connection, before = request.query.get("connection") or None, _number(request.query.get("before"))
        found = await rooms.connections.audit_lines(connection, before, PER_PAGE + 1)
        return shown(
            "settings_audit.html",
            connection=connection,
            browser_name=browser_name,
            first=before is None,
            lines=found[:PER_PAGE],
            older=found[PER_PAGE - 1].row_id if len(found) > PER_PAGE else None,
        )

    async def revoke_browser(request: PageRequest) -> Done:
        await browsers.revoke(request.path["id"], request.attempt)
        return Done("That browser is signed out.")

    async def revoke_connection(request: PageRequest) -> Done:
        if not await rooms.connections.reconnects.revoke(request.path["id"], request.attempt):
            raise NotFound("There is no such connection.", recovery="Load the page again.")
        return Done("That connection is revoked, with all its tokens. Its client gets a new one with its next call.")

    async def revoke_key(request: PageRequest) -> Done:
        await rooms.keys.revoke(request.path["name"])
        return Done(f"The key {request.path['name']} is revoked.")

    return [
        Page("/settings", show),
        Page("/settings/connections", show_connections),
        Page("/settings/tools", show_tools),
        Page("/settings/audit", show_audit),
        Action("/settings/browsers/{id}/revoke", revoke_browser),
        Action("/settings/connections/{id}/revoke", revoke_connection),
        Action("/settings/keys/{name}/revoke", revoke_key),
    ]


def browser_name(client: str | None) -> str:
    """Return what a person calls a browser: "Firefox 143 on Linux"; an unknown one keeps its own name."""
    told = client or "unknown"
    for mark, name in BROWSERS:
        _, found, after = told.partition(mark)
        if found:
            system = next((name for mark, name in SYSTEMS if mark in told), None)
            version = after.partition(".")[0]
            return f"{name} {version[:4]}" + (f" on {system}" if system else "")
    return told


def _row(connection: Connection) -> ConnectionRow:
    root = connection.bound_root or connection.root_uri
    path = path_of(root) if root else None
    name = (path.name if path else root) or root
    return ConnectionRow(connection, STATES[State(connection.state)], name, project_url(root) if root else None)


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadInput("before", "must be a cursor from the previous page")
    return int(text)


def _moment(text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    at, _, last = text.partition(".")
    number = _number(at)
    return None if number is None else (number, last[:100])
