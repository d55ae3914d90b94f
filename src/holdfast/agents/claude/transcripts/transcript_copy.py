"""The copy of a transcript in the store: filled while its agent works, merged with its file before it resumes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.agents.claude.open_elsewhere import opened_by
from holdfast.agents.claude.transcripts import queries
from holdfast.agents.claude.transcripts.files import TranscriptFiles
from holdfast.agents.claude.transcripts.merge import Line, lines_in, lines_of, merge, one_branch
from holdfast.agents.claude.transcripts.store import TranscriptStore
from holdfast.agents.errors import TranscriptCopyFailed
from holdfast.agents.transcript_copies import MAIN
from holdfast.errors import StoreError
from holdfast.files.in_time import in_time
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx

TRIES_S = (0.0, 0.2, 0.8)
"""Seconds before each try to store lines by themselves."""


class TranscriptCopy:
    """The session store that is passed to the SDK.

    It answers every `load` with nothing. Entries would make the SDK move the agent to a temporary configuration
    directory with a copy of the user's credentials; without them the agent resumes its own merged file.
    """

    def __init__(self, transcripts: TranscriptStore, file: Path) -> None:
        """`file` is the session's, as it is before its agent starts."""
        self._transcripts = transcripts
        self._file = file
        self._seen = FileState.of(file)
        self._written: set[Any] = set()
        self._looking = threading.Lock()
        self._held: HeldLines | None = None
        self.holds = False
        """Whether the last lines of the turn are left to whoever stores its answer."""
        self.appended = 0
        """How many lines have reached the store, or are held for it."""

    async def append(self, key: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> None:
        """Keep what the agent wrote."""
        self._written |= {entry.get("uuid") for entry in entries}
        earlier = self._held
        if earlier is not None:
            await earlier.store_alone()
            self._held = None
        if self.holds and earlier is None:
            self._held = HeldLines(self._transcripts, key, await self._transcripts.shared(entries))
        else:
            await self._transcripts.append(key, entries)
        self.appended += len(entries)

    def take(self) -> HeldLines | None:
        """Return the lines that were held, which are the caller's to store now."""
        held, self._held = self._held, None
        return held

    async def is_overtaken(self, own: int | None) -> bool:
        """Return whether somebody else than the agent, process `own`, wrote to its file or has the session open."""
        return await in_time(self._is_overtaken, own)

    async def read_own(self) -> None:
        """Read what the agent wrote in its last turn, so that the next one does not wait for it."""
        await in_time(self._has_only_own)

    def _is_overtaken(self, own: int | None) -> bool:
        return not self._has_only_own() or opened_by(self._file.stem, self._file.parents[2], own=own) is not None

    def _has_only_own(self) -> bool:
        """Return whether everything added to the file since the last check is the agent's."""
        with self._looking:
            now = FileState.of(self._file)
            if now != self._seen:
                new = now.ids_since(self._seen)
                if new is None or not new <= self._written:
                    return False
                self._seen = now
                self._written -= new
            return True

    async def load(self, key: Mapping[str, Any]) -> None:
        """Return nothing: the agent has its own file."""


@dataclass(frozen=True, slots=True)
class HeldLines:
    """The last lines of a turn. If they get lost before they are stored, they are still in the agent's own file."""

    transcripts: TranscriptStore
    key: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]

    def store(self, tx: Tx) -> None:
        """Store them along with what the turn came to."""
        queries.insert(tx, self.key, self.lines)

    async def store_alone(self) -> None:
        """Store them where that failed; raises TranscriptCopyFailed."""
        problem: StoreError | None = None
        for pause in TRIES_S:
            await asyncio.sleep(pause)
            try:
                return await self.transcripts.append(self.key, self.lines)
            except StoreError as error:
                problem = error
        raise copy_failed(self.key["session_id"], str(problem))


def copy_failed(session_id: str, problem: str) -> TranscriptCopyFailed:
    """Return the error of a turn whose transcript is not in the store."""
    return TranscriptCopyFailed(
        f"The transcript of session {session_id} did not reach the store: {problem}.",
        recovery="Check that Claude Code can write in its configuration directory, then ask again.",
    )


@dataclass(frozen=True, slots=True)
class FileState:
    """How far a transcript file was read."""

    path: Path
    inode: int = 0
    size: int = 0

    @staticmethod
    def of(path: Path) -> FileState:
        """Return where a file ends now; its last line may not be complete."""
        try:
            about = path.stat()
        except FileNotFoundError:
            return FileState(path)
        return FileState(path, about.st_ino, about.st_size)

    def ids_since(self, before: FileState) -> set[str] | None:
        """Return the ids of the lines that were added since then; None if it is another file."""
        if before.size > self.size or before.inode not in (0, self.inode):
            return None if self.inode else set()  # one that was deleted is written again from the store
        with self.path.open("rb") as file:
            file.seek(before.size)
            added = file.read(self.size - before.size)
        # An ask waits for this, so lines without an id are not parsed.
        return {name for line in added.split(b"\n") if b'"uuid"' in line and (name := _id_in(line)) is not None}


def _id_in(line: bytes) -> str | None:
    """Return the id of a line that is a part of the conversation itself."""
    found = lines_in(line.decode("utf-8", "surrogateescape"))
    return found[0].uuid if found else None


async def level(transcripts: TranscriptStore, files: TranscriptFiles, project_key: str, session_id: str) -> bool:
    """Merge store and file, here and under this project; False when neither has the conversation.

    The caller holds the session's lock.
    """
    parts = await merged(transcripts, files, session_id, in_one_branch=True)
    if not parts.get(MAIN):
        return False
    for subpath, lines in parts.items():
        await asyncio.to_thread(files.write, project_key, session_id, subpath, lines)
    await store(transcripts, project_key, session_id, parts)
    return True


async def store(
    transcripts: TranscriptStore, project_key: str, session_id: str, parts: Mapping[str, Sequence[Line]]
) -> None:
    """Make these the store's copy of a conversation."""
    for subpath, lines in parts.items():
        key = {"project_key": project_key, "session_id": session_id, "subpath": subpath}
        await transcripts.put(key, [line.entry for line in lines if line.entry is not None and line.is_stored])


async def merged(
    transcripts: TranscriptStore, files: TranscriptFiles, session_id: str, *, in_one_branch: bool
) -> dict[str, list[Line]]:
    """Return a conversation from the store and its files, by subpath; either may be ahead."""
    stored = await transcripts.everywhere(session_id)

    def merge_all() -> dict[str, list[Line]]:
        local, parts = files.read(session_id), dict[str, list[Line]]()
        for subpath in sorted(stored.keys() | local.keys()):
            copy = lines_of(stored.get(subpath, []))
            parts[subpath] = merge(copy, local.get(subpath, []))
            if in_one_branch and subpath == MAIN:
                parts[subpath] = one_branch(parts[subpath], {line.key for line in copy})
        return parts

    # A long conversation takes its time; the daemon has others to serve.
    return await asyncio.to_thread(merge_all)
