"""Handing a project off as one file, and adopting it elsewhere."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from holdfast.agents.claude.open_elsewhere import opened_by
from holdfast.agents.claude.transcripts.files import TranscriptFiles
from holdfast.agents.claude.transcripts.store import TranscriptStore
from holdfast.agents.errors import SessionInUse
from holdfast.agents.session_locks import SessionLocks, is_canonical_session_id
from holdfast.bridge import held_messages
from holdfast.bridge.views import held_view
from holdfast.briefing.ledger.service import Ledgers
from holdfast.briefing.queries import agent_sessions as queries
from holdfast.briefing.queries.agent_sessions import AgentSession
from holdfast.connections.queries.connections import connected_agents
from holdfast.errors import BadInput
from holdfast.handoff import signing, transcripts
from holdfast.handoff.adopt import Here, merge_rows
from holdfast.handoff.container import MAX_MACHINE, Archive, Draft, opened
from holdfast.handoff.errors import ArchiveRefused, TranscriptTooLarge
from holdfast.handoff.local_project import ProjectPlace, project_place
from holdfast.handoff.queries import export
from holdfast.handoff.spools import Spool
from holdfast.handoff.staging import Staged
from holdfast.handoff.tables import MAX_ROW, TABLES, Carried, read, written
from holdfast.handoff.transcripts import Relation
from holdfast.handoff.validation import changed_thoughts, check, commands_of, with_changed
from holdfast.process.alive import is_running, mark_of
from holdfast.protocol.project.settings import read_project
from holdfast.store import Row, Store, Tx, leases
from holdfast.teams.config_fields import shown
from holdfast.teams.team import Team
from holdfast.times import iso
from holdfast.version import __version__

LOCK_SECONDS = 1.0
MADE_KNOWN = 5
"""How many of the latest conversations get a ledger, which is as many as a briefing looks at."""
MAX_ROWS = 1_000_000
UNREADABLE = (OSError, ValueError, TypeError)
"""What reading and writing an agent's own files may end in, besides success."""

Progress = Callable[[float, str], None]
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


def _tell_changed(rows: Staged) -> list[str]:
    """Mark sessions whose thoughts do not match their hashes: told, they can be adopted, and all else with them."""
    warnings = []
    for session in list(rows.rows("sessions")):
        if changed := changed_thoughts(rows.rows("thoughts", session_id=session["id"])):
            damage = with_changed(session["damage"], changed)
            rows.mark_damage(session["id"], damage)
            warnings.append(f"Reasoning session {session['id']} is damaged ({damage}): it goes along as it is.")
    return warnings


