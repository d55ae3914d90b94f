"""Forgets sessions and projects: previews, deletes from every table, and erases from every file."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import partial
from pathlib import Path

from holdfast.errors import Conflict, NotFound
from holdfast.files.in_time import ProjectTooSlow, in_time
from holdfast.forgetting import copies, queries, rows
from holdfast.forgetting.model import Counts, Preview, Removal, Scope
from holdfast.forgetting.scope import project_scope, suggestions
from holdfast.git.gate import open_again
from holdfast.identity.project import RootSource, locate, path_of
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

    async def preview(self, what: str) -> Preview:
        """Return what would be deleted."""
        scope = await self._scope(what)
        if (session := scope.session) is not None:
            thoughts = await self._store.read(lambda tx: queries.thought_count(tx, session))
            counts = Counts(sessions=1, thoughts=thoughts or 0)
        else:
            counts = await self._store.read(partial(queries.counts, scope=scope))
        files = await asyncio.to_thread(copies.found, self._home)
        roots = sorted(scope.paths) or sorted(scope.uris)
        return Preview(scope.what, tuple(roots), scope.teams, counts, tuple(files))

    async def forget(self, what: str, progress: Progress) -> Removal:
        """Delete a session, or a project under all of its roots."""
        async with self._turn:
            pending = await asyncio.to_thread(copies.read_note, self._note)
            if pending is not None:  # an interrupted removal; the request may be for the same one
                removal = await self._forget(pending, progress)
                if pending.what == what:
                    return removal
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
        teams = tuple(await self._projects())
        root = await asyncio.to_thread(locate, what, RootSource.ARGUMENT) if "/" in what else None

        def read(tx: Tx) -> tuple[Scope | None, list[str]]:
            if root is not None:
                scope = project_scope(tx, what, root, teams)
            else:
                scope = Scope(what, session=what) if queries.thought_count(tx, what) is not None else None
            return scope, [] if scope else suggestions(tx, what, teams)

        scope, similar = await self._store.read(read)
        if scope is None:
            kind = "project" if root is not None else "session"
            meant = f"Did you mean: {', '.join(similar)}?" if similar else "There is nothing with a similar name."
            raise NotFound(f"Nothing was removed: no {kind} {what} is known.", recovery=meant)
        return scope

    async def _require_no_running_ask(self, scope: Scope) -> None:
        for team in scope.teams:
            ask = await self._store.read(partial(team_queries.working, team=team))
            if ask is not None:
                raise Conflict(
                    f"Nothing was removed: an agent of the team {ask.to_team} is working on the ask {ask.id}.",
                    recovery='Wait for its answer, or cancel it: teams_session {operation: "cancel", askId}.',
                )

    async def _forget(self, scope: Scope, progress: Progress, *, again: bool = False) -> Removal:
        """Delete and erase everything in the scope. Every step can be repeated; the note is removed last.

        If it cannot be finished it is tried `again` from time to time; until then newer backups are left alone.
        """
        removed: Counter[str] = Counter()
        forgotten: list[Forgotten] = []
        for root in await self._store.read(partial(queries.run_roots, scope=scope)):
            # A gate in a worktree that cannot be reached opens by itself after a day.
            with contextlib.suppress(OSError, ProjectTooSlow):
                await in_time(open_again, path_of(root) or Path(root), self._home)
        async with overwriting(self._store):
            if scope.session is not None:
                with contextlib.suppress(NotFound):  # interrupted after the last row was deleted
                    forgotten.append(await self._reasoning.forget_session(scope.session))
            else:
                conversations = await self._store.read(partial(queries.conversations, scope=scope))
                await self._release(scope.teams, conversations)
                removed += await rows.remove(self._store, scope, lambda share, step: progress(0.3 * share, step))
                forgotten += [await self._reasoning.forget_project(root) for root in scope.roots]
        for one in forgotten:
            removed.update(sessions=one.sessions, thoughts=one.thoughts)
        leftovers = await erase_deleted(self._store, lambda share, step: progress(0.4 + 0.5 * share, step))
        progress(0.9, "copies and logs")
        files = [] if again and leftovers else await asyncio.to_thread(copies.remove, self._home)
        await asyncio.to_thread(copies.scrub_logs, self._home, scope)
        if not leftovers:
            await asyncio.to_thread(copies.remove_note, self._note)
        named = await asyncio.to_thread(copies.still_naming, self._home, scope)
        progress(1.0, "done")
        return Removal(scope.what, Counts(**removed), tuple(files), tuple(leftovers), tuple(named))
