"""Ledgers, brought up to date from the transcripts on this machine, and found by project."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agents import TranscriptsPart
from holdfast.agents.registry import transcripts_of
from holdfast.agents.transcript_position import Position
from holdfast.briefing.ledger import queries
from holdfast.briefing.ledger.git_watch import GitWatch
from holdfast.briefing.ledger.model import MAX_SUBAGENTS, Ledger, is_session_id
from holdfast.briefing.ledger.queries import Kept, TranscriptLocation
from holdfast.errors import BadInput
from holdfast.identity import forgotten_queries
from holdfast.identity.project import Root, canonical_uri
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx

if TYPE_CHECKING:
    from holdfast.agents.transcript_entries import Entry

LOOKED_AT = 4
"""Transcripts that are opened for each one that is wanted: a folder may belong to several projects."""


class Ledgers:
    """The ledgers of agent sessions."""

    def __init__(self, store: Store, machine: str, transcripts: TranscriptsPart | None = None) -> None:
        self._store = store
        self._transcripts = transcripts or transcripts_of()
        self._machine = machine
        self.git = GitWatch(store, machine)

    async def bring_up_to_date(self, session_id: str, transcript: Path, root: Root) -> Ledger | None:
        """Return the ledger with all that its transcript tells by now; None if there is neither ledger nor file."""
        if not is_session_id(session_id):
            return None
        read = self._store.read
        before, since = await read(lambda tx: (queries.find(tx, session_id), forgotten_queries.until(tx, root)))
        caught_up = await asyncio.to_thread(_caught_up, self._transcripts, session_id, transcript, before, since)
        if caught_up is None:
            return None if before is None else before.ledger
        if before is not None and not caught_up.changed:
            return before.ledger
        ledger, position = caught_up.ledger, caught_up.position
        based_on = Position() if before is None else before.position
        location = TranscriptLocation(root, self._machine, str(transcript).encode("utf-8", "replace").decode("utf-8"))

        def write(tx: Tx) -> bool:
            # The project may have been forgotten while its transcript was being read.
            return forgotten_queries.until(tx, root) == since and queries.keep(tx, ledger, position, based_on, location)

        if await self._store.write(write):
            return ledger
        return await self.of(session_id)

    async def of(self, session_id: str) -> Ledger | None:
        """Return the ledger of a session as it was last brought up to date."""
        if not is_session_id(session_id):
            return None
        kept = await self._store.read(lambda tx: queries.find(tx, session_id))
        return None if kept is None else kept.ledger

    async def discover(self, folder: Path, root: Root, limit: int = 5) -> list[str]:
        """Bring up to date the newest sessions in a folder of transcripts that no hook reported; returns their ids."""
        since = await self._store.read(lambda tx: forgotten_queries.until(tx, root))
        newest = await asyncio.to_thread(self._newest, folder, limit * LOOKED_AT, since)
        known = await self._store.read(lambda tx: queries.seen_by_hooks(tx, [path.stem for path in newest]))
        sessions: list[str] = []
        for path in newest:
            if len(sessions) == limit:
                break
            if path.stem in known or not await asyncio.to_thread(self._is_of, path, root):
                continue
            if await self.bring_up_to_date(path.stem, path, root) is not None:
                sessions.append(path.stem)
        return sessions

    def _newest(self, folder: Path, limit: int, since_ms: int) -> list[Path]:
        """Return the transcripts in a folder that were written to last, after a time."""
        newest = self._transcripts.newest(folder, is_session_id)
        return [path for changed, path in newest if changed // 1_000_000 > since_ms][:limit]

    def _is_of(self, path: Path, root: Root) -> bool:
        """Return whether a session began in this project: projects of different paths can share a folder."""
        cwd = self._transcripts.began_in(path)
        try:
            return cwd is not None and canonical_uri(cwd) == root.uri
        except BadInput:
            return False


@dataclass(frozen=True, slots=True)
class _CaughtUp:
    ledger: Ledger
    position: Position
    changed: bool


def _caught_up(
    transcripts: TranscriptsPart, session_id: str, transcript: Path, before: Kept | None, since_ms: int
) -> _CaughtUp | None:
    """Fold what is new, and not of a forgotten time, into the stored ledger; None if there is no file."""
    from holdfast.briefing.ledger.folding import fold

    ledger = Ledger(session_id) if before is None else before.ledger
    since = Position() if before is None else before.position

    def restart() -> None:
        nonlocal ledger
        ledger = Ledger(session_id, git_start=ledger.git_start, git_view=ledger.git_view)

    at = 0

    def remember(entry: Entry) -> None:
        nonlocal at
        if since_ms:
            at = entry.at or at
        if at > since_ms or not since_ms:
            fold(ledger, entry)

    for call in ledger.calls:
        call.kind = call.kind or transcripts.kind_of(call.tool)
    read = transcripts.follow(transcript, since, remember, restart=restart)
    if read is None:
        return None
    known = ledger.subagents
    ledger.subagents = transcripts.follow_subagents(transcript, known, remember, most=MAX_SUBAGENTS)
    changed = read.anew or read.position != since or ledger.subagents != known
    return _CaughtUp(ledger, read.position, changed)
