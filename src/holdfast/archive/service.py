"""Handing a project off as one file, and adopting it elsewhere."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.archive import conversations, gathering
from holdfast.archive.checking import by, changed_thoughts, check, commands_of, with_changed
from holdfast.archive.container import Archive, Draft, opened
from holdfast.archive.conversations import Relation, Transcript
from holdfast.archive.merging import Here, merge_rows
from holdfast.archive.place import ProjectPlace, project_place
from holdfast.archive.tables import TABLES, Carried, read, written
from holdfast.briefing import incarnations
from holdfast.briefing.incarnations import AgentSession
from holdfast.briefing.ledger.service import Ledgers
from holdfast.errors import BadInput
from holdfast.processes import is_running, mark_of
from holdfast.protocol.project.settings import read_project
from holdfast.store import Row, Store, Tx
from holdfast.teams.agents.elsewhere import opened_by
from holdfast.teams.agents.errors import SessionInUse
from holdfast.teams.agents.session_locks import SessionLocks
from holdfast.teams.agents.transcript_files import TranscriptFiles
from holdfast.teams.agents.transcripts import MAIN, TranscriptStore
from holdfast.teams.team import Team
from holdfast.times import iso
from holdfast.version import __version__

LOCK_SECONDS = 1.0
MADE_KNOWN = 5
"""How many of the latest conversations get a ledger, which is as many as a briefing looks at."""
UNREADABLE = (OSError, ValueError, TypeError)
"""What reading and writing an agent's own files may end in, besides success."""

Progress = Callable[[float, str], None]
Command = Callable[[dict[str, Any], Progress], Awaitable[dict[str, Any]]]
Roster = Callable[[], Awaitable[Mapping[str, Team]]]
"""The teams as they are configured now."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the transcripts of an archive."""

    counts: Counter[str]
    files: dict[str, str]
    """Where each conversation lies here."""
    refused: list[str]
    """What was not taken over, and why."""


def _tell_changed(rows: dict[str, list[Row]]) -> list[str]:
    """Mark sessions whose thoughts do not match their hashes: told, they can be adopted, and all else with them."""
    warnings = []
    thoughts = by(rows["thoughts"], "session_id")
    for session in rows["sessions"]:
        if changed := changed_thoughts(thoughts.get(session["id"], [])):
            session["damage"] = with_changed(session["damage"], changed)
            warnings.append(
                f"Reasoning session {session['id']} is damaged ({session['damage']}): it goes along as it is."
            )
    return warnings


