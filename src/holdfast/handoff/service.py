"""Handing a project off as one file, and adopting it elsewhere."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import field
from functools import partial
from pathlib import Path
from shlex import quote

from holdfast.agents.errors import SessionInUse
from holdfast.agents.registry import transcripts_of
from holdfast.agents.session_locks import SessionLocks, canonical_session_id
from holdfast.agents.transcript_copies import MAIN, MAX_LINE, Parts, Relation, TranscriptCopies, TranscriptTooLarge
from holdfast.bridge import held_messages
from holdfast.bridge.held_messages import Held
from holdfast.briefing.ledger.service import Ledgers
from holdfast.briefing.queries import agent_sessions
from holdfast.briefing.queries.agent_sessions import AgentSession
from holdfast.connections.queries.connections import connected_agents
from holdfast.handoff import signing
from holdfast.handoff.adopt import Destination, merge_rows
from holdfast.handoff.container import MAX_MACHINE, Archive, Draft, open_archive
from holdfast.handoff.errors import ArchiveRefused
from holdfast.handoff.local_project import LocalProject, local_project
from holdfast.handoff.model import Adopted, Written
from holdfast.handoff.queries import export
from holdfast.handoff.staging import Staged
from holdfast.handoff.tables import MAX_ROW, TABLES, read, written
from holdfast.handoff.validation import changed_thoughts, check, commands_of, with_changed
from holdfast.lazy_dataclass import dataclass
from holdfast.process.alive import is_running, mark_of
from holdfast.protocol.project.settings import read_project
from holdfast.store import Row, Store, Tx, leases
from holdfast.teams.config_fields import shown
from holdfast.teams.team import Team
from holdfast.times import iso
from holdfast.version import __version__

LOCK_SECONDS = 1.0
BRIEFED_SESSIONS = 5
"""How many of the latest conversations get a ledger, which is as many as a briefing looks at."""
MAX_ROWS = 1_000_000
FOLDER, ENDING = "transcripts/", ".jsonl"
"""Name of a transcript's member in an archive."""
UNREADABLE = (OSError, ValueError, TypeError, TranscriptTooLarge)
"""Errors that reading and writing an agent's own files may raise."""

Progress = Callable[[float, str], None]
FindTeams = Callable[[], Awaitable[Iterable[Team]]]
"""Returns the teams as they are configured now."""


@dataclass(frozen=True, slots=True)
class _Transcripts:
    """Outcome for the transcripts of an archive."""

    counts: Counter[str] = field(default_factory=Counter)
    files: dict[str, str] = field(default_factory=dict)
    """The path of each conversation here."""
    refused: list[str] = field(default_factory=list)


