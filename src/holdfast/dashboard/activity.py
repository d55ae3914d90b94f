"""What every project is doing now, and did in the last hours: agents, teams and other clients, one row per project."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from holdfast.agents.registry import AGENTS, DEFAULT
from holdfast.bridge.model import Update, UpdateKind
from holdfast.briefing.ledger.model import ACTIVE_MS
from holdfast.briefing.ledger.wording import relative
from holdfast.briefing.queries.breaks import is_loss
from holdfast.briefing.queries.recent import Recovery
from holdfast.briefing.recent_sessions import Recently, RecentSession
from holdfast.connections.model import Connection
from holdfast.dashboard.amounts import lasting
from holdfast.dashboard.rooms import Rooms
from holdfast.dashboard.strip import EMPTY, WINDOW_MS, Happening, Strip, draw
from holdfast.dashboard.urls import place_of, project_url, survival_url
from holdfast.identity.project import canonical_uri, path_of
from holdfast.lazy_dataclass import dataclass
from holdfast.teams.model import AskState, AskStatus
from holdfast.times import iso

LATELY_MS = 7 * 24 * 3_600_000
"""How long ago somebody may have worked in a project that has a row."""
MOST_ROWS, MOST_QUIET = 40, 20
"""Rows in all, and rows up to which there are some of projects where nobody is at work or waits."""
MOST_CONNECTIONS = 200
TOLD = {
    "request": "the task",
    "first": "the task",
    "requests": "the task",
    "unfinished": "where it was cut off",
    "todos": "the list",
    "modified": "files changed",
    "read": "files read",
    "failed": "what failed",
    "errors": "what failed",
    "decided": "decisions",
    "words": "last words",
    "way back": "the way back",
}
MOST_TOLD = 5
WAITS = "waits for you"
BUSY = ("at work", WAITS)
CUT_OFF = "cut off in the middle of its turn"
UNDER_WAY = {"read": "reads", "changed": "changes", "ran": "runs", "planned": "plans", "used": "uses"}
FILES = ("read", "changed")
LONG_MS = 30_000
"""How long a call must be under way for its length to be shown."""
MESSAGES = (UpdateKind.REPLY.value, UpdateKind.MESSAGE.value, UpdateKind.DEAD_LETTER.value)


@dataclass(frozen=True, slots=True)
class Doing:
    """What an agent at work is doing, as its transcript tells."""

    kind: str
    """"runs", "reads" while the call is under way, "ran", "read" when it is answered."""
    text: str
    """The command, file or tool: outside text."""
    since: str | None
    """How long the call has been under way, if that is long."""


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """One project."""

    key: str
    name: str
    place: str
    """Its directory."""
    url: str
    agent: str
    """Who works there."""
    state: str
    """"at work", "waits for you", "idle" (somebody is there), "cut off" or "quiet"."""
    text: str
    """What it said last, is at or was asked: outside text."""
    action: Doing | None
    """What its agent is doing, or did last, in this turn."""
    last_at: int
    strip: Strip = EMPTY


@dataclass(frozen=True, slots=True)
class Activity:
    """All projects."""

    rows: tuple[ProjectRow, ...]
    """Those at work or waiting first, then the last used."""
    more: int
    at_work: int
    """Agents that are in the middle of something."""
    recently: Recently


@dataclass(slots=True)
class _Project:
    key: str
    root: str
    sessions: list[RecentSession]
    connections: list[Connection]
    asks: list[AskState]
    happened: list[Happening]
    steps: set[int]


async def look(rooms: Rooms, recently: Recently) -> Activity:
    """Return what every project is doing; `recently` are the sessions of `LATELY_MS`."""
    connections, steps, asks, updates = await asyncio.gather(
        rooms.connections.newest(ended=False, before=None, limit=MOST_CONNECTIONS),
        rooms.connections.active_steps(WINDOW_MS, ACTIVE_MS),
        rooms.teams.open_asks(),
        _updates(rooms),
    )
    running = [one for one in asks if one.ask.status == AskStatus.RUNNING.value]
    places = {name: canonical_uri(str(team.project)) for name, team in rooms.teams.targets().items()}
    projects = _gather(recently, connections, steps, running, updates, places)
    rows = [row for row in (_row(one, recently.now) for one in projects) if row is not None]
    at_work = sum(one.approval is None for one in running) + sum(one.at_work for one in recently.sessions)
    by_key = {one.key: one for one in projects}
    shown = tuple(
        replace(row, strip=draw(recently.now, by_key[row.key].steps, by_key[row.key].happened))
        for row in first_rows(rows)
    )
    return Activity(shown, len(rows) - len(shown), at_work, recently)


def first_rows(rows: Sequence[ProjectRow]) -> tuple[ProjectRow, ...]:
    """Return the rows to show: those where somebody is at work or waits, and quiet ones up to a smaller number."""
    most = min(MOST_ROWS, max(MOST_QUIET, sum(row.state in BUSY for row in rows)))
    return tuple(sorted(rows, key=lambda row: (row.state not in BUSY, -row.last_at))[:most])


async def _updates(rooms: Rooms) -> list[Update]:
    since = iso(await rooms.store.read(lambda tx: tx.now() - WINDOW_MS))
    pulled = await asyncio.gather(*(rooms.bridge.pull(name, since) for name in rooms.teams.targets()))
    return [update for one in pulled for update in one.updates]


def _gather(
    recently: Recently,
    connections: Sequence[Connection],
    steps: Iterable[tuple[str, int]],
    running: Sequence[AskState],
    updates: Sequence[Update],
    places: dict[str, str],
) -> list[_Project]:
    projects: dict[str, _Project] = {}
    begin = recently.now - WINDOW_MS
    keys = {one.root: one.project_key or one.root for one in recently.sessions}

    def project(root: str) -> _Project:
        key = keys.get(root, root)
        if key not in projects:
            projects[key] = _Project(key, root, [], [], [], [], set())
        return projects[key]

    for session in recently.sessions:
        into = project(session.root)
        into.sessions.append(session)
        if session.last_at >= begin:
            into.steps.update(session.active)
            into.happened += _happened(session, into.key)
    ended_at = {one.session_id: one.last_at for one in recently.sessions}
    for recovery in recently.recoveries:
        if recovery.at < begin:
            continue
        into = project(recovery.root)
        lost = is_loss(recovery.occasion, recovery.recovered)
        link = survival_url(into.key, recovery.session_id, recovery.row_id) if lost else None
        into.happened.append(_recovered(recovery, link))
        if recovery.occasion == "crash" and recovery.recovered in ended_at:
            into.happened.append(Happening(ended_at[recovery.recovered], "killed", CUT_OFF, link))
        elif recovery.broke_at is not None:
            into.happened.append(Happening(recovery.broke_at, "killed", CUT_OFF, link))
    known = {f"agent:{one.session_id}" for one in recently.sessions}
    active: dict[str, set[int]] = {}
    for connection_id, step in steps:
        active.setdefault(connection_id, set()).add(step)
    for connection in connections:
        root = connection.bound_root or connection.root_uri
        if root is not None:
            into = project(root)
            into.steps |= active.get(connection.id, set())
            if connection.identity not in known:
                into.connections.append(connection)
    for state in running:
        if (root := places.get(state.ask.to_team)) is not None:
            into = project(root)
            into.asks.append(state)
            began = state.ask.started_at or state.ask.created_at
            into.steps.update(range(max(began, begin) // ACTIVE_MS, recently.now // ACTIVE_MS + 1))
    for update in updates:
        if (root := places.get(update.target)) is not None and update.kind in MESSAGES:
            project(root).happened.append(Happening(update.created_at, "message", _message(update)))
    return list(projects.values())


def _row(project: _Project, now: int) -> ProjectRow | None:
    path = path_of(project.root)
    latest = project.sessions[0] if project.sessions else None
    live = next((one for one in project.sessions if one.at_work), None) or next(
        (one for one in project.sessions if one.live), None
    )
    attached = [one for one in project.connections if one.attached_by is not None]
    times = [
        *(one.last_at for one in project.sessions[:1]),
        *(one.seen_at for one in project.connections),
        *(one.ask.started_at or one.ask.created_at for one in project.asks),
    ]
    if not times:
        return None
    hooked, action = AGENTS[DEFAULT].title, None
    if project.asks:
        ask = project.asks[0]
        agent, text = f"team {ask.ask.to_team}", ask.doing or ask.ask.text
        state = "at work" if ask.approval is None else WAITS
    elif live is not None:
        agent, state = hooked, "at work" if live.at_work else "idle"
        text = (live.said_now or live.doing or live.asked if live.at_work else live.said or live.asked) or ""
        action = _doing(live, path, now)
    elif attached:
        agent, state, text = attached[0].label, "idle", ""
    elif latest is not None:
        agent, state, text = hooked, "cut off" if latest.cut_off else "quiet", latest.said or latest.asked or ""
    else:
        agent, state, text = project.connections[0].label, "quiet", ""
    return ProjectRow(
        project.key,
        path.name if path is not None else project.root,
        place_of(project.root),
        project_url(project.key),
        agent,
        state,
        text,
        action,
        max(times),
    )


def _doing(session: RecentSession, project: Path | None, now: int) -> Doing | None:
    latest = session.latest
    if latest is None:
        return None
    text = relative(latest.text, project, session.directory) if latest.kind in FILES else latest.text
    if not session.runs:
        return Doing(latest.kind, text, None)
    length = now - latest.at
    return Doing(UNDER_WAY[latest.kind], text, lasting(length) if length >= LONG_MS else None)


def _happened(session: RecentSession, project: str) -> list[Happening]:
    found = [Happening(one.at, "commit", f"commit {one.hash[:8]}: {one.subject}") for one in session.commits if one.at]
    if session.cut_off:
        link = survival_url(project, session.session_id)
        found.append(Happening(session.last_at, "killed", CUT_OFF, link))
    return found


def _recovered(recovery: Recovery, link: str | None) -> Happening:
    kind = "compacted" if recovery.occasion == "compact" else "resumed"
    told = told_of(recovery.kinds)
    if recovery.occasion == "resume":
        more = f", and was told: {told}" if recovery.kinds else ""
        return Happening(recovery.at, kind, f"resumed with its whole conversation{more}", link)
    begins = {"compact": "compacted", "crash": "began after work was cut off"}.get(recovery.occasion, "began")
    return Happening(recovery.at, kind, f"{begins}; was told: {told}", link)


@lru_cache(1_000)
def told_of(kinds: tuple[str, ...]) -> str:
    """Describe what an agent was told about."""
    words = list(dict.fromkeys(TOLD.get(one, one) for one in kinds))
    return ", ".join(words[:MOST_TOLD]) + (" …" if len(words) > MOST_TOLD else "") or "nothing new"


def _message(update: Update) -> str:
    if update.kind == UpdateKind.DEAD_LETTER.value:
        return "a message could not be delivered"
    return "a message was answered" if update.kind == UpdateKind.REPLY.value else "a message came"
