"""Claude Code's transcripts, as the seam asks for them. What reads them is imported with the first reading."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.agents.transcript_entries import Entry, Read, SpokenBatch, TranscriptFile
    from holdfast.agents.transcript_position import CallKind, Position

SUFFIX = ".jsonl"


class ClaudeTranscripts:
    """Finds and follows the transcript files of Claude Code."""

    def follow(
        self, transcript: Path, since: Position, fold: Callable[[Entry], None], *, restart: Callable[[], None]
    ) -> Read | None:
        """Hand each new entry to `fold`."""
        from holdfast.agents.claude.transcripts.neutral import entry_of
        from holdfast.agents.claude.transcripts.reader import read_new

        return read_new(transcript, since, lambda line: fold(entry_of(line)), restart=restart)

    def follow_subagents(
        self, transcript: Path, since: Mapping[str, str], fold: Callable[[Entry], None], *, most: int
    ) -> dict[str, str]:
        """Hand what subagents did since then to `fold`."""
        from holdfast.agents.claude.transcripts.subagents import read_subagents

        return read_subagents(transcript, since, fold, most)

    def kind_of(self, tool: str) -> CallKind:
        """Return what a tool does, by its name."""
        from holdfast.agents.claude.transcripts.neutral import kind_of

        return kind_of(tool)

    def began_in(self, transcript: Path) -> str | None:
        """Return the directory in which a session was begun."""
        from holdfast.agents.claude.transcripts.reader import first_cwd

        return first_cwd(transcript)

    def newest(self, folder: Path, is_session: Callable[[str], bool]) -> list[tuple[int, Path]]:
        """Return the transcripts in a folder with the time of their last change in ns, the newest first."""
        found: list[tuple[int, str]] = []
        try:
            with os.scandir(folder) as listed:
                for one in listed:
                    name = one.name
                    if name.endswith(SUFFIX) and is_session(name.removesuffix(SUFFIX)) and one.is_file():
                        found.append((one.stat().st_mtime_ns, one.path))
        except OSError:
            return []  # a project in which no agent has worked has no folder
        return [(changed, Path(path)) for changed, path in sorted(found, reverse=True)]

    def folder(self, config: Path) -> Path:
        """Return the directory that has a folder of transcripts for each project."""
        return config / "projects"

    def folder_name(self, project: Path) -> str:
        """Return the name of the folder in which a project's transcripts lie."""
        from holdfast.agents.claude.transcripts.folder_name import project_key

        return project_key(project)

    def found(self, config: Path, folder: str | None = None) -> list[TranscriptFile]:
        """Return the transcripts of one project's folder or of all, the newest first."""
        from holdfast.agents.claude.transcripts import batches

        return batches.found(config, folder)

    def directory_of(self, file: TranscriptFile, known: dict[str, str]) -> str:
        """Return the project that a conversation belongs to here."""
        from holdfast.agents.claude.transcripts import batches

        return batches.directory_of(batches.main_file(file), known)

    def is_same(self, path: Path, mark: str, read_to: int) -> bool:
        """Return whether a file is still the one that was read."""
        from holdfast.agents.claude.transcripts import batches

        return batches.is_same(path, mark, read_to)

    def batches(self, path: Path, offset: int) -> Iterator[SpokenBatch]:
        """Return what the rest of a file says, part by part."""
        from holdfast.agents.claude.transcripts import batches

        return batches.batches(path, offset)

    def reached(self, transcript: str, headings: Mapping[str, str]) -> frozenset[str]:
        """Return the ids whose headings stand in the transcript."""
        from holdfast.agents.claude.transcripts.receipt import reached

        return reached(transcript, headings)