class Handoff:
    """Writes and adopts archives of projects."""

    def __init__(self, store: Store, home: Path, machine: str, teams: FindTeams) -> None:
        self._store = store
        self._home = home
        self._machine = machine
        self._teams = teams
        self._locks = SessionLocks(home / "locks", LOCK_SECONDS)

    # -- handoff ------------------------------------------------------------------------------------------------------

    async def write(
        self, directory: str, target: Path, config: Path, progress: Progress, *, replace: bool = False
    ) -> Written:
        """Write everything of a project into one file; `config` is the agent's configuration directory."""
        project = await asyncio.to_thread(local_project, directory, await self._teams())
        progress(0.0, "reading the store")
        with Staged() as rows:
            open_asks, now = await self._gather(project, rows)
            copies = transcripts_of().copies(config, project.path)
            sessions = await copies.sessions(self._store)
            warnings = await asyncio.to_thread(_mark_changed, rows)
            draft = await asyncio.to_thread(Draft, target, self._home, replace=replace)
            try:
                for name, table in TABLES.items():
                    await asyncio.to_thread(draft.add, table.member, written(rows.rows(name)))
                left_out = 0
                for done, session_id in enumerate(sessions):
                    progress(done / len(sessions), f"transcript {session_id}")
                    try:
                        await copies.copy(self._store, session_id, partial(_add_part, draft, session_id))
                    except UNREADABLE as error:
                        left_out += 1
                        warnings.append(f"Session {session_id} was left out: its transcript cannot be read ({error}).")
                counts = Counter({name: rows.count(name) for name in TABLES})
                counts["transcripts"] = len(sessions) - left_out
                manifest = {
                    "holdfast": __version__,
                    "created_at": iso(now),
                    "machine": shown(socket.gethostname(), MAX_MACHINE),
                    "project": {"root": project.root.uri, "key": project.root.key},
                    "counts": counts,
                }
                await asyncio.to_thread(draft.finish, manifest)
            finally:
                await asyncio.to_thread(draft.discard)
            progress(1.0, "done")
            waiting = sum(rows.count("bridge_messages", status=status) for status in ("pending", "leased"))
        if waiting:
            warnings.append(
                f"{waiting} messages wait here and in the archive: continue on only one of the two machines."
            )
        if open_asks:
            warnings.append(f"{open_asks} asks of other teams are on their way; they stay here.")
        warnings += [
            f"Session {session_id} is in use by a live agent: what it does from now on is not in the archive."
            for session_id in sessions
            if await self._in_use(session_id)
        ]
        signer = await asyncio.to_thread(signing.own_signer, self._home)
        size = (await asyncio.to_thread(target.stat)).st_size
        return Written(target, size, counts, signer.fingerprint, warnings)

    async def _gather(self, project: LocalProject, rows: Staged) -> tuple[int, int]:
        """Read a project's rows on one snapshot; return how many asks are on their way, and the time."""

        def read(tx: Tx) -> tuple[int, int]:
            export.gather(tx, project, rows)
            return export.open_asks(tx, project.teams), tx.now()

        result = await self._store.read(read)
        await asyncio.to_thread(rows.complete)
        if sum(rows.count(name) for name in TABLES) > MAX_ROWS:
            raise ArchiveRefused(f"The project has more than {MAX_ROWS} rows, more than an archive may hold.")
        return result

    # -- adopt --------------------------------------------------------------------------------------------------------

    async def adopt(
        self,
        source: Path,
        directory: str,
        config: Path,
        progress: Progress,
        *,
        signer: str | None = None,
        unsigned: bool = False,
    ) -> Adopted:
        """Take over an archive; repeated, it changes nothing.

        `signer` is a fingerprint that the owner has just confirmed; an unsigned archive needs `unsigned`.
        """
        project = await asyncio.to_thread(local_project, directory, await self._teams())
        copies = transcripts_of().copies(config, project.path)
        progress(0.0, "checking the archive")
        with await asyncio.to_thread(open_archive, source) as archive, Staged() as rows:
            self._require_signer(archive, directory, signer, unsigned=unsigned)
            await asyncio.to_thread(archive.check)
            await asyncio.to_thread(_stage, archive, rows)
            conversations = _conversations(archive)
            await asyncio.to_thread(_check_transcripts, copies, conversations)
            if archive.signer is not None and not signing.is_known(self._home, archive.signer):
                now = await self._store.read(lambda tx: tx.now())
                await asyncio.to_thread(signing.remember, self._home, archive.signer, archive.machine, iso(now))
            commands = commands_of((await asyncio.to_thread(read_project, project.worktree.path)).protocol)
            outcome = await self._adopt_transcripts(copies, conversations, progress)
            here = Destination(project, self._machine, outcome.files.get, commands, archive.origin)
            taken = await self._store.write(lambda tx: merge_rows(tx, rows, here))
            known = set(rows.values("ledgers", "session_id"))
        latest = await asyncio.to_thread(_latest, outcome.files)
        # A conversation that no hook ever reported has no ledger: its transcript has what a briefing needs.
        ledgers = Ledgers(self._store, self._machine)
        for session_id in [one for one in latest if one not in known][:BRIEFED_SESSIONS]:
            await ledgers.bring_up_to_date(session_id, Path(outcome.files[session_id]), project.root)
        progress(1.0, "done")
        return Adopted(project.path, taken, outcome.counts, outcome.refused, latest[0] if latest else None)

    def _require_signer(self, archive: Archive, directory: str, signer: str | None, *, unsigned: bool) -> None:
        """Refuse an archive whose signer the owner neither knows nor has just confirmed."""
        command = f"holdfast adopt {quote(str(archive.path))} --project {quote(directory)}"
        if archive.signer is None:
            if not unsigned:
                raise ArchiveRefused(
                    f"{archive.path} is not signed: anybody may have written or changed it. Nothing was written.",
                    recovery=f"Hand the project off again, or, if you are sure whose it is: `{command} --unsigned`.",
                )
            return
        name = archive.signer.fingerprint
        if signer not in (None, name):
            raise ArchiveRefused(
                f"{archive.path} is signed by {name}, not by {shown(str(signer))}. Nothing was written.",
                recovery="Compare it with what `holdfast handoff` printed there.",
            )
        if signer is None and not signing.is_known(self._home, archive.signer):
            raise ArchiveRefused(
                f"{archive.path} is signed by {name}, whom this machine does not know (it says it is from"
                f" {archive.machine}). Nothing was written.",
                recovery=f"If that is what `holdfast handoff` printed there: `{command} --trust-signer {name}`.",
            )

    async def _adopt_transcripts(
        self, copies: TranscriptCopies, conversations: list[tuple[str, Parts]], progress: Progress
    ) -> _Transcripts:
        outcome = _Transcripts()
        for done, (session_id, parts) in enumerate(conversations):
            progress(done / len(conversations), f"transcript {session_id}")
            try:
                async with self._locks.held(session_id):
                    relation = await self._adopt_transcript(copies, session_id, parts)
            except SessionInUse as error:
                outcome.refused.append(f"{error} Its transcript was left as it is; close it and adopt again.")
                continue
            except UNREADABLE as error:
                outcome.refused.append(f"The transcript of session {session_id} could not be written here ({error}).")
                continue
            outcome.counts[relation.value] += 1
            outcome.files[session_id] = str(copies.file(session_id))
            if relation is Relation.FORKED:
                outcome.refused.append(
                    f"Session {session_id} was continued both here and there: the transcript here stays as it is."
                )
        return outcome

    async def _adopt_transcript(self, copies: TranscriptCopies, session_id: str, parts: Parts) -> Relation:
        relation = await asyncio.to_thread(copies.compare, session_id, parts)
        lies_here = await asyncio.to_thread(copies.file(session_id).exists)
        if relation is Relation.FORKED or (relation is Relation.KNOWN and lies_here):
            return relation
        if relation is not Relation.NEW and await self._in_use(session_id):
            raise SessionInUse(f"Session {session_id} is in use by a live agent.")
        await asyncio.to_thread(copies.put, session_id, parts)
        return relation

    async def _in_use(self, session_id: str) -> bool:
        """Return whether an agent is at work in the session, as far as it can be seen."""

        def seen(tx: Tx) -> tuple[bool, AgentSession | None]:
            known = agent_sessions.of(tx, session_id)
            vouched = known is not None and known.ended_at is None and not leases.expired(known.alive_until, tx.now())
            return vouched or session_id in connected_agents(tx), known

        vouched, known = await self._store.read(seen)
        if vouched or (known is not None and await asyncio.to_thread(self._runs, known)):
            return True
        return await asyncio.to_thread(transcripts_of().opened_by, session_id) is not None

    def _runs(self, known: AgentSession) -> bool:
        """Return whether the process that said it was in this session is still there."""
        if known.machine != self._machine or known.ended_at is not None or known.pid is None:
            return False
        return is_running(known.pid) and known.pid_mark in (None, mark_of(known.pid))

    # -- held messages ------------------------------------------------------------------------------------------------

    async def held(self, target: str | None) -> Held:
        """Return the messages that came with archives and are held, of all targets or of one."""
        return await self._store.read(lambda tx: held_messages.held(tx, target))

    async def release(self, target: str, ids: list[str], *, drop: bool) -> None:
        """Release held messages to their target's agent, or remove them."""
        await self._store.write(lambda tx: held_messages.decide(tx, target, ids, drop=drop))


