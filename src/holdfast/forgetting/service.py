"""Forgets sessions and projects: previews, deletes from every table, and erases from every file."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.errors import BadInput, Conflict, NotFound
from holdfast.forgetting import copies, rows
from holdfast.forgetting.model import Scope
from holdfast.forgetting.queries import rows as queries
from holdfast.forgetting.scope import project_scope, suggestions
from holdfast.identity.project import RootSource, locate
from holdfast.reasoning.results import Forgotten
from holdfast.reasoning.service import Reasoning
from holdfast.store import Store, Tx
from holdfast.store.copying import Progress, no_progress
from holdfast.store.erasing import erase_deleted, overwriting
from holdfast.teams.queries import conversations as team_queries

Projects = Callable[[], Awaitable[Iterable[tuple[str, Path]]]]
Release = Callable[[Collection[str], Collection[str]], Awaitable[None]]


class Forgetting:
    """Deletes a session, or a whole project, for good; one removal at a time."""

    def __init__(self, store: Store, home: Path, reasoning: Reasoning, projects: Projects, release: Release) -> None:
        """`projects` returns every team's directory; `release` ends the idle agent processes of these teams
        and deletes what their agents keep of these conversations."""
        self._store = store
        self._home = home
        self._note = copies.note_path(home, store.engine)
        self._reasoning = reasoning
        self._projects = projects
        self._release = release
        self._turn = asyncio.Lock()

    async def command(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Forget `what`; with `look`, only return what would be deleted."""
        what = args.get("what")
        if not isinstance(what, str) or not what:
            raise BadInput("what", "must be a session id or a project's path or URI")
        if args.get("look"):
            return await self._preview(await self._scope(what))
        async with self._turn:
            pending = await asyncio.to_thread(copies.read_note, self._note)
            if pending is not None:  # an interrupted removal; the request may be for the same one
                report = await self._forget(pending, progress)
                if pending.what == what:
                    return report
            scope = await self._scope(what)
            await self._require_no_running_ask(scope)
            await asyncio.to_thread(copies.write_note, self._note, scope)
            return await self._forget(scope, progress)

    async def finish(self) -> None:
        """Finish a removal that was interrupted, or could not be erased yet."""
        async with self._turn:
            pending = await asyncio.to_thread(copies.read_note, self._note)
            if pending is not None:
                await self._forget(pending, no_progress, again=True)

    async def _scope(self, what: str) -> Scope:
        teams = dict(await self._projects())
        root = await asyncio.to_thread(locate, what, RootSource.ARGUMENT) if "/" in what else None

        def read(tx: Tx) -> tuple[Scope | None, list[str]]:
            if root is not None:
                scope = project_scope(tx, what, root, teams)
            else:
                known = queries.session(tx, what)
                scope = Scope(what, session=what) if known else None
            return scope, [] if scope else suggestions(tx, what, teams)

        scope, similar = await self._store.read(read)
        if scope is None:
            kind = "project" if root is not None else "session"
            meant = f"Did you mean: {', '.join(similar)}?" if similar else "There is nothing with a similar name."
            raise NotFound(f"Nothing was removed: no {kind} {what} is known.", recovery=meant)
        return scope

    async def _preview(self, scope: Scope) -> dict[str, Any]:
        if scope.session is not None:
            session = scope.session
            row = await self._store.read(lambda tx: queries.session(tx, session)) or {"thought_count": 0}
            found = Counter(sessions=1, thoughts=int(row["thought_count"]))
        else:
            found = await self._store.read(partial(queries.found, scope=scope))
        files = await asyncio.to_thread(copies.found, self._home)
        return {
            "what": scope.what,
            "roots": sorted(scope.paths) or sorted(scope.uris),
            "teams": list(scope.teams),
            **found,
            "files": [str(path) for path in files],
        }

    async def _require_no_running_ask(self, scope: Scope) -> None:
        for team in scope.teams:
            ask = await self._store.read(partial(team_queries.working, team=team))
            if ask is not None:
                raise Conflict(
                    f"Nothing was removed: an agent of the team {ask.to_team} is working on the ask {ask.id}.",
                    recovery='Wait for its answer, or cancel it: teams_session {operation: "cancel", askId}.',
                )

    async def _forget(self, scope: Scope, progress: Progress, *, again: bool = False) -> dict[str, Any]:
        """Delete and erase everything in the scope. Every step can be repeated; the note is removed last.

        If it cannot be finished it is tried `again` from time to time; until then newer backups are left alone.
        """
        removed: Counter[str] = Counter()
        async with overwriting(self._store):
            if scope.session is not None:
                await self._forget_session(scope.session, removed)
            else:
                said = await self._store.read(partial(queries.conversations, scope=scope))
                await self._release(scope.teams, said)
                removed += await rows.remove(self._store, scope, lambda share, step: progress(0.3 * share, step))
                for root in scope.roots:
                    _count(removed, await self._reasoning.forget_project(root))
        left = await erase_deleted(self._store, lambda share, step: progress(0.4 + 0.5 * share, step))
        progress(0.9, "copies and logs")
        files = [] if again and left else await asyncio.to_thread(copies.remove, self._home)
        await asyncio.to_thread(copies.scrub_logs, self._home, scope)
        if not left:
            await asyncio.to_thread(copies.remove_note, self._note)
        named = await asyncio.to_thread(copies.still_naming, self._home, scope)
        progress(1.0, "done")
        return {
            "success": not left,
            "what": scope.what,
            **{name: removed[name] for name in REPORTED},
            "files": [str(path) for path in files],
            "left": left,
            "named_in": [str(path) for path in named],
        }

    async def _forget_session(self, session_id: str, removed: Counter[str]) -> None:
        try:
            _count(removed, await self._reasoning.forget_session(session_id))
        except NotFound:  # interrupted after the last row was deleted
            return


REPORTED = ("sessions", "thoughts", "runs", "messages", "asks", "agent_sessions", "history_files")


def _count(removed: Counter[str], forgotten: Forgotten) -> None:
    removed.update(sessions=forgotten.sessions, thoughts=forgotten.thoughts)