class Archives:
    """Writes and adopts archives of projects."""

    def __init__(self, store: Store, home: Path, machine: str, roster: Roster) -> None:
        self._store = store
        self._machine = machine
        self._roster = roster
        self._locks = SessionLocks(home / "locks", LOCK_SECONDS)
        self._transcripts = TranscriptStore(store)
        self._ledgers = Ledgers(store, machine)

    def commands(self) -> dict[str, Command]:
        """What the command line asks for."""
        return {"handoff": self.handoff, "adopt": self.adopt}

    # -- handoff ------------------------------------------------------------------------------------------------------

    async def handoff(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Write everything of a project into one file: `project`, `file`, `config`, `replace`."""
        target, config = _path(args, "file"), _path(args, "config")
        place = await asyncio.to_thread(project_place, str(args.get("project")), await self._roster())
        progress(0.0, "reading the store")
        rows, open_asks, now = await self._store.read(
            lambda tx: (gathering.gathered(tx, place), gathering.open_asks(tx, place.teams), tx.now())
        )
        sessions = await self._sessions(config, place)
        warnings = _tell_changed(rows)
        draft = await asyncio.to_thread(Draft, target, replace=bool(args.get("replace")))
        try:
            for name, table in TABLES.items():
                await asyncio.to_thread(_add_rows, draft, table, rows[name])
            left_out = 0
            for done, session_id in enumerate(sessions):
                progress(done / len(sessions), f"transcript {session_id}")
                try:
                    transcript = await self._transcript(config, session_id)
                except UNREADABLE as error:
                    left_out += 1
                    warnings.append(f"Session {session_id} was left out: its transcript cannot be read ({error}).")
                else:
                    await asyncio.to_thread(_add_transcript, draft, session_id, transcript)
            counts = {name: len(found) for name, found in rows.items()}
            counts["transcripts"] = len(sessions) - left_out
            about = {"created_at": iso(now), "project": {"root": place.root.uri, "key": place.root.key}}
            await asyncio.to_thread(draft.finish, {"holdfast": __version__, **about, "counts": counts})
        finally:
            await asyncio.to_thread(draft.discard)
        progress(1.0, "done")
        waiting = sum(row["status"] in ("pending", "leased") for row in rows["bridge_messages"])
        return {
            "file": str(target),
            "bytes": target.stat().st_size,
            "counts": counts,
            "warnings": [*warnings, *_still_to_do(waiting, open_asks), *await self._live(sessions)],
        }

    async def _sessions(self, config: Path, place: ProjectPlace) -> list[str]:
        """The agent's conversations in this project, by their files and their mirror."""
        files = await asyncio.to_thread(conversations.on_disk, config, place)
        mirrored = await self._transcripts.list_sessions(place.folder)
        known = {row["session_id"] for row in mirrored}
        return sorted({*files, *(one for one in known if conversations.is_session(one))})

    async def _transcript(self, config: Path, session_id: str) -> Transcript:
        mirrored = await self._transcripts.everywhere(session_id)
        local = await asyncio.to_thread(TranscriptFiles(config).read, session_id)
        return await asyncio.to_thread(conversations.together, mirrored, local)

    async def _live(self, sessions: list[str]) -> list[str]:
        live = [session_id for session_id in sessions if await self._in_use(session_id)]
        return [
            f"Session {session_id} is in use by a live agent: what it does from now on is not in the archive."
            for session_id in live
        ]

    # -- adopt --------------------------------------------------------------------------------------------------------

    async def adopt(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Take over an archive: `file`, `project`, `config`. Repeated, it changes nothing."""
        source, config = _path(args, "file"), _path(args, "config")
        place = await asyncio.to_thread(project_place, str(args.get("project")), await self._roster())
        progress(0.0, "checking the archive")
        with await asyncio.to_thread(opened, source) as archive:
            rows = await asyncio.to_thread(_checked_rows, archive)
            await asyncio.to_thread(conversations.check, archive)
            commands = commands_of((await asyncio.to_thread(read_project, place.worktree.path)).protocol)
            outcome = await self._adopt_transcripts(archive, config, place, progress)
            here = Here(place, self._machine, outcome.files, commands)
            taken = await self._store.write(lambda tx: merge_rows(tx, rows, here))
        await self._make_known(outcome.files, {row["session_id"] for row in rows["ledgers"]}, place)
        progress(1.0, "done")
        return {
            "project": str(place.path),
            "added": dict(taken.added),
            "changed": dict(taken.changed),
            "transcripts": dict(outcome.counts),
            "notes": taken.notes,
            "refused": outcome.refused,
            "resume": next(iter(await asyncio.to_thread(_latest, outcome.files)), None),
        }

    async def _adopt_transcripts(
        self, archive: Archive, config: Path, place: ProjectPlace, progress: Progress
    ) -> Outcome:
        outcome = Outcome(Counter(), {}, [])
        found = conversations.archived(archive.names)
        for done, (session_id, subpaths) in enumerate(found.items()):
            progress(done / len(found), f"transcript {session_id}")
            theirs = await asyncio.to_thread(conversations.read, subpaths, archive.read)
            try:
                async with self._locks.held(session_id):
                    what = await self._adopt_transcript(config, place, session_id, theirs)
            except SessionInUse as error:
                outcome.refused.append(f"{error} Its transcript was left as it is; close it and adopt again.")
                continue
            except UNREADABLE as error:
                outcome.refused.append(f"The transcript of session {session_id} could not be written here ({error}).")
                continue
            outcome.counts[what.value] += 1
            outcome.files[session_id] = str(TranscriptFiles(config).main_file(place.folder, session_id))
            if what is Relation.FORKED:
                outcome.refused.append(
                    f"Session {session_id} went on both here and there: the transcript here stays as it is."
                )
        return outcome

    async def _adopt_transcript(
        self, config: Path, place: ProjectPlace, session_id: str, theirs: Transcript
    ) -> Relation:
        files = TranscriptFiles(config)
        ours = await asyncio.to_thread(files.read, session_id)
        found = conversations.relation(theirs, ours)
        lies_here = await asyncio.to_thread(files.main_file(place.folder, session_id).exists)
        if found is Relation.FORKED or (found is Relation.KNOWN and lies_here):
            return found
        if ours.get(MAIN) and await self._in_use(session_id):
            raise SessionInUse(f"Session {session_id} is in use by a live agent.")
        await asyncio.to_thread(conversations.put, files, place.folder, session_id, theirs, ours)
        return found

    async def _make_known(self, files: Mapping[str, str], known: Collection[str], place: ProjectPlace) -> None:
        """A conversation that no hook ever told of has no ledger: its transcript tells what a briefing needs."""
        unknown = await asyncio.to_thread(_latest, {name: file for name, file in files.items() if name not in known})
        for session_id in unknown[:MADE_KNOWN]:
            await self._ledgers.bring_up_to_date(session_id, Path(files[session_id]), place.root)

    async def _in_use(self, session_id: str) -> bool:
        """Whether an agent is at work in the session, as far as it can be seen."""

        def seen(tx: Tx) -> tuple[bool, AgentSession | None]:
            known = incarnations.of(tx, session_id)
            vouched = known is not None and known.ended_at is None and (known.alive_until or 0) > tx.now()
            return vouched or session_id in incarnations.attached(tx), known

        vouched, known = await self._store.read(seen)
        if vouched or (known is not None and await asyncio.to_thread(self._runs, known)):
            return True
        return await asyncio.to_thread(opened_by, session_id) is not None

    def _runs(self, known: AgentSession) -> bool:
        """Whether the process that said it was in this session is still there."""
        if known.machine != self._machine or known.ended_at is not None or known.pid is None:
            return False
        return is_running(known.pid) and known.pid_mark in (None, mark_of(known.pid))


def _add_rows(draft: Draft, table: Carried, rows: list[Row]) -> None:
    draft.add(table.member, written(rows))


def _add_transcript(draft: Draft, session_id: str, transcript: Transcript) -> None:
    for name, content in conversations.members(session_id, transcript):
        draft.add(name, content)


def _checked_rows(archive: Archive) -> dict[str, list[Row]]:
    rows = {}
    for name, table in TABLES.items():
        rows[name] = read(table, archive.read(table.member)) if table.member in archive.names else []
    check(rows)
    return rows


def _still_to_do(waiting: int, open_asks: int) -> list[str]:
    told = []
    if waiting:
        told.append(f"{waiting} messages wait here and in the archive: whoever goes on first, do not let both work on.")
    if open_asks:
        told.append(f"{open_asks} asks of other teams are on their way; they stay here.")
    return told


def _latest(files: Mapping[str, str]) -> list[str]:
    """The conversations, the one that was last written to first."""
    found = [(Path(file).stat().st_mtime_ns, session_id) for session_id, file in files.items() if Path(file).exists()]
    return [session_id for _, session_id in sorted(found, reverse=True)]


def _path(args: dict[str, Any], name: str) -> Path:
    value = args.get(name)
    if not isinstance(value, str) or not Path(value).is_absolute():
        raise BadInput(name, "must be an absolute path")
    return Path(value)
