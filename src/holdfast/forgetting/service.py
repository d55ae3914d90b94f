"""Forgetting: what was named is looked up, shown, removed from every table, and erased from every file."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.errors import BadInput, Conflict, NotFound
from holdfast.forgetting import copies, rows
from holdfast.forgetting.scope import Scope, near, project_scope
from holdfast.project import RootSource, locate
from holdfast.reasoning.service import Reasoning
from holdfast.store import Store, Tx
from holdfast.store.copying import Progress, quiet
from holdfast.store.erasing import erase_deleted, overwriting
from holdfast.teams import queries as team_queries

Projects = Callable[[], Awaitable[Mapping[str, Path]]]
Release = Callable[[tuple[str, ...]], Awaitable[None]]


class Forgetting:
    """Removes a session, or everything of a project, for good; one at a time."""

    def __init__(self, store: Store, home: Path, reasoning: Reasoning, projects: Projects, release: Release) -> None:
        """`projects` tells where every team is at home; `release` ends the idle processes of these teams' agents."""
        self._store = store
        self._home = home
        self._note = copies.under_way(home, store.engine)
        self._reasoning = reasoning
        self._projects = projects
        self._release = release
        self._turn = asyncio.Lock()

    async def command(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Forget `what`; with `look`, only say what that would remove."""
        what = args.get("what")
        if not isinstance(what, str) or not what:
            raise BadInput("what", "must be a session id or a project's path or URI")
        if args.get("look"):
            return await self._look(await self._scope(what))
        async with self._turn:
            pending = await asyncio.to_thread(copies.noted, self._note)
            if pending is not None:  # it was cut off; what is asked for now may be just that
                report = await self._forget(pending, progress)
                if pending.what == what:
                    return report
            scope = await self._scope(what)
            await self._refuse_work(scope)
            await asyncio.to_thread(copies.note, self._note, scope)
            return await self._forget(scope, progress)

    async def finish(self) -> None:
        """Finish what was cut off, or could not be erased yet."""
        async with self._turn:
            pending = await asyncio.to_thread(copies.noted, self._note)
            if pending is not None:
                await self._forget(pending, quiet, again=True)

    async def _scope(self, what: str) -> Scope:
        teams = await self._projects()
        root = await asyncio.to_thread(locate, what, RootSource.ARGUMENT) if "/" in what else None

        def read(tx: Tx) -> tuple[Scope | None, list[str]]:
            if root is not None:
                scope = project_scope(tx, what, root, teams)
            else:
                known = tx.one("SELECT id FROM sessions WHERE id = :id", id=what)
                scope = Scope(what, session=what) if known else None
            return scope, [] if scope else near(tx, what, teams)

        scope, alike = await self._store.read(read)
        if scope is None:
            kind = "project" if root is not None else "session"
            meant = f"Did you mean: {', '.join(alike)}?" if alike else "Nothing here is named alike."
            raise NotFound(f"Nothing was removed: no {kind} {what} is known.", recovery=meant)
        return scope

    async def _look(self, scope: Scope) -> dict[str, Any]:
        if scope.session is not None:
            sql = "SELECT title, thought_count FROM sessions WHERE id = :id"
            row = await self._store.read(lambda tx: tx.one(sql, id=scope.session)) or {"title": "", "thought_count": 0}
            found = Counter(sessions=1, thoughts=int(row["thought_count"]))
        else:
            found = await self._store.read(partial(rows.found, scope=scope))
        files = await asyncio.to_thread(copies.found, self._home)
        return {
            "what": scope.what,
            "roots": sorted(scope.paths) or sorted(scope.uris),
            "teams": list(scope.teams),
            **found,
            "files": [str(path) for path in files],
        }

    async def _refuse_work(self, scope: Scope) -> None:
        for team in scope.teams:
            ask = await self._store.read(partial(team_queries.working, team=team))
            if ask is not None:
                raise Conflict(
                    f"Nothing was removed: an agent of the team {ask.to_team} works on the ask {ask.id}.",
                    recovery='Wait for its answer, or have it cancelled: teams_session {operation: "cancel", askId}.',
                )

    async def _forget(self, scope: Scope, progress: Progress, *, again: bool = False) -> dict[str, Any]:
        """Every step can be repeated; the note that was taken goes last.

        While it cannot be finished it is tried `again` from time to time; newer backups are left alone until it is.
        """
        removed: Counter[str] = Counter()
        async with overwriting(self._store):
            if scope.session is not None:
                await self._forget_session(scope.session, removed)
            else:
                await self._release(scope.teams)
                said = await self._store.read(partial(rows.conversations, scope=scope))
                await asyncio.to_thread(copies.remove_echoes, self._home, said)
                removed += await rows.remove(self._store, scope, lambda share, told: progress(0.3 * share, told))
                for root in scope.roots:
                    removed.update(_counts(await self._reasoning.forget_project(root)))
        left = await erase_deleted(self._store, lambda share, told: progress(0.4 + 0.5 * share, told))
        progress(0.9, "copies and logs")
        files = [] if again and left else await asyncio.to_thread(copies.remove, self._home)
        await asyncio.to_thread(copies.scrub_logs, self._home, scope)
        if not left:
            await asyncio.to_thread(copies.close_note, self._note)
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
            removed.update(_counts(await self._reasoning.forget_session(session_id)))
        except NotFound:  # it was cut off after the last row
            return


REPORTED = ("sessions", "thoughts", "runs", "messages", "asks", "agent_sessions", "history_files")


def _counts(reply: dict[str, Any]) -> dict[str, int]:
    return {name: int(reply[name]) for name in ("sessions", "thoughts")}
