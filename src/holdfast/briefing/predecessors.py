"""Which session was at work in a project before: the latest that is over and did something."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.briefing import incarnations
from holdfast.briefing.incarnations import AgentSession
from holdfast.briefing.ledger import queries as ledger_queries
from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.ledger.service import Ledgers
from holdfast.briefing.model import Item, Rank
from holdfast.processes import is_running, mark_of
from holdfast.project import Root
from holdfast.quoting import named
from holdfast.store import Store, Tx
from holdfast.times import iso

if TYPE_CHECKING:
    from holdfast.briefing.sharing import SharedTranscripts

OFFERED_MS = 30 * 24 * 3_600_000
"""How long ago a session may have been at work to be offered."""
LOOKED_AT = 10
"""How many of a project's latest sessions are looked at."""
CAUGHT_UP = 5
"""How many of them are read, for one that did something."""


@dataclass(frozen=True, slots=True)
class Predecessor:
    """The session that was at work here before."""

    ledger: Ledger
    seen: AgentSession | None
    """As its hooks told of it; None where only its transcript does."""
    resumable: bool
    """Whether the agent here finds its transcript."""

    @property
    def session_id(self) -> str:
        """Its id."""
        return self.ledger.session_id

    @property
    def cut_off(self) -> bool:
        """Whether it did not end in an orderly way."""
        return self.ledger.unfinished if self.seen is None else self.seen.ended_at is None

    def way_back(self) -> Item:
        """How it ended, and how the conversation itself is taken up again."""
        if self.seen is not None and self.seen.ended_at is not None:
            how = f"ended {iso(self.seen.ended_at)} ({_word(self.seen.end_reason)})"
        elif self.cut_off:
            how = f"was cut off; its last entry is of {iso(self.ledger.last_at)}"
        else:
            how = f"was last at work {iso(self.ledger.last_at)}"
        text = f"The last session, {named(self.session_id)}, {how}."
        if self.resumable:
            text += f" `claude --resume {named(self.session_id)}` continues it whole."
        else:
            text += " Its transcript is not on this machine."
        return Item("way back", Rank.WAY_BACK, text)


class Predecessors:
    """Looks for the session before. Every agent that starts waits for it: it goes to the store and to disk rarely."""

    def __init__(
        self,
        store: Store,
        machine: str,
        ledgers: Ledgers,
        is_connected: Callable[[str], bool],
        shared: SharedTranscripts | None,
    ) -> None:
        self._store = store
        self._machine = machine
        self._ledgers = ledgers
        self._is_connected = is_connected
        self._shared = shared

    async def find(
        self, root: Root, session_id: str | None, pid: int | None = None, folder: Path | None = None
    ) -> tuple[Predecessor | None, list[AgentSession]]:
        """The session before a caller's, whose process and folder of transcripts these are; and who is at work now."""

        def read(tx: Tx) -> tuple[int, list[AgentSession], set[str]]:
            known = incarnations.latest(tx, root, tx.now() - OFFERED_MS, LOOKED_AT)
            return tx.now(), [one for one in known if one.session_id != session_id], incarnations.attached(tx)

        now, others, attached = await self._store.read(read)
        live = [one for one in others if self._is_live(one, attached, pid, now)]
        await self._catch_up([one for one in others if one not in live], root)
        if folder is not None and not others:
            await self._ledgers.discover(folder, root)
        passed_over = {session_id, *(one.session_id for one in live)}

        def choose(tx: Tx) -> Predecessor | None:
            for ledger in ledger_queries.recent(tx, root, CAUGHT_UP):
                name = ledger.session_id
                over = name not in passed_over and not self._is_connected(name)
                if over and not ledger.is_empty and ledger.last_at >= now - OFFERED_MS:
                    seen = incarnations.of(tx, name)
                    return Predecessor(ledger, seen, self._has_transcript(name, seen, folder))
            return None

        chosen = await self._store.read(choose)
        if chosen is not None and not chosen.resumable and self._is_elsewhere(chosen.seen) and folder is not None:
            chosen = replace(chosen, resumable=await self._fetched(chosen.session_id, folder))
        return chosen, live

    async def _catch_up(self, over: Sequence[AgentSession], root: Root) -> None:
        """Read what the latest sessions wrote after they were read last."""
        here = [one for one in over if one.machine == self._machine and one.transcript is not None]
        here = [one for one in here if one.ended_at is None or one.read_to is None]
        for one in (await asyncio.to_thread(_grown, here))[:CAUGHT_UP]:
            await self._ledgers.bring_up_to_date(one.session_id, Path(str(one.transcript)), root)

    def _has_transcript(self, session_id: str, seen: AgentSession | None, folder: Path | None) -> bool:
        """Whether the agent here finds the session's transcript, as it is known here."""
        if seen is not None and not self._is_elsewhere(seen):
            return seen.transcript is not None and Path(seen.transcript).is_file()
        shared = seen is not None and self._shared is not None
        return not shared and folder is not None and (folder / f"{session_id}.jsonl").is_file()

    def _is_elsewhere(self, seen: AgentSession | None) -> bool:
        return seen is not None and seen.machine != self._machine

    async def _fetched(self, session_id: str, folder: Path) -> bool:
        """Whether a session of another machine could be put where the agent here finds it."""
        return self._shared is not None and await self._shared.fetch(session_id, folder)

    def _is_live(self, session: AgentSession, attached: Collection[str], pid: int | None, now: int) -> bool:
        """Whether a session is at work now: connected somewhere, or its process runs here."""
        if session.ended_at is not None:
            return False
        here = session.machine == self._machine
        if here and session.pid is not None and session.pid == pid:
            return False  # the same process has gone on to another session
        if self._is_connected(session.session_id):
            return True
        if here and session.pid is not None:  # its process says more than a connection that may not have noticed
            return runs_here(session)
        return session.session_id in attached or (session.alive_until or 0) > now


def runs_here(session: AgentSession) -> bool:
    """Whether the process that said it was in this session is still there, on this machine."""
    pid = session.pid
    return pid is not None and is_running(pid) and session.pid_mark in (None, mark_of(pid))


def _grown(sessions: Sequence[AgentSession]) -> list[AgentSession]:
    """Those whose transcript is longer, or shorter, than what was read of it."""
    return [one for one in sessions if _size(str(one.transcript)) not in (None, one.read_to)]


def _size(path: str) -> int | None:
    try:
        return Path(path).stat().st_size
    except OSError:
        return None


def _word(text: str | None) -> str:
    return "".join(char if char.isalnum() or char in "_-" else "?" for char in (text or "unknown")[:40])
