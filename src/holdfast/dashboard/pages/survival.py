"""One break in an agent's work as a picture: what it knew, what was lost, what it was told, how it went on."""

from __future__ import annotations

from holdfast.briefing.ledger.model import is_session_id
from holdfast.briefing.project_sessions import ProjectSession
from holdfast.briefing.queries.breaks import Break
from holdfast.capability.briefing import Audience
from holdfast.dashboard.page import Page, PageRequest, Part, Shown, shown
from holdfast.dashboard.projects import Projects, name_of
from holdfast.dashboard.rooms import Rooms
from holdfast.dashboard.survival import Survival, survival, waiting
from holdfast.dashboard.survival_picture import NARROW, WIDE, draw
from holdfast.dashboard.urls import project_url
from holdfast.dashboard.way_back import way_back
from holdfast.errors import NotFound
from holdfast.records.projects import KnownProject


def parts(rooms: Rooms, projects: Projects) -> list[Part]:
    """Return the page."""

    async def show(request: PageRequest) -> Shown:
        project = await projects.find(request.path["id"])
        session_id = request.path["session"]
        session = await rooms.briefings.sessions.of(session_id) if is_session_id(session_id) else None
        breaks = await rooms.briefings.sessions.breaks(session_id) if is_session_id(session_id) else []
        breaks = [one for one in breaks if one.root in project.roots and one.is_loss]
        if not breaks and (session is None or session.root not in project.roots):
            raise NotFound("There is no such session in this project.", recovery="It may have been forgotten.")
        chosen = _chosen(breaks, request.query.get("break"), session)
        one = await _survival(project, session, chosen)
        waits = session if one is not None and one.at is None else None
        now = await rooms.store.read(lambda tx: tx.now())
        return shown(
            "survival.html",
            project=project,
            url=project_url(project.name),
            name=name_of(project),
            session_id=session_id,
            session=session,
            breaks=breaks,
            chosen=chosen,
            one=one,
            pictures=() if one is None else (draw(one, now, WIDE), draw(one, now, NARROW)),
            command=None if waits is None else way_back(waits.directory, waits.root, waits.session_id),
        )

    async def _survival(project: KnownProject, session: ProjectSession | None, chosen: Break | None) -> Survival | None:
        sessions = rooms.briefings.sessions
        if chosen is not None:
            whole = await sessions.whole(chosen.row_id)
            return None if whole is None else survival(whole, await sessions.continued(whole))
        if session is None or not session.cut_off:
            return None
        briefing = await projects.briefing(Audience(project.root, None))
        knew = await sessions.knowledge(session.session_id, briefing.text)
        kinds = [item.kind for item in briefing.items]
        return None if knew is None else waiting(knew, briefing.text, kinds)

    return [Page("/projects/{id}/sessions/{session}", show)]


def _chosen(breaks: list[Break], wanted: str | None, session: ProjectSession | None) -> Break | None:
    """Return the requested break, or else the latest, unless the session was cut off after it."""
    if wanted is not None:
        return next((one for one in breaks if str(one.row_id) == wanted), None)
    if session is not None and session.cut_off and not any(one.recovered == session.session_id for one in breaks):
        return None
    return breaks[0] if breaks else None
