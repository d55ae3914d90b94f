"""Sessions: the list of reasoning sessions, and one of them as a tree of thoughts."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import urlencode

from holdfast.dashboard.page import Action, Done, Download, Page, PageRequest, Part, Shown, shown
from holdfast.dashboard.rendering import BLOCK, MARGIN
from holdfast.dashboard.rooms import Rooms
from holdfast.dashboard.session_frame import Fact, SessionFrame
from holdfast.dashboard.tree import draw, minimap, neighbours
from holdfast.dashboard.urls import project_link, session_url
from holdfast.errors import BadInput, Conflict, NotFound
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.identity.project import MAX_ROOT, Root, RootSource
from holdfast.reasoning.export import Format, render
from holdfast.reasoning.model import Session, Status
from holdfast.reasoning.results import OpenThought
from holdfast.reasoning.session_browser import SHAPE_PARTS, cursor_after
from holdfast.text import counted

PER_PAGE = 50
LABEL = 70
"""Characters of a thought that its row may show."""
LABEL_MARGIN = 250
"""Characters beyond those that are searched for secrets."""
STATES = {"active": "Active", "archived": "Archived", "all": "All"}
OFFERED = 20
"""Sessions that are offered for linking."""
EXPORTED = 2_000
"""Thoughts that are sent to a browser at once; the command line has no limit."""
KINDS = {
    Format.MARKDOWN: ("md", "text/markdown; charset=utf-8"),
    Format.JSON: ("json", "application/json"),
    Format.MERMAID: ("mmd", "text/plain; charset=utf-8"),
}
_NUMBER = re.compile(r"[0-9]{1,10}")
_RANGE = re.compile(r"([0-9]{1,10})-([0-9]{1,10})")


def parts(rooms: Rooms) -> list[Part]:
    """Return the list, the page of a session, its downloads and its actions."""
    browser = rooms.reasoning.browser

    async def show_list(request: PageRequest) -> Shown:
        project = request.query.get("project", "")[:MAX_ROOT] or None
        status = request.query.get("status", "active")
        if status not in STATES:
            raise BadInput("status", f"must be one of {', '.join(STATES)}")
        root = Root(project, project, RootSource.ARGUMENT) if project else None
        page = await browser.list(root, status, (), PER_PAGE, request.query.get("after") or None)

        def address(state: str, after: str | None = None) -> str:
            given = {"status": state, "project": project, "after": after}
            return "/sessions?" + urlencode({name: value for name, value in given.items() if value}, errors="replace")

        rows = [(one, project_link(one.root_uri, one.project_key)) for one in page.sessions if visible(one)]
        return shown(
            "sessions.html",
            rows=rows,
            project=project,
            name=rows[0][1].name if project and rows and rows[0][1] is not None else project,
            status=status,
            choices=[(state, label, address(state)) for state, label in STATES.items()],
            older=address(status, cursor_after(page.sessions[-1])) if page.more else None,
        )

    async def show(request: PageRequest) -> Shown:
        session_id = request.path["id"]
        wanted = _number(request.query.get("t"))
        shape = await browser.shape(session_id, wanted)
        selected = max(1, min(wanted or shape.end, shape.end))
        opened = _RANGE.fullmatch(request.query.get("open", ""))
        tree = draw(shape, selected, (int(opened[1]), int(opened[2])) if opened else None)
        singles = [row.first for row in tree.rows if not row.folded] if request.wants("tree") else []
        beginnings, thought, linked, offered = await asyncio.gather(
            browser.beginnings(session_id, singles, LABEL + LABEL_MARGIN),
            _open(request, selected) if shape.end and request.wants("thought") else nothing(),
            browser.linked(session_id) if request.wants("links") else nothing(),
            _offered(shape.session) if request.parts is None and request.may_change else nothing(),
        )
        session = shape.session
        return shown(
            "session.html",
            frame=_frame(session),
            session=session,
            url=session_url(session_id),
            shape=shape,
            tree=tree,
            begins={one.number: one for one in beginnings},
            map=minimap(shape, tree, selected, SHAPE_PARTS),
            selected=selected,
            follows=wanted is None,
            opened=opened[0] if opened else None,
            thought=thought,
            part=BLOCK,
            rest=_rest(thought),
            line=neighbours(shape, selected) if shape.end else (None, None),
            linked=linked,
            offered=offered or (),
            formats=tuple(KINDS),
            exported=EXPORTED,
            label=LABEL,
        )

    async def _open(request: PageRequest, number: int) -> OpenThought | None:
        # The middle of a text may begin with half a secret, so only who sees secrets turns its pages.
        start = _number(request.query.get("from")) or 0 if request.sees_secrets else 0
        return await browser.open_thought(request.path["id"], number, start, BLOCK + MARGIN)

    async def _offered(session: Session) -> tuple[Session, ...]:
        project = session.project_key or session.root_uri
        root = Root(project, project, RootSource.ARGUMENT) if project else None
        page = await browser.list(root, "active", (), OFFERED)
        return tuple(one for one in page.sessions if one.id != session.id)

    async def export(request: PageRequest) -> Download:
        try:
            form = Format(request.path["format"])
        except ValueError:
            raise NotFound(f"There is no format {request.path['format']}.") from None
        session = await browser.session(request.path["id"])
        if session.thought_count > EXPORTED:
            raise Conflict(
                f"This session has {session.thought_count} thoughts, too many to send at once.",
                recovery=f"Run `holdfast sessions export {session.id} --format {form.value}`.",
            )
        page = await browser.export(_caller(request), session.id, measure=lambda page: 0, room=1 << 40)
        ending, kind = KINDS[form]
        text = render(form, page)
        return Download(f"session-{session.id}.{ending}", text.encode("utf-8", "backslashreplace"), kind)

    async def rename(request: PageRequest) -> Done:
        await browser.rename(_caller(request), request.path["id"], request.field("title"))
        return Done("Renamed.")

    async def pin(request: PageRequest) -> Done:
        await browser.pin(_caller(request), request.path["id"])
        return Done("Pinned: agents of its project continue this session first.")

    async def unpin(request: PageRequest) -> Done:
        await browser.unpin(_caller(request), request.path["id"])
        return Done("No longer pinned: agents continue the session that was used last.")

    async def archive(request: PageRequest) -> Done:
        await browser.archive(_caller(request), request.path["id"])
        return Done("Archived: it can still be read and found, but agents no longer continue it automatically.")

    async def restore(request: PageRequest) -> Done:
        await browser.restore(request.path["id"])
        return Done("Restored from the archive.")

    async def link(request: PageRequest) -> Done:
        other = request.field("other").strip().rsplit("/", 1)[-1]
        ids = await browser.ids_beginning(other) if other else ()
        if not ids or (len(ids) > 1 and other not in ids):
            problem = "matches several sessions" if ids else "is no session's id"
            raise BadInput("other", problem, recovery="Copy the id from the other session's page.")
        linked = await browser.link(_caller(request), request.path["id"], other if other in ids else ids[0])
        return Done(f"Linked: each of the two sessions now shows the other ({linked.id}).")

    changes = {
        "rename": rename,
        "pin": pin,
        "unpin": unpin,
        "archive": archive,
        "restore": restore,
        "link": link,
    }
    return [
        Page("/sessions", show_list),
        Page("/sessions/{id}", show),
        Page("/sessions/{id}/export/{format}", export),
        *(Action(f"/sessions/{{id}}/{name}", act) for name, act in changes.items()),
    ]


async def nothing() -> None:
    """Stand for what is not asked for."""


def visible(session: Session) -> bool:
    """Return whether a session is shown in lists: deleted ones are only at the command line."""
    return session.status is not Status.DELETED


def _frame(session: Session) -> SessionFrame:
    badges = [*(["pinned"] if session.pinned else []), *(["archived"] if session.status is Status.ARCHIVED else [])]
    facts = [
        Fact("Thoughts", f"{session.thought_count:,}"),
        *([Fact("Branches", f"{session.branch_count:,}")] if session.branch_count else []),
        Fact("Started", at=session.created_at),
        Fact("Last used", at=session.updated_at),
        *([Fact("Tags", ", ".join(session.tags))] if session.tags else []),
        *([Fact("Domain", session.domain)] if session.domain else []),
        *([Fact("Damage", session.damage)] if session.damage else []),
        Fact("Id", session.id, code=True),
    ]
    return SessionFrame(
        "Reasoning",
        session.title,
        project_link(session.root_uri, session.project_key),
        tuple(badges),
        tuple(facts),
        subject=session.id,
    )


def _rest(thought: OpenThought | None) -> str | None:
    """Say which part of a long text is shown."""
    if thought is None or thought.piece.characters <= BLOCK:
        return None
    start = thought.piece.start
    end = min(start + BLOCK, thought.piece.characters)
    return f"Characters {start + 1:,} to {end:,} of {counted(thought.piece.characters, 'character')}"


def _number(text: str | None) -> int | None:
    return int(text) if text and _NUMBER.fullmatch(text) else None


def _caller(request: PageRequest) -> Caller:
    return Caller(Transport.HTTP, Era.MODERN, None, principal=request.who.key.name)
