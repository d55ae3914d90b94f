"""Claude Code's transcripts, as the seam asks for them. What reads them is imported with the first reading."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.agents.transcript_copies import TranscriptCopies
    from holdfast.agents.transcript_entries import Entry, KeptEntry, Read, SpokenBatch, TranscriptFile
    from holdfast.agents.transcript_position import CallKind, Position
    from holdfast.store import Store

SUFFIX = ".jsonl"


class ClaudeTranscripts:
    """Finds and follows the transcript files of Claude Code."""

    def follow(
        self, transcript: Path, since: Position, fold: Callable[[Entry], None], *, restart: Callable[[], None]
    ) -> Read | None:
        from holdfast.agents.claude.transcripts.neutral import entry_of
        from holdfast.agents.claude.transcripts.reader import read_new

        return read_new(transcript, since, lambda line: fold(entry_of(line)), restart=restart)

    def follow_subagents(
        self, transcript: Path, since: Mapping[str, str], fold: Callable[[Entry], None], *, most: int
    ) -> dict[str, str]:
        from holdfast.agents.claude.transcripts.subagents import read_subagents

        return read_subagents(transcript, since, fold, most)

    def entries_from(self, transcript: Path, offset: int, most_bytes: int) -> Iterator[Entry]:
        from holdfast.agents.claude.transcripts.neutral import entry_of
        from holdfast.agents.claude.transcripts.reader import read_part

        return (entry_of(line) for line in read_part(transcript, offset, most_bytes))

    def kind_of(self, tool: str) -> CallKind:
        from holdfast.agents.claude.transcripts.neutral import kind_of

        return kind_of(tool)

    def began_in(self, transcript: Path) -> str | None:
        from holdfast.agents.claude.transcripts.reader import first_cwd

        return first_cwd(transcript)

    def config_directory(self, env: Mapping[str, str]) -> Path:
        from holdfast.agents.claude.config import config_directory

        return config_directory(env)

    def sessions_in(self, folder: Path) -> list[str]:
        try:
            names = os.listdir(folder)  # noqa: PTH208 - one call, whatever their number
        except OSError:
            return []  # a project in which no agent has worked has no folder
        return [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]

    def file_of(self, folder: Path, session_id: str) -> Path:
        return folder / f"{session_id}{SUFFIX}"

    def running(self, config: Path) -> frozenset[str]:
        from holdfast.agents.claude.open_elsewhere import running

        return running(config)

    def folder(self, config: Path) -> Path:
        return config / "projects"

    def folder_name(self, project: Path) -> str:
        from holdfast.agents.claude.transcripts.folder_name import project_key

        return project_key(project)

    def found(self, config: Path, folder: str | None = None) -> list[TranscriptFile]:
        from holdfast.agents.claude.transcripts import batches

        return batches.found(config, folder)

    def directory_of(self, file: TranscriptFile, known: dict[str, str]) -> str:
        from holdfast.agents.claude.transcripts import batches

        return batches.directory_of(batches.main_file(file), known)

    def is_same(self, path: Path, mark: str, read_to: int) -> bool:
        from holdfast.agents.claude.transcripts import batches

        return batches.is_same(path, mark, read_to)

    def batches(self, path: Path, offset: int) -> Iterator[SpokenBatch]:
        from holdfast.agents.claude.transcripts import batches

        return batches.batches(path, offset)

    def reached(self, transcript: str, headings: Mapping[str, str]) -> frozenset[str]:
        from holdfast.agents.claude.transcripts.receipt import reached

        return reached(transcript, headings)

    def config_of(self, transcript: Path) -> Path | None:
        """Return the configuration directory that a transcript is in."""
        return next((folder.parent for folder in transcript.parents if folder.name == "projects"), None)

    async def copy_to_store(self, store: Store, session_id: str, transcript: Path) -> None:
        """Bring the store's copy of a session that is over level with its file."""
        from holdfast.agents.claude.transcripts import copying

        await copying.to_store(store, session_id, transcript)

    async def copy_from_store(self, store: Store, session_id: str, folder: Path) -> bool:
        """Continue or create a session's file from the store's copy."""
        from holdfast.agents.claude.transcripts import copying

        return await copying.from_store(store, session_id, folder)

    async def kept(self, store: Store, session_id: str, before: int | None, most: int) -> list[KeptEntry]:
        """Return the last entries that the store has of a conversation, the latest first."""
        from holdfast.agents.claude.transcripts import queries
        from holdfast.agents.claude.transcripts.neutral import entry_of
        from holdfast.agents.transcript_entries import KeptEntry

        lines = await store.read(lambda tx: queries.last(tx, session_id, before, most))
        return [KeptEntry(place, entry_of(line)) for place, line in lines]

    def copies(self, config: Path, project: Path) -> TranscriptCopies:
        """Return the object that copies a project's transcripts."""
        from holdfast.agents.claude.transcripts.copies import ClaudeCopies

        return ClaudeCopies(config, project)

    def copy_moved(self, transcript: Path, before: Path, after: Path) -> Path | None:
        """Copy a transcript to where Claude Code looks after its project was moved."""
        from holdfast.agents.claude.transcripts.copies import copy_moved

        return copy_moved(transcript, before, after)

    def opened_by(self, session_id: str) -> int | None:
        """Return the process that has a session open by hand, if one is seen."""
        from holdfast.agents.claude.open_elsewhere import opened_by

        return opened_by(session_id)
