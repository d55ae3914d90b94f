"""Retention: pauses recording, archives old sessions, and permanently removes forgotten ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.identity.project import Root
from holdfast.reasoning import limits
from holdfast.reasoning.queries import projects, retention
from holdfast.reasoning.session_choice import missing
from holdfast.store import Store, Tx, calls

if TYPE_CHECKING:
    from holdfast.reasoning.results import Forgotten, Swept


class Retention:
    """Pauses recording, archives old sessions and removes deleted ones."""

    def __init__(self, store: Store, archive_after_ms: int) -> None:
        self._store = store
        self._archive_after_ms = archive_after_ms

    async def pause(self, root: Root) -> None:
        """Stop recording for this project until it is resumed."""
        await self._set_paused(root, "reasoning.recording_paused", paused=True)

    async def unpause(self, root: Root) -> None:
        await self._set_paused(root, "reasoning.recording_resumed", paused=False)

    async def _set_paused(self, root: Root, event: str, *, paused: bool) -> None:
        def write(tx: Tx) -> None:
            projects.set_paused(tx, root, tx.now() if paused else None)
            tx.emit(event, root.uri)

        await self._store.write(write)

    async def forget_session(self, session_id: str) -> Forgotten:
        """Remove a session and everything that mentions it."""
        limits.session_id(session_id)
        thoughts = await self._remove(session_id)
        if thoughts is None:
            raise missing(session_id)
        return await self._forgotten("session", 1, thoughts)

    async def forget_project(self, root: Root) -> Forgotten:
        """Remove a project's sessions, under every root it is known by, and the project itself."""
        sessions = thoughts = 0
        while ids := await self._store.read(lambda tx: retention.sessions_of_project(tx, root)):
            for session_id in ids:
                thoughts += await self._remove(session_id) or 0
                sessions += 1
        await self._store.write(lambda tx: retention.remove_project(tx, root))
        return await self._forgotten("project", sessions, thoughts)

    async def sweep(self) -> Swept:
        """Archive what lies untouched, remove what was deleted long ago, and drop old calls' results."""
        from holdfast.reasoning.results import Swept

        archived = purged = 0
        while some := await self._store.write(lambda tx: retention.archive_untouched(tx, self._archive_after_ms)):
            archived += some
        while ids := await self._store.read(retention.past_restoring):
            for session_id in ids:
                await self._remove(session_id)
            purged += len(ids)
        forgotten_calls = await self._store.write(calls.forget_old)
        return Swept(archived, purged, forgotten_calls)

    async def _remove(self, session_id: str) -> int | None:
        thoughts = await self._store.write(lambda tx: retention.condemn(tx, session_id))
        if thoughts is not None:
            while not await self._store.write(lambda tx: retention.remove_some(tx, session_id)):
                continue
        return thoughts

    async def _forgotten(self, subject: str, sessions: int, thoughts: int) -> Forgotten:
        from holdfast.reasoning.results import Forgotten

        counts = {"sessions": sessions, "thoughts": thoughts}
        await self._store.write(lambda tx: tx.emit("reasoning.forgotten", subject, counts))
        return Forgotten(sessions, thoughts)
