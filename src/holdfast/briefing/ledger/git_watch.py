"""Queries git for sessions, one after another and in the background: no hook waits for it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from holdfast.briefing.ledger import queries
from holdfast.briefing.ledger.changed_files import changed_files
from holdfast.briefing.ledger.model import MAX_FILES, GitStart, Ledger
from holdfast.briefing.ledger.queries import TranscriptLocation
from holdfast.identity.project import Root, path_of
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx

MAX_WAITING = 64
ANSWERED_S = 0.2
"""Seconds to wait before git is started, so that the hook is answered first."""
RESTS = 50
"""A repository is left alone for this many times as long as looking at it took."""
UNANSWERED_S = 600.0
"""Seconds for which it is left alone if git did not answer."""
TOO_LATE_MS = 300_000
"""How long after a session's last entry a change is still taken for its work."""


@dataclass(frozen=True, slots=True)
class _Look:
    session_id: str
    root: Root
    at: int
    transcript: str | None
    """Set for a session that begins."""


class GitWatch:
    """A queue of git queries. If it is full, the query is dropped and the transcript decides."""

    def __init__(self, store: Store, machine: str) -> None:
        self._store = store
        self._machine = machine
        self._looks: asyncio.Queue[_Look] = asyncio.Queue(MAX_WAITING)
        self._rests: dict[str, float] = {}
        """Until when a session's repository is left alone, by the monotonic clock."""

    def begins(self, session_id: str, root: Root, transcript: str) -> None:
        """Look at git for a session that begins, or continues after others may have worked."""
        self._ask(_Look(session_id, root, _now(), transcript))

    def goes_on(self, ledger: Ledger, root: Root, *, urgent: bool) -> None:
        """Query git for a session that may have changed files; if not urgent, less often the longer it takes."""
        if not urgent and time.monotonic() < self._rests.get(ledger.session_id, 0.0):
            return
        seen = 0 if ledger.git_view is None else ledger.git_view.at
        # Its start may still be waiting in the queue.
        if seen <= ledger.last_at and _now() - ledger.last_at < TOO_LATE_MS:
            self._ask(_Look(ledger.session_id, root, _now(), None))

    async def run(self) -> None:
        """Handle the queued looks for as long as the daemon runs."""
        while True:
            look = await self._looks.get()
            await asyncio.sleep(ANSWERED_S)
            await self._take(look)

    async def finish(self) -> None:
        """Look at everything that is queued."""
        while not self._looks.empty():
            await self._take(self._looks.get_nowait())

    def _ask(self, look: _Look) -> None:
        if not self._looks.full():
            self._looks.put_nowait(look)

    async def _take(self, look: _Look) -> None:
        await (self._begun(look, look.transcript) if look.transcript is not None else self._seen(look))

    async def _begun(self, look: _Look, transcript: str) -> None:
        from holdfast.briefing.ledger.git_view import start_of

        project = path_of(look.root.uri)
        start = None if project is None else await start_of(project, look.at)
        if start is None:
            return
        location = TranscriptLocation(look.root, self._machine, transcript.encode("utf-8", "replace").decode("utf-8"))

        def begin(ledger: Ledger) -> None:
            # What git saw of an earlier part of the session stays.
            ledger.modified = changed_files(ledger)[0][-MAX_FILES:]
            ledger.git_start, ledger.git_view = start, None

        await self._store.write(lambda tx: queries.keep_git(tx, look.session_id, look.root, begin, location))

    async def _seen(self, look: _Look) -> None:
        from holdfast.briefing.ledger.git_view import view_of

        def read(tx: Tx) -> tuple[Ledger, GitStart, list[str]] | None:
            kept = queries.find(tx, look.session_id)
            if kept is None or kept.ledger.git_start is None:
                return None
            start = kept.ledger.git_start
            others = queries.roots_at_work(tx, self._machine, look.session_id, start.at, look.at)
            return kept.ledger, start, others

        found = await self._store.read(read)
        if found is None:
            return
        ledger, start, others = found
        began = time.monotonic()
        view = await view_of(start, ledger)
        ended = time.monotonic()
        self._rests = {name: until for name, until in self._rests.items() if until > ended}
        self._rests[look.session_id] = ended + (UNANSWERED_S if view is None else (ended - began) * RESTS)
        if view is None:
            return
        alone = not any(_is_in(root, start.top) for root in others)

        def see(stored: Ledger) -> None:
            if stored.git_start == start:
                stored.git_view = replace(view, alone=alone)

        await self._store.write(lambda tx: queries.keep_git(tx, look.session_id, look.root, see))


def _is_in(root: str, top: str) -> bool:
    path = path_of(root)
    return path is not None and (f"{path}/".startswith(f"{top}/") or f"{top}/".startswith(f"{path}/"))


def _now() -> int:
    return time.time_ns() // 1_000_000
