"""Claude Code's transcripts copied out of files and store, and put where it looks for them here.

Lines travel as they are, the directory named in them included: Claude Code goes by the folder a transcript lies in and
by where it is started, and a line that is not changed is known again when the conversation comes back.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from holdfast.agents.claude.transcripts import queries
from holdfast.agents.claude.transcripts.files import TranscriptFiles
from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.agents.claude.transcripts.merge import Line, lines_in, text_of
from holdfast.agents.claude.transcripts.queries import Entry
from holdfast.agents.claude.transcripts.spools import Spool
from holdfast.agents.session_locks import is_canonical_session_id
from holdfast.agents.transcript_copies import MAIN, Parts, Relation
from holdfast.store import Store, Tx
from holdfast.times import YEAR_10000, milliseconds

LOOKED_AT = 256 * 1024
"""Characters of a transcript that are searched for its directory."""


class ClaudeCopies:
    """Copies of one project's transcripts under one configuration directory."""

    def __init__(self, config: Path, project: Path) -> None:
        self._files = TranscriptFiles(config)
        self._project = project
        self._folder = project_key(project)

    async def sessions(self, store: Store) -> list[str]:
        """Return the ids of the project's sessions, by their files and by what the store has of them."""
        stored = await store.read(lambda tx: queries.sessions(tx, self._folder))
        here = await asyncio.to_thread(self._on_disk)
        return sorted({*here, *(row["session_id"] for row in stored if is_canonical_session_id(row["session_id"]))})

    def _on_disk(self) -> list[str]:
        """Return the sessions in the project's folder, without those of a project that shares it."""
        folder = self.file("x").parent
        files = [path for path in sorted(folder.glob("*.jsonl")) if path.is_file() and not path.is_symlink()]
        return [path.stem for path in files if is_canonical_session_id(path.stem) and self._belongs(path)]

    def _belongs(self, path: Path) -> bool:
        """Return whether a transcript is the project's own: paths that differ only in punctuation share a folder."""
        cwd = None
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in lines_in(file.read(LOOKED_AT)):
                cwd = cwd or (line.entry or {}).get("cwd")
        if not isinstance(cwd, str) or Path(cwd) == self._project:
            return True
        # A conversation from elsewhere that was put here names a directory whose folder is another one.
        return project_key(Path(cwd)) != self._folder

    async def copy(self, store: Store, session_id: str, add: Callable[[str, Iterable[bytes]], None]) -> None:
        """Hand the lines of each part to `add`; what cannot be read raises before the first part."""
        stored = await store.read(lambda tx: _stored(tx, session_id))
        try:
            await asyncio.to_thread(self._copy, session_id, stored, add)
        finally:
            for spool in stored.values():
                spool.close()

    def _copy(self, session_id: str, stored: Mapping[str, Spool], add: Callable[[str, Iterable[bytes]], None]) -> None:
        for _ in _gathered(self._files, session_id, stored):
            pass  # one unreadable part excludes the whole, so all of it is read first
        for subpath, spool in _gathered(self._files, session_id, stored):
            add(subpath, spool.content())

    def has_lines(self, parts: Parts) -> bool:
        """Return whether every part can be read, and the conversation itself has a line."""
        has_lines = False
        for subpath, lines in parts.items():
            with Spool.of(lines()) as found:
                has_lines |= subpath == MAIN and bool(found.lines)
        return has_lines

    def compare(self, session_id: str, parts: Parts) -> Relation:
        """Return how a conversation from elsewhere stands to the one here."""
        return compare(self._files, session_id, parts)

    def put(self, session_id: str, parts: Parts) -> None:
        """Make a conversation from elsewhere the one in the project."""
        put(self._files, self._folder, session_id, parts)

    def file(self, session_id: str) -> Path:
        """Return where Claude Code looks for a conversation of the project."""
        return self._files.main_file(self._folder, session_id)


def copy_moved(transcript: Path, before: Path, after: Path) -> Path | None:
    """Copy a transcript, with its accompanying files, to where Claude Code looks after the project was moved."""
    if transcript.parent.name != project_key(before):
        return None
    there = transcript.parent.parent / project_key(after) / transcript.name
    if transcript.is_file() and not there.exists():
        there.parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copy2(transcript, there)
        beside = transcript.with_suffix("")
        if beside.is_dir():
            shutil.copytree(beside, there.with_suffix(""), symlinks=True, dirs_exist_ok=True)
    return there if there.is_file() else None


def lines_from(entries: Iterable[Entry]) -> Iterator[bytes]:
    """Return entries of the store as the lines of a transcript."""
    return (text_of(entry).encode("utf-8", "surrogateescape") + b"\n" for entry in entries)


def _stored(tx: Tx, session_id: str) -> dict[str, Spool]:
    """Return a conversation by subpath, on one snapshot of the store; the caller closes them."""
    spools: dict[str, Spool] = {}
    try:
        for subpath in queries.subpaths(tx, session_id):
            spools[subpath] = Spool.of(lines_from(queries.entries(tx, session_id, subpath)))
    except BaseException:
        for spool in spools.values():
            spool.close()
        raise
    return spools


def _local(files: TranscriptFiles, session_id: str, subpath: str) -> Spool:
    """Return a conversation out of the files that lie here."""
    merged = Spool()
    for path in files.paths(session_id).get(subpath, []):
        with merged as before, Spool.of_file(path) as next_one:
            merged = before.merged(next_one)
    return merged


def _gathered(files: TranscriptFiles, session_id: str, stored: Mapping[str, Spool]) -> Iterator[tuple[str, Spool]]:
    """Return a conversation from the store and its files, by subpath; either may be ahead."""
    with Spool() as nothing:
        for subpath in sorted(stored.keys() | files.paths(session_id).keys()):
            with _local(files, session_id, subpath) as ours, stored.get(subpath, nothing).merged(ours) as whole:
                yield subpath, whole


def compare(files: TranscriptFiles, session_id: str, parts: Parts) -> Relation:
    """Compare a conversation from elsewhere with the one here. Only lines with an id count."""
    with Spool.of(parts[MAIN]()) as theirs, _local(files, session_id, MAIN) as ours:
        there, here = _identified(theirs), _identified(ours)
        if not ours.lines:
            return Relation.NEW
        if there == here[: len(there)]:
            return Relation.KNOWN
        return Relation.AHEAD if here == there[: len(here)] else Relation.FORKED


def put(files: TranscriptFiles, folder: str, session_id: str, parts: Parts) -> None:
    """Make a conversation from elsewhere the one in a project's folder; lines that only the file here has stay."""
    last = 0
    # The conversation itself comes last: without it, what a power cut left of the others counts for nothing.
    for subpath in sorted(parts.keys() | files.paths(session_id).keys(), key=lambda one: (one == MAIN, one)):
        with Spool.of(parts.get(subpath, tuple)()) as theirs, _local(files, session_id, subpath) as ours:
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
