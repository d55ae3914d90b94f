"""Notices agents that work without their hook, so that missing briefings do not go unnoticed.

A session that began after setup and of which no hook told is one; so is a hook whose launcher found no Holdfast.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.agents import TranscriptsPart
from holdfast.agents.hook_events import HookAnswer, HookEvent, HookKind
from holdfast.agents.registry import AGENTS
from holdfast.agents.transcript_entries import TranscriptFile
from holdfast.briefing.queries.unhooked import accounted_for
from holdfast.errors import HoldfastError
from holdfast.identity import forgotten_queries
from holdfast.identity.project import Root, RootSource, locate
from holdfast.lazy_dataclass import dataclass
from holdfast.reasoning.queries import projects as project_queries
from holdfast.relay import place
from holdfast.store import Store, Tx
from holdfast.text.quoting import in_quotes
from holdfast.times import iso

MAX_FILES = 50
"""Transcripts that are looked at, the newest first."""
MAX_FOUND = 5
MAX_PATH_CHARS = 200
TOLD = "unhooked-told"
"""File whose time says up to when users were told."""


@dataclass(frozen=True, slots=True)
class UnhookedSession:
    """A session that worked without its hook."""

    session_id: str
    agent: str
    directory: str
    at: int
    """When it last did something, in milliseconds."""


class Unhooked:
    """Looks for such sessions on this machine, and tells users of them once."""

    def __init__(self, store: Store, home: Path) -> None:
        self._store = store
        self._home = home
        self._missed = Path(place.missed_hook(str(home)))
        self._found: tuple[UnhookedSession, ...] = ()

    async def look(self) -> None:
        """Look for sessions that began since setup and of which no hook told."""
        from holdfast.setup.originals import last_setup  # not needed before the first hook is answered

        candidates = await asyncio.to_thread(lambda: list(_candidates(last_setup(self._home))))

        def read(tx: Tx) -> list[UnhookedSession]:
            known = accounted_for(tx, [one.session_id for one, _ in candidates])
            return [one for one, root in candidates if one.session_id not in known and _is_wanted(tx, one, root)]

        self._found = tuple((await self._store.read(read))[:MAX_FOUND]) if candidates else ()

    def lines(self, since: int = 0) -> list[str]:
        """Return what users should know of what happened since a time."""
        lines = [
            f"{one.agent} worked in {in_quotes(one.directory, MAX_PATH_CHARS)} until {iso(one.at)} without its hooks,"
            " so it got no briefing. `holdfast doctor` checks them."
            for one in self._found
            if one.at > since
        ]
        missed = _changed(self._missed)
        if missed is not None:
            lines.append(
                f"An agent's hook found no Holdfast at {iso(missed)}, so it got no briefing."
                " If this happens again, run `holdfast setup` for that agent."
            )
        return lines

    async def notice(self, event: HookEvent) -> HookAnswer | None:
        """Return a line for the user of an agent that starts, once."""
        if event.kind is not HookKind.STARTED or event.is_managed or event.is_subagent:
            return None
        if not self._found and not self._missed.exists():  # the usual case, without a change of threads
            return None
        return await asyncio.to_thread(self._told_once)

    def _told_once(self) -> HookAnswer | None:
        told = self._home / TOLD
        lines = self.lines(_changed(told) or 0)
        if not lines:
            return None
        try:
            self._missed.unlink(missing_ok=True)
            told.touch(mode=0o600)
        except OSError:
            return None  # it would be told at every start; `status` and doctor still do
        more = f" ({len(lines) - 1} more: `holdfast status`)" if len(lines) > 1 else ""
        return HookAnswer(notice=f"Holdfast: {lines[0]}{more}")


def _candidates(since: int | None) -> Iterator[tuple[UnhookedSession, Root | None]]:
    """Yield sessions that began after a time, in milliseconds, the newest first; none if nothing was ever set up."""
    for agent in AGENTS.values():
        if since is None or agent.transcripts is None or agent.hooks is None or agent.settings is None:
            continue
        files = agent.transcripts.found(agent.settings().config_directory(os.environ))
        mains = [one for one in files if one.path.stem == one.session_id and one.modified * 1000 > since]
        for file in mains[:MAX_FILES]:
            if _began(agent.transcripts, file) > since:
                directory = agent.transcripts.directory_of(file, {})
                at = int(file.modified * 1000)
                yield UnhookedSession(file.session_id, agent.title, directory, at), _root(directory)


def _began(transcripts: TranscriptsPart, file: TranscriptFile) -> int:
    """Return when a conversation began; 0 if its beginning does not say."""
    batch = next(iter(transcripts.batches(file.path, 0)), None)
    return next((said.at for said in batch.spoken if said.at), 0) if batch is not None else 0


def _root(directory: str) -> Root | None:
    try:
        return locate(directory, RootSource.DIRECTORY) if directory.startswith("/") else None
    except HoldfastError:
        return None


def _is_wanted(tx: Tx, one: UnhookedSession, root: Root | None) -> bool:
    """Return whether users want to hear of it: not of a project that is forgotten or paused."""
    if root is None:
        return True
    return one.at > forgotten_queries.until(tx, root) and not project_queries.is_paused(tx, root, None)


def _changed(path: Path) -> int | None:
    try:
        return int(path.lstat().st_mtime * 1000)
    except OSError:
        return None
