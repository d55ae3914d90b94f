"""Project: where its work stands, who worked there and was told what, its protocol, and its queue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holdfast.bridge.model import MAX_ID, MAX_TEXT, Priority, Status
from holdfast.bridge.queries.incarnations import Incarnation
from holdfast.bridge.queries.owner import ListedMessage
from holdfast.bridge.results import TargetStatus
from holdfast.briefing.model import tokens
from holdfast.briefing.predecessors import Predecessor
from holdfast.capability.briefing import Audience
from holdfast.dashboard.activity import told_of
from holdfast.dashboard.page import Action, Done, Page, PageRequest, Part, Shown, shown
from holdfast.dashboard.phases import ShownRun, shown_run
from holdfast.dashboard.projects import Projects, name_of
from holdfast.dashboard.rooms import Rooms
from holdfast.dashboard.session_frame import Fact, SessionFrame
from holdfast.dashboard.urls import ProjectLink, place_of, project_url, sessions_url
from holdfast.dashboard.way_back import way_back
from holdfast.errors import BadInput, Conflict, NotFound
from holdfast.identity.project import Root
from holdfast.lazy_dataclass import dataclass
from holdfast.protocol.runs import RunStatus
from holdfast.reasoning.session_browser import cursor_after
from holdfast.records.projects import KnownProject
from holdfast.text.quoting import in_quotes
from holdfast.text.terminal import visible

AT_ONCE = 12
"""Sessions on a page, of either kind."""
MOST_MESSAGES = 25
MOST_EDITED = 1_500
"""Characters of a message that can be edited on the page."""
MOST_RUNS = 4
MOST_INCARNATIONS = 6


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A session with open work, and the command that continues it."""

    one: Predecessor
    command: str | None


@dataclass(frozen=True, slots=True)
class Queue:
    """A target of the project: its messages, its task, and who was at work for it."""

    status: TargetStatus
    messages: Sequence[ListedMessage]
    incarnations: Sequence[Incarnation]
    more: int
    """Messages that are not shown."""

    def can_edit(self, message: ListedMessage) -> bool:
        """Return whether a message fits into a form field and contains nothing invisible."""
        return len(message.text) <= MOST_EDITED and visible(message.text) == message.text


def parts(rooms: Rooms, projects: Projects) -> list[Part]:
    """Return the page and its actions."""

    async def show(request: PageRequest) -> Shown:
        project = await projects.find(request.path["id"])
        before, cursor = request.query.get("before"), request.query.get("thoughts")
        briefing, sessions, thoughts, runs, queues = await asyncio.gather(
            projects.briefing(Audience(project.root, None)),
            rooms.briefings.sessions.page(project.root, _number(before), AT_ONCE),
            rooms.reasoning.browser.list(project.root, "all", limit=AT_ONCE, cursor=cursor),
            _runs(rooms, project),
            _queues(rooms, projects, project),
        )
        past = briefing.past
        return shown(
            "project.html",
            project=project,
            name=name_of(project),
            places=[place_of(root) for root in project.roots],
            url=project_url(project.name),
            briefing=briefing,
            tokens=tokens(briefing.text),
            unfinished=[_unfinished(one) for one in past.unfinished] if past is not None else [],
            more_unfinished=past.more if past is not None else 0,
            sessions=sessions,
            earlier=before is not None,
            thoughts=thoughts,
            next_thoughts=cursor_after(thoughts.sessions[-1]) if thoughts.more else None,
            runs=runs,
            queues=queues,
            told_of=told_of,
            waiting_status=Status.PENDING.value,
            dead_status=Status.DEAD.value,
        )

    async def show_run(request: PageRequest) -> Shown:
        project = await projects.find(request.path["id"])
        number = _number(request.path["run"])
        record = None if number is None else await rooms.protocols.numbered(number)
        if record is not None and (record.run.root in project.roots or record.run.project == project.key):
            one = shown_run(record)
            return shown("run.html", frame=_frame(one, project), shown=one, run=one.run)
        raise NotFound("There is no such run.", recovery="The project's page lists its latest.")

    async def pause(request: PageRequest) -> Done:
        for root in (project := await projects.find(request.path["id"])).roots:
            await rooms.reasoning.pause(Root(root, project.key, project.root.source))
        return Done("Recording is paused: nothing is stored for this project until it is resumed.")

    async def unpause(request: PageRequest) -> Done:
        for root in (project := await projects.find(request.path["id"])).roots:
            await rooms.reasoning.unpause(Root(root, project.key, project.root.source))
        return Done("Recording is resumed.")

    async def send(request: PageRequest) -> Done:
        target, text = request.field("target"), request.field("text", MAX_TEXT)
        sent = await rooms.bridge.send(
            target, text, priority=_priority(request), sender=request.sender.label, source="dashboard"
        )
        if sent.id is None:
            raise Conflict(f"The message was not queued: {sent.reason}.")
        return Done(f"The message is queued for {target}.")

    async def cancel(request: PageRequest) -> Done:
        await rooms.queue.cancel(request.field("id", MAX_ID), request.field("target"), request.sender)
        return Done("The message is cancelled.")

    async def edit(request: PageRequest) -> Done:
        text = request.field("text", MAX_TEXT)
        target, message = request.field("target"), request.field("id", MAX_ID)
        if not request.sees_secrets:  # it was shown without them, and would be stored so
            raise Conflict("Only the owner edits messages here.", recovery="`holdfast send TARGET --replace ID TEXT`")
        edited = await rooms.queue.edit(target, message, text, None, request.sender)
        if edited.id is None:
            raise Conflict(f"The message was not changed: {edited.reason}.")
        return Done("The message is changed.")

    return [
        Page("/projects/{id}", show),
        Page("/projects/{id}/runs/{run}", show_run),
        Action("/projects/{id}/pause", pause),
        Action("/projects/{id}/unpause", unpause),
        Action("/messages/send", send),
        Action("/messages/cancel", cancel),
        Action("/messages/edit", edit),
    ]


