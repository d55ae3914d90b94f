"""An agent's transcripts in an archive: gathered from files and mirror, and put where the agent looks for them here.

Lines travel as they are, the directory named in them included: Claude Code goes by the folder a transcript lies in and
by where it is started, and a line that is not changed is known again when the conversation comes back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from holdfast.agents.claude.transcripts import queries as transcript_queries
from holdfast.agents.claude.transcripts.files import TranscriptFiles
from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.agents.claude.transcripts.merge import Line, lines_in, lines_of, merge, text_of
from holdfast.agents.claude.transcripts.queries import MAIN, Entry
from holdfast.agents.session_locks import canonical_session_id, is_canonical_session_id
from holdfast.handoff.container import Archive
from holdfast.handoff.errors import ArchiveRefused
from holdfast.handoff.local_project import ProjectPlace
from holdfast.handoff.spools import MAX_LINE, Spool
from holdfast.handoff.tables import YEAR_10000
from holdfast.store import Tx
from holdfast.times import milliseconds

FOLDER = "transcripts/"
ENDING = ".jsonl"
LOOKED_AT = 256 * 1024
"""Characters of a transcript that are looked at for its directory."""

Elsewhere = Mapping[str, Callable[[], Spool]]
"""A conversation from an archive or a mirror, by subpath: its own, and those of its subagents."""


class Relation(StrEnum):
    """How a transcript in an archive stands to the one here."""

    NEW = "new"
    """There is none here."""
    AHEAD = "ahead"
    """It goes on from the one here."""
    KNOWN = "known"
    """The one here is as long or longer."""
    FORKED = "forked"
    """Both went on differently."""


def on_disk(config: Path, place: ProjectPlace) -> list[str]:
    """The sessions whose transcripts lie in the project's folder, without those of a project that shares it."""
    folder = config / "projects" / place.folder
    files = [path for path in sorted(folder.glob("*.jsonl")) if path.is_file() and not path.is_symlink()]
    return [path.stem for path in files if is_canonical_session_id(path.stem) and _belongs(path, place)]


def together(mirrored: Mapping[str, Sequence[Entry]], here: Mapping[str, Sequence[Line]]) -> dict[str, list[Line]]:
    """A conversation from its mirror in the store and its files, for the mirror; either may be ahead."""
    subpaths = sorted(mirrored.keys() | here.keys())
    return {subpath: merge(lines_of(mirrored.get(subpath, [])), here.get(subpath, [])) for subpath in subpaths}


def mirror(entries: Iterable[Entry]) -> Spool:
    """A conversation out of its mirror in the store."""
    return Spool.of(text_of(entry).encode("utf-8", "surrogateescape") + b"\n" for entry in entries)


def mirrored(tx: Tx, session_id: str) -> dict[str, Spool]:
    """A conversation by subpath, out of its mirror in the store and on one snapshot of it; whoever asks closes them."""
    found: dict[str, Spool] = {}
    try:
        for subpath in transcript_queries.subpaths(tx, session_id):
            found[subpath] = mirror(transcript_queries.entries(tx, session_id, subpath))
    except BaseException:
        for spool in found.values():
            spool.close()
        raise
    return found


def local(files: TranscriptFiles, session_id: str, subpath: str) -> Spool:
    """A conversation out of the files that lie here."""
    found = Spool()
    for path in files.paths(session_id).get(subpath, []):
        with found as before, Spool.of_file(path) as next_one:
            found = before.merged(next_one)
    return found


def gathered(files: TranscriptFiles, session_id: str, told: Mapping[str, Spool]) -> Iterator[tuple[str, Spool]]:
    """A conversation from its mirror in the store and its files, by member of an archive; either may be ahead."""
    with Spool() as nothing:
        for subpath in sorted(told.keys() | files.paths(session_id).keys()):
            inside = session_id if subpath == MAIN else f"{session_id}/{subpath}"
            with local(files, session_id, subpath) as ours, told.get(subpath, nothing).merged(ours) as whole:
                yield f"{FOLDER}{inside}{ENDING}", whole


def archived(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """By session, the member of each subpath; every name has passed the archive's own check."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        if name.startswith(FOLDER):
            session_id, _, subpath = name.removeprefix(FOLDER).removesuffix(ENDING).partition("/")
            found.setdefault(canonical_session_id(session_id), {})[subpath or MAIN] = name
    return found


def read(archive: Archive, member: str) -> Spool:
    """A conversation out of an archive."""
    return Spool.of(archive.lines(member, MAX_LINE + 1))


def check(archive: Archive) -> None:
    """Refuse an archive with a transcript that cannot be read, before anything of it is written."""
    for session_id, subpaths in archived(archive.names).items():
        if MAIN not in subpaths:
            raise _unreadable(session_id)
        for subpath, member in subpaths.items():
            with read(archive, member) as found:
                if subpath == MAIN and not found.lines:
                    raise _unreadable(session_id)


def _unreadable(session_id: str) -> ArchiveRefused:
    return ArchiveRefused(
        f"The archive's transcript of session {session_id} cannot be read. Nothing was written.",
        recovery="Hand the project off again.",
    )


def compare(files: TranscriptFiles, session_id: str, elsewhere: Elsewhere) -> Relation:
    """How a conversation from elsewhere stands to the one here; only lines with an id count, the others are notes."""
    with elsewhere[MAIN]() as theirs, local(files, session_id, MAIN) as ours:
        there, here = _identified(theirs), _identified(ours)
        if not ours.lines:
            return Relation.NEW
        if there == here[: len(there)]:
            return Relation.KNOWN
        return Relation.AHEAD if here == there[: len(here)] else Relation.FORKED


def put(files: TranscriptFiles, folder: str, session_id: str, elsewhere: Elsewhere) -> None:
    """Make a conversation from elsewhere the one in a project's folder; lines that only the file here has stay."""
    last = 0
    # The conversation itself comes last: without it, what a power cut left of the others counts for nothing.
    for subpath in sorted(elsewhere.keys() | files.paths(session_id).keys(), key=lambda one: (one == MAIN, one)):
        with elsewhere.get(subpath, Spool)() as theirs, local(files, session_id, subpath) as ours:
            if subpath == MAIN:
                last = max((_time(line) for line in theirs.lines), default=0)
            with theirs.merged(ours) as whole:
                whole.write(files.file_of(folder, session_id, subpath))
    # Claude Code goes by the time of the file when it looks for the latest conversation.
    if 0 < last < YEAR_10000:
        os.utime(files.main_file(folder, session_id), (last / 1000, last / 1000))


def _time(line: Line) -> int:
    try:
        return milliseconds(line.timestamp)
    except ValueError:
        return 0


def _identified(spool: Spool) -> list[str]:
    return [line.key for line in spool.lines if line.entry and "uuid" in line.entry]


def _belongs(path: Path, place: ProjectPlace) -> bool:
    """Whether a transcript is the project's own: paths that differ in punctuation alone share a folder."""
    said = None
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in lines_in(file.read(LOOKED_AT)):
            said = said or (line.entry or {}).get("cwd")
    if not isinstance(said, str) or Path(said) == place.path:
        return True
    # A conversation from elsewhere that was put here names a directory whose folder is another one.
    return project_key(Path(said)) != place.folder
