"""An agent's transcripts in an archive: gathered from files and mirror, and put where the agent looks for them here.

Lines travel as they are, the directory named in them included: Claude Code goes by the folder a transcript lies in and
by where it is started, and a line that is not changed is known again when the conversation comes back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from holdfast.archive.container import Archive
from holdfast.archive.errors import ArchiveRefused
from holdfast.archive.place import ProjectPlace
from holdfast.errors import BadInput
from holdfast.teams.agents.levelling import Line, lines_in, lines_of, merge
from holdfast.teams.agents.project_key import project_key
from holdfast.teams.agents.session_locks import canonical_session_id
from holdfast.teams.agents.transcript_files import TranscriptFiles
from holdfast.teams.agents.transcripts import MAIN, Entry
from holdfast.times import milliseconds

FOLDER = "transcripts/"
ENDING = ".jsonl"
LOOKED_AT = 256 * 1024
"""Characters of a transcript that are looked at for its directory."""

Transcript = Mapping[str, Sequence[Line]]
"""A conversation's lines, by subpath: its own, and those of its subagents."""


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
    return [path.stem for path in files if is_session(path.stem) and _belongs(path, place)]


def together(mirrored: Mapping[str, Sequence[Entry]], local: Transcript) -> dict[str, list[Line]]:
    """A conversation from its mirror in the store and its files; either may be ahead."""
    subpaths = sorted(mirrored.keys() | local.keys())
    return {subpath: merge(lines_of(mirrored.get(subpath, [])), local.get(subpath, [])) for subpath in subpaths}


def members(session_id: str, transcript: Transcript) -> Iterator[tuple[str, bytes]]:
    """The conversation as members of an archive."""
    for subpath, lines in transcript.items():
        inside = session_id if subpath == MAIN else f"{session_id}/{subpath}"
        text = "".join(f"{line.text}\n" for line in lines)
        yield f"{FOLDER}{inside}{ENDING}", text.encode("utf-8", "surrogateescape")


def archived(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """By session, the member of each subpath; every name has passed the archive's own check."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        if name.startswith(FOLDER):
            session_id, _, subpath = name.removeprefix(FOLDER).removesuffix(ENDING).partition("/")
            found.setdefault(canonical_session_id(session_id), {})[subpath or MAIN] = name
    return found


def read(subpaths: Mapping[str, str], content: Callable[[str], bytes]) -> dict[str, list[Line]]:
    """A conversation out of an archive."""
    return {subpath: lines_in(content(name).decode("utf-8", "surrogateescape")) for subpath, name in subpaths.items()}


def check(archive: Archive) -> None:
    """Refuse an archive with a transcript that cannot be read, before anything of it is written."""
    for session_id, subpaths in archived(archive.names).items():
        try:
            found = read(subpaths, archive.read)
        except RecursionError:
            found = {}
        if not found.get(MAIN):
            raise ArchiveRefused(
                f"The archive's transcript of session {session_id} cannot be read. Nothing was written.",
                recovery="Hand the project off again.",
            )


def relation(theirs: Transcript, ours: Transcript) -> Relation:
    """How the archive's conversation stands to the one here; only lines with an id count, the others are notes."""
    there, here = _identified(theirs), _identified(ours)
    if not ours.get(MAIN):
        return Relation.NEW
    if there == here[: len(there)]:
        return Relation.KNOWN
    return Relation.AHEAD if here == there[: len(here)] else Relation.FORKED


def put(files: TranscriptFiles, folder: str, session_id: str, theirs: Transcript, ours: Transcript) -> None:
    """Make a conversation from elsewhere the one in a project's folder; lines that only the file here has stay."""
    for subpath in sorted(theirs.keys() | ours.keys()):
        lines = merge(theirs.get(subpath, []), ours.get(subpath, []))
        files.write(folder, session_id, subpath, lines)
    # Claude Code goes by the time of the file when it looks for the latest conversation.
    last = max((_time(line) for line in theirs.get(MAIN, [])), default=0)
    if last:
        os.utime(files.main_file(folder, session_id), (last / 1000, last / 1000))


def _time(line: Line) -> int:
    try:
        return milliseconds(line.timestamp)
    except ValueError:
        return 0


def _identified(transcript: Transcript) -> list[str]:
    return [line.key for line in transcript.get(MAIN, []) if line.entry and isinstance(line.entry.get("uuid"), str)]


def is_session(name: str) -> bool:
    """Whether a name is a session's id as agents write it."""
    try:
        return canonical_session_id(name) == name
    except BadInput:
        return False


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
