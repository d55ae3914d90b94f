"""What `holdfast sessions` and `holdfast pause` ask for: sessions as a person reads them, without secrets."""

from __future__ import annotations

from functools import partial
from typing import Any

from holdfast.capability import Command, Progress
from holdfast.errors import BadInput, NotFound
from holdfast.files.in_time import in_time
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.identity.project import Root, RootSource, locate
from holdfast.identity.root_argument import root_argument
from holdfast.reasoning import limits
from holdfast.reasoning.export import Format, export_view
from holdfast.reasoning.model import Session
from holdfast.reasoning.reading import OUTLINE_LIMIT
from holdfast.reasoning.service import Reasoning
from holdfast.reasoning.session_browser import LIST_LIMIT, SessionBrowser, cursor_after
from holdfast.reasoning.views import outline_view, piece_view, search_view, session_view, surroundings_view
from holdfast.text.masking import mask_for_async

PERSON = Caller(Transport.RELAY, Era.LEGACY, None)
"""The caller at a terminal: not an agent, and in no session."""
ALL = "`holdfast sessions list --all --status all` lists all of them."
EVERYTHING = 1 << 40
"""Room for a whole session on one page."""


def commands(reasoning: Reasoning) -> list[Command]:
    return [
        Command("pause", partial(_pause, reasoning, True)),
        Command("unpause", partial(_pause, reasoning, False)),
        *SessionCommands(reasoning.browser).commands(),
    ]


async def _pause(reasoning: Reasoning, paused: bool, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
    root = await root_argument(args.get("project"))
    await (reasoning.pause(root) if paused else reasoning.unpause(root))
    return {"project": root.uri, "paused": paused}


class SessionCommands:
    def __init__(self, browser: SessionBrowser) -> None:
        self._browser = browser

    def commands(self) -> list[Command]:
        return [
            Command("sessions-list", self._list),
            Command("sessions-show", self._show),
            Command("sessions-search", self._search),
            Command("sessions-export", self._export),
        ]

    async def _list(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = await _root(args)
        wanted = limits.page_size(args.get("limit"), LIST_LIMIT, 10_000)
        sessions: list[Session] = []
        more = True
        while more and len(sessions) < wanted:
            cursor = cursor_after(sessions[-1]) if sessions else None
            limit = min(LIST_LIMIT, wanted - len(sessions))
            page = await self._browser.list(root, args.get("status"), (), limit, cursor)
            sessions += page.sessions
            more = page.more
        return await _masked_reply({"sessions": [session_view(session) for session in sessions], "more": more})

    async def _search(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root, query = await _root(args), str(args.get("query", ""))
        hits = await self._browser.search(root, query, everywhere=root is None, limit=args.get("limit"))
        return await _masked_reply(search_view(hits))

    async def _show(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Show a session with the beginning of every thought, or with `text` every thought in full."""
        chosen = await self._chosen(args)
        if args.get("text"):
            whole = await self._browser.export(PERSON, chosen, measure=lambda page: 0, room=EVERYTHING)
            entries = [piece_view(piece) for piece in whole.pieces]
            return await _masked_reply({"session": session_view(whole.session), "thoughts": entries, "links": []})
        entries, after = [], 0
        while True:
            page = await self._browser.outline(PERSON, chosen, OUTLINE_LIMIT, str(after))
            for thought in page.thoughts:
                entry = outline_view(thought)
                entries.append(entry | {"thought": entry.pop("begins")})
                after = thought.number
            progress(0.0, f"{len(entries)} thoughts")
            if not page.thoughts or after >= page.last_number:
                links = surroundings_view(page.surroundings).get("links", [])
                return await _masked_reply({"session": session_view(page.session), "thoughts": entries, "links": links})

    async def _export(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        form = Format(args.get("format") or "markdown")
        page = await self._browser.export(PERSON, await self._chosen(args), measure=lambda page: 0, room=EVERYTHING)
        return export_view(page, form)

    async def _chosen(self, args: dict[str, Any]) -> str:
        """Find the session whose id begins as given; without one, the project's most recent."""
        prefix = args.get("session")
        if prefix is None:
            root = await _root(args)
            newest = await self._browser.list(root, limit=1)
            if not newest.sessions:
                raise NotFound("There are no sessions of this project.", recovery=ALL)
            return newest.sessions[0].id
        ids = await self._browser.ids_beginning(limits.session_id(prefix))
        if not ids:
            raise NotFound(f"Session {prefix} not found.", recovery=ALL)
        if len(ids) > 1 and prefix not in ids:
            raise BadInput("ID", f"{prefix} matches several sessions", recovery="Give more of it.")
        return prefix if prefix in ids else ids[0]


async def _masked_reply(reply: dict[str, Any]) -> dict[str, Any]:
    masked: dict[str, Any] = await mask_for_async(reply, None)
    return masked


async def _root(args: dict[str, Any]) -> Root | None:
    project = args.get("project")
    return None if project is None else await in_time(locate, str(project), RootSource.ARGUMENT)