def _unfinished(one: Predecessor) -> Unfinished:
    root = one.seen.root if one.seen is not None else None
    command = way_back(one.where.directory or one.ledger.cwd, root, one.session_id)
    return Unfinished(one, command if one.resumable else None)


def _frame(one: ShownRun, project: KnownProject) -> SessionFrame:
    run = one.run
    return SessionFrame(
        "Run",
        run.objective or run.id,
        ProjectLink(name_of(project), place_of(run.root), project_url(project.name), sessions_url(project.name)),
        (one.state,),
        (
            Fact("Run", run.id),
            Fact("Protocol", run.protocol),
            *([Fact("Branch", run.branch)] if run.branch else []),
            Fact("Started", at=run.started_at),
            *([Fact("Ended", at=run.ended_at)] if run.ended_at else []),
        ),
        live="protocol.",
    )


async def _runs(rooms: Rooms, project: KnownProject) -> list[ShownRun]:
    """Return the active runs of a project's worktrees, then those that ended."""
    active = {run.root for run in await rooms.protocols.active_runs() if run.root in project.roots}
    records = []
    for root in [*(root for root in project.roots if root in active), project.roots[0]][:MOST_RUNS]:
        records += await rooms.protocols.records(root, MOST_RUNS)
    by_row = {record.run.row_id: record for record in records}
    runs = sorted(by_row.values(), key=lambda one: (one.run.status != RunStatus.ACTIVE, -one.run.row_id))
    return [shown_run(record) for record in runs[:MOST_RUNS]]


async def _queues(rooms: Rooms, projects: Projects, project: KnownProject) -> list[Queue]:
    targets = {target for target, root in projects.places() if root in project.roots}
    if not targets:
        return []
    found = []
    for status in await rooms.bridge.status():
        if status.target in targets:
            messages = await rooms.queue.unfinished(status.target, MOST_MESSAGES)
            incarnations = await rooms.bridge.incarnations(status.target, MOST_INCARNATIONS)
            more = status.pending + status.in_progress + status.dead_letters - len(messages)
            found.append(Queue(status, messages, incarnations, max(0, more)))
    return found


def _priority(request: PageRequest) -> Priority:
    given = request.form.get("priority", "normal")
    try:
        return Priority[given.upper()]
    except KeyError:
        raise BadInput("priority", f"must be normal, urgent or stop, and not {in_quotes(given, 40)}") from None


def _number(given: str | None) -> int | None:
    return int(given) if given is not None and given.isascii() and given.isdigit() and len(given) < 16 else None