class Archives:
    """Writes and adopts archives of projects."""

    def __init__(self, store: Store, home: Path, machine: str, roster: Roster) -> None:
        self._store = store
        self._home = home
        self._machine = machine
        self._roster = roster
        self._locks = SessionLocks(home / "locks", LOCK_SECONDS)
        self._transcripts = TranscriptStore(store)
        self._ledgers = Ledgers(store, machine)

    # -- handoff ------------------------------------------------------------------------------------------------------

    async def handoff(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Write everything of a project into one file: `project`, `file`, `config`, `replace`."""
        target, config = _path(args, "file"), _path(args, "config")
        place = await asyncio.to_thread(project_place, str(args.get("project")), await self._roster())
        progress(0.0, "reading the store")
        with Staged() as rows:
            open_asks, now = await self._gather(place, rows)
            sessions = await self._sessions(config, place)
            warnings = await asyncio.to_thread(_tell_changed, rows)
            draft = await asyncio.to_thread(Draft, target, self._home, replace=bool(args.get("replace")))
            try:
                for name, table in TABLES.items():
                    await asyncio.to_thread(_add_rows, draft, table, rows.rows(name))
                left_out = 0
                for done, session_id in enumerate(sessions):
                    progress(done / len(sessions), f"transcript {session_id}")
                    try:
                        await self._add_transcript(draft, session_id, TranscriptFiles(config))
                    except (*UNREADABLE, TranscriptTooLarge) as error:
                        left_out += 1
                        warnings.append(f"Session {session_id} was left out: its transcript cannot be read ({error}).")
                counts = {name: rows.count(name) for name in TABLES}
                counts["transcripts"] = len(sessions) - left_out
                about = {
                    "created_at": iso(now),
                    "machine": shown(socket.gethostname(), MAX_MACHINE),
                    "project": {"root": place.root.uri, "key": place.root.key},
                }
                await asyncio.to_thread(draft.finish, {"holdfast": __version__, **about, "counts": counts})
            finally:
                await asyncio.to_thread(draft.discard)
            progress(1.0, "done")
            waiting = sum(rows.count("bridge_messages", status=status) for status in ("pending", "leased"))
            return {
                "file": str(target),
                "bytes": target.stat().st_size,
                "counts": counts,
                "signer": (await asyncio.to_thread(signing.own_signer, self._home)).fingerprint,
                "warnings": [*warnings, *_still_to_do(waiting, open_asks), *await self._live(sessions)],
            }

    async def _gather(self, place: ProjectPlace, rows: Staged) -> tuple[int, int]:
        """Read a project's rows on one snapshot: how many asks are on their way, and the time."""

        def read(tx: Tx) -> tuple[int, int]:
            export.gather(tx, place, rows)
            return export.open_asks(tx, place.teams), tx.now()

        found = await self._store.read(read)
        await asyncio.to_thread(rows.complete)
        if sum(rows.count(name) for name in TABLES) > MAX_ROWS:
            raise ArchiveRefused(f"The project has more than {MAX_ROWS} rows, more than an archive may hold.")
        return found

    async def _add_transcript(self, draft: Draft, session_id: str, files: TranscriptFiles) -> None:
        mirrored = await self._store.read(lambda tx: transcripts.mirrored(tx, session_id))
        try:
            await asyncio.to_thread(_add_transcript, draft, session_id, files, mirrored)
        finally:
            for spool in mirrored.values():
                spool.close()

    async def _sessions(self, config: Path, place: ProjectPlace) -> list[str]:
        """The agent's conversations in this project, by their files and their mirror."""
        files = await asyncio.to_thread(transcripts.on_disk, config, place)
        mirrored = await self._transcripts.list_sessions(place.folder)
        known = {row["session_id"] for row in mirrored}
        return sorted({*files, *(one for one in known if is_canonical_session_id(one))})

    async def _live(self, sessions: list[str]) -> list[str]:
        live = [session_id for session_id in sessions if await self._in_use(session_id)]
        return [
            f"Session {session_id} is in use by a live agent: what it does from now on is not in the archive."
            for session_id in live
        ]

    # -- adopt --------------------------------------------------------------------------------------------------------

    async def adopt(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Take over an archive: `file`, `project`, `config`; `signer` is one that the owner confirmed just now.

        Repeated, it changes nothing. One that nobody signed is taken only where the owner says `unsigned`.
        """
        source, config = _path(args, "file"), _path(args, "config")
        place = await asyncio.to_thread(project_place, str(args.get("project")), await self._roster())
        progress(0.0, "checking the archive")
        with await asyncio.to_thread(opened, source) as archive, Staged() as rows:
            self._require_signer(archive, args)
            await asyncio.to_thread(archive.check)
            await asyncio.to_thread(_stage, archive, rows)
            await asyncio.to_thread(transcripts.check, archive)
            if archive.signer is not None and not signing.is_known(self._home, archive.signer):
                now = await self._store.read(lambda tx: tx.now())
                await asyncio.to_thread(signing.remember, self._home, archive.signer, archive.machine, iso(now))
            commands = commands_of((await asyncio.to_thread(read_project, place.worktree.path)).protocol)
            outcome = await self._adopt_transcripts(archive, config, place, progress)
            here = Here(place, self._machine, outcome.files, commands, archive.origin)
            taken = await self._store.write(lambda tx: merge_rows(tx, rows, here))
            known = set(rows.values("ledgers", "session_id"))
        await self._make_known(outcome.files, known, place)
        progress(1.0, "done")
        return {
            "project": str(place.path),
            "added": dict(taken.added),
            "changed": dict(taken.changed),
            "held": dict(taken.held),
            "transcripts": dict(outcome.counts),
            "notes": taken.notes,
            "refused": outcome.refused,
            "resume": next(iter(await asyncio.to_thread(_latest, outcome.files)), None),
        }

    def _require_signer(self, archive: Archive, args: dict[str, Any]) -> None:
        """An archive is from somebody whom the owner knows, or the owner says so now."""
        command = f"holdfast adopt {quote(str(archive.path))} --project {quote(str(args.get('project')))}"
        if archive.signer is None:
            if args.get("unsigned") is not True:
                raise ArchiveRefused(
                    f"{archive.path} is not signed: anybody may have written or changed it. Nothing was written.",
                    recovery=f"Hand the project off again, or, if you are sure whose it is: `{command} --unsigned`.",
                )
            return
        name = archive.signer.fingerprint
        if args.get("signer") not in (None, name):
            raise ArchiveRefused(
                f"{archive.path} is signed by {name}, not by {shown(str(args['signer']))}. Nothing was written.",
                recovery="Compare it with what `holdfast handoff` printed there.",
            )
        if args.get("signer") is None and not signing.is_known(self._home, archive.signer):
            raise ArchiveRefused(
                f"{archive.path} is signed by {name}, whom this machine does not know (it says it is from"
                f" {archive.machine}). Nothing was written.",
                recovery=f"If that is what `holdfast handoff` printed there: `{command} --trust-signer {name}`.",
            )

    # -- what waits for the owner's word ------------------------------------------------------------------------------

    async def held(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """What came with archives and waits for the owner's word, of all targets or of `target`."""
        target = args.get("target")
        named = None if target is None else str(target)
        return held_view(await self._store.read(lambda tx: held_messages.held(tx, named)))

    async def release(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Let the messages `ids` of `target` go to its agent, or remove them where `drop` is true."""
        target, ids, drop = str(args.get("target")), list(map(str, args.get("ids", ()))), args.get("drop") is True
        await self._store.write(lambda tx: held_messages.decide(tx, target, ids, drop=drop))
        return {"target": target, "ids": ids, "dropped": drop}

    # -- transcripts --------------------------------------------------------------------------------------------------

    async def _adopt_transcripts(
        self, archive: Archive, config: Path, place: ProjectPlace, progress: Progress
    ) -> Outcome:
        outcome = Outcome(Counter(), {}, [])
        found = transcripts.archived(archive.names)
        for done, (session_id, subpaths) in enumerate(found.items()):
            progress(done / len(found), f"transcript {session_id}")
            try:
                async with self._locks.held(session_id):
                    what = await self._adopt_transcript(config, place, session_id, archive, subpaths)
            except SessionInUse as error:
                outcome.refused.append(f"{error} Its transcript was left as it is; close it and adopt again.")
                continue
            except (*UNREADABLE, TranscriptTooLarge) as error:
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
        self, config: Path, place: ProjectPlace, session_id: str, archive: Archive, subpaths: Mapping[str, str]
    ) -> Relation:
        files = TranscriptFiles(config)
        theirs = {subpath: partial(transcripts.read, archive, member) for subpath, member in subpaths.items()}
        found = await asyncio.to_thread(transcripts.compare, files, session_id, theirs)
        lies_here = await asyncio.to_thread(files.main_file(place.folder, session_id).exists)
        if found is Relation.FORKED or (found is Relation.KNOWN and lies_here):
            return found
        if found is not Relation.NEW and await self._in_use(session_id):
            raise SessionInUse(f"Session {session_id} is in use by a live agent.")
        await asyncio.to_thread(transcripts.put, files, place.folder, session_id, theirs)
        return found

    async def _make_known(self, files: Mapping[str, str], known: Collection[str], place: ProjectPlace) -> None:
        """A conversation that no hook ever told of has no ledger: its transcript tells what a briefing needs."""
        unknown = await asyncio.to_thread(_latest, {name: file for name, file in files.items() if name not in known})
        for session_id in unknown[:MADE_KNOWN]:
            await self._ledgers.bring_up_to_date(session_id, Path(files[session_id]), place.root)

    async def _in_use(self, session_id: str) -> bool:
        """Whether an agent is at work in the session, as far as it can be seen."""

        def seen(tx: Tx) -> tuple[bool, AgentSession | None]:
            known = queries.of(tx, session_id)
            vouched = known is not None and known.ended_at is None and not leases.expired(known.alive_until, tx.now())
            return vouched or session_id in connected_agents(tx), known

        vouched, known = await self._store.read(seen)
        if vouched or (known is not None and await asyncio.to_thread(self._runs, known)):
            return True
        return await asyncio.to_thread(opened_by, session_id) is not None

    def _runs(self, known: AgentSession) -> bool:
        """Whether the process that said it was in this session is still there."""
        if known.machine != self._machine or known.ended_at is not None or known.pid is None:
            return False
        return is_running(known.pid) and known.pid_mark in (None, mark_of(known.pid))


def _add_rows(draft: Draft, table: Carried, rows: Iterable[Row]) -> None:
    draft.add(table.member, written(rows))


def _add_transcript(draft: Draft, session_id: str, files: TranscriptFiles, mirrored: Mapping[str, Spool]) -> None:
    for _ in transcripts.gathered(files, session_id, mirrored):
        pass  # what cannot be read is left out whole, so all of it is read before the first part is added
    for name, spool in transcripts.gathered(files, session_id, mirrored):
        draft.add(name, spool.content())


def _stage(archive: Archive, rows: Staged) -> None:
    """The rows of an archive, each checked by itself and then all of them together."""
    left = MAX_ROWS
    for name, table in TABLES.items():
        if table.member not in archive.manifest["members"]:
            continue

        def counted(found: Iterable[Row]) -> Iterator[Row]:
            nonlocal left
            for row in found:
                left -= 1
                if left < 0:
                    raise ArchiveRefused(f"The archive holds more than {MAX_ROWS} rows. Nothing was written.")
                yield row

        rows.add(name, counted(read(table, archive.lines(table.member, MAX_ROW))))
    rows.complete()
    check(rows)


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