def _mark_changed(rows: Staged) -> list[str]:
    """Mark sessions whose thoughts do not match their hashes: told, they can be adopted, and all else with them."""
    warnings = []
    for session in list(rows.rows("sessions")):
        if changed := changed_thoughts(rows.rows("thoughts", session_id=session["id"])):
            damage = with_changed(session["damage"], changed)
            rows.mark_damage(session["id"], damage)
            warnings.append(f"Reasoning session {session['id']} is damaged ({damage}): it goes along as it is.")
    return warnings


def _add_part(draft: Draft, session_id: str, part: str, lines: Iterable[bytes]) -> None:
    inside = session_id if part == MAIN else f"{session_id}/{part}"
    draft.add(f"{FOLDER}{inside}{ENDING}", lines)


def _conversations(archive: Archive) -> list[tuple[str, Parts]]:
    """Return the conversations in an archive; every name has passed the archive's own check."""
    found: dict[str, dict[str, Callable[[], Iterable[bytes]]]] = {}
    for name in archive.names:
        if name.startswith(FOLDER):
            session_id, _, part = name.removeprefix(FOLDER).removesuffix(ENDING).partition("/")
            lines = partial(archive.lines, name, MAX_LINE + 1)
            found.setdefault(canonical_session_id(session_id), {})[part or MAIN] = lines
    return list(found.items())


def _check_transcripts(copies: TranscriptCopies, conversations: list[tuple[str, Parts]]) -> None:
    """Refuse an archive with a transcript that cannot be read, before anything of it is written."""
    for session_id, parts in conversations:
        try:
            readable = copies.has_lines(parts)
        except TranscriptTooLarge as error:
            raise ArchiveRefused(error.message, recovery=error.recovery) from None
        if not readable:
            raise ArchiveRefused(
                f"The archive's transcript of session {session_id} cannot be read. Nothing was written.",
                recovery="Hand the project off again.",
            )


def _stage(archive: Archive, rows: Staged) -> None:
    """Read the rows of an archive, each checked by itself and then all of them together."""
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


def _latest(files: dict[str, str]) -> list[str]:
    """Return the conversations, the one that was last written to first."""
    by_time = [(Path(file).stat().st_mtime_ns, session_id) for session_id, file in files.items() if Path(file).exists()]
    return [session_id for _, session_id in sorted(by_time, reverse=True)]
