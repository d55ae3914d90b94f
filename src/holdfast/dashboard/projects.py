"""Finds projects by the name in their address, and what is open in each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from holdfast.bridge.results import TargetStatus
from holdfast.briefing.recent_sessions import RecentSession
from holdfast.briefing.service import Briefing
from holdfast.capability.briefing import Audience
from holdfast.dashboard.activity import LATELY_MS, MOST_CONNECTIONS
from holdfast.dashboard.rooms import Rooms
from holdfast.dashboard.urls import project_id
from holdfast.errors import NotFound
from holdfast.identity.project import Root, canonical_uri, path_of
from holdfast.lazy_dataclass import dataclass
from holdfast.protocol.runs import Run
from holdfast.records.project_queries import KnownRoot
from holdfast.records.projects import KnownProject, known_projects
from holdfast.store import events
from holdfast.store.events import Event
from holdfast.text import counted

BRIEFING_SECONDS = 20.0
"""How long a briefing is shown again while nothing was committed that concerns its project: it asks git."""
MOST_BRIEFINGS = 50
MOST_THINKING = 8
"""Sessions with new thoughts that are looked at; if there are more, the briefing is made again."""
THOUGHT = "reasoning.thought_added"
UNTOLD = ("audit.", "browser.", "key.")
"""Kinds of events that no agent is told of."""


@dataclass(frozen=True, slots=True)
class Open:
    """What is open in a project, each in a few words."""

    at_work: int
    things: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Everywhere:
    """What is open in all projects."""

    sessions: Sequence[RecentSession]
    queues: Sequence[TargetStatus]
    runs: Sequence[Run]
    places: Sequence[tuple[str, str]]
    """Each target and the root of its project."""

    def of(self, project: KnownProject) -> Open:
        """Return what is open in one."""
        roots = set(project.roots)
        sessions = [one for one in self.sessions if one.root in roots]
        targets = {target for target, root in self.places if root in roots}
        queues = [one for one in self.queues if one.target in targets]
        cut_off, waiting = sum(one.cut_off for one in sessions), sum(one.pending for one in queues)
        dead = sum(one.dead_letters for one in queues)
        things = [
            *([f"{counted(cut_off, 'session')} cut off"] if cut_off else []),
            *(
                f"blocked at {run.held_by}" if run.held_by else f"in phase {run.phase}"
                for run in self.runs
                if run.root in roots
            ),
            *([f"{counted(waiting, 'message')} waiting"] if waiting else []),
            *([counted(dead, "dead letter")] if dead else []),
            *(["recording paused"] if project.paused else []),
        ]
        return Open(sum(one.at_work for one in sessions), tuple(things))


class Projects:
    """All projects that Holdfast knows."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._briefings: dict[tuple[str, str | None], tuple[int, float, Briefing]] = {}

    async def all(self) -> list[KnownProject]:
        """Return every project, the last used first."""
        connections = await self._rooms.connections.newest(ended=False, before=None, limit=MOST_CONNECTIONS)
        found = [
            KnownRoot(root, None, one.seen_at)
            for one in connections
            if (root := one.bound_root or one.root_uri) is not None
        ]
        found += [KnownRoot(root, None, 0) for _, root in self.places()]
        return await known_projects(self._rooms.store, found)

    async def find(self, name: str) -> KnownProject:
        """Return the project with this name in its address."""
        projects = await self.all()
        for project in projects:
            if project_id(project.name) == name:
                return project
        for project in projects:
            if any(project_id(root) == name for root in project.roots):
                return project
        raise NotFound("There is no such project.", recovery="It may have been moved or forgotten.")

    async def everywhere(self) -> Everywhere:
        """Return what is open in all projects."""
        recently, queues, runs = await asyncio.gather(
            self._rooms.briefings.recently(LATELY_MS), self._rooms.bridge.status(), self._rooms.protocols.active_runs()
        )
        return Everywhere(recently.sessions, queues, runs, self.places())

    def places(self) -> list[tuple[str, str]]:
        """Return each target with the root of its project."""
        return [(name, canonical_uri(str(team.project))) for name, team in self._rooms.teams.targets().items()]

    async def briefing(self, audience: Audience) -> Briefing:
        """Return what an agent that starts in a project would be told if it asked now."""
        key = audience.root.uri, audience.root.key
        known = self._briefings.get(key)
        after = known[0] if known is not None else 1 << 62
        seen, happened = await self._rooms.store.read(lambda tx: (events.head(tx), events.after(tx, after)))
        if known is not None and time.monotonic() < known[1] and not await self._concerned(audience.root, happened):
            self._briefings[key] = seen, *known[1:]
            return known[2]
        briefing = await self._rooms.briefings.on_request(audience)
        while len(self._briefings) >= MOST_BRIEFINGS:
            del self._briefings[next(iter(self._briefings))]
        self._briefings.pop(key, None)
        self._briefings[key] = seen, time.monotonic() + BRIEFING_SECONDS, briefing
        return briefing

    async def _concerned(self, root: Root, happened: Sequence[Event]) -> bool:
        """Return whether one of these events may change what is told in a project: not a thought in another one."""
        happened = [event for event in happened if not event.kind.startswith(UNTOLD)]
        thinking = {event.subject for event in happened if event.kind == THOUGHT}
        if len(thinking) > MOST_THINKING or any(event.kind != THOUGHT for event in happened):
            return True
        browser = self._rooms.reasoning.browser
        for session_id in thinking:
            try:
                session, linked = await asyncio.gather(browser.session(session_id), browser.linked(session_id))
            except NotFound:
                return True
            roots, keys = {session.root_uri, *linked.roots}, {session.project_key} - {None}
            if root.uri in roots or root.key in keys:
                return True
        return False


def name_of(project: KnownProject) -> str:
    """Return what people call a project: the name of its folder."""
    path = path_of(project.roots[0])
    return path.name if path is not None and path.name else project.roots[0]
