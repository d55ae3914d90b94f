"""The transcript files of Claude Code on this machine, read in batches from where reading ended."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from holdfast.agents.claude.transcripts.entries import Entry
from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.agents.claude.transcripts.neutral import spoken_in
from holdfast.agents.session_locks import is_canonical_session_id
from holdfast.agents.transcript_entries import Spoken, SpokenBatch, TranscriptFile
from holdfast.text import bounded_json

MARKED = 1024
"""Bytes at the beginning of a file by which it is known again."""
BATCH_BYTES = 2 * 1024 * 1024
LONGEST_LINE = 16 * 1024 * 1024
"""Bytes; a longer line holds an image or the like."""
MAX_MARKS = 1_200_000
"""Commas and brackets of one line, which limit the values that parsing it creates."""
LOOKED_AT = 256 * 1024
"""Bytes of a transcript that are searched for its directory."""
MAX_DIRECTORIES = 100
"""Directories of one conversation that are considered."""


def found(config: Path, folder: str | None = None) -> list[TranscriptFile]:
    """Return the transcripts of one project's folder or of all, the newest first."""
    folders = [config / "projects" / folder] if folder else sorted((config / "projects").glob("*"))
    files: list[TranscriptFile] = []
    for place in folders:
        for main in place.glob("*.jsonl"):
            if is_canonical_session_id(main.stem):
                beside = main.with_suffix("")
                subagents = () if beside.is_symlink() else beside.rglob("*.jsonl")
                for path in (main, *subagents):
                    files += _file(path, main.stem)
    return sorted(files, key=lambda file: file.modified, reverse=True)


def _file(path: Path, session_id: str) -> list[TranscriptFile]:
    """Return the transcript at a path; nothing for a link or a pipe, which Claude Code never writes."""
    if path.is_symlink() or not path.is_file():
        return []
    about = path.stat()
    return [TranscriptFile(path, session_id, about.st_size, about.st_mtime)]


def main_file(file: TranscriptFile) -> Path:
    """Return the transcript of the conversation that a file belongs to."""
    if file.path.stem == file.session_id:
        return file.path
    folder = next(folder for folder in file.path.parents if folder.name == file.session_id)
    return folder.with_suffix(".jsonl")


def directory_of(main: Path, known: dict[str, str]) -> str:
    """Return the project a conversation belongs to here; `known` has the directories of known folders."""
    cwds: dict[str, None] = {}
    with main.open("rb") as file:
        for line in file.read(LOOKED_AT).splitlines():
            entry = _entry(line)
            cwd = entry.get("cwd") if entry else None
            if isinstance(cwd, str) and cwd.startswith("/") and cwd.isprintable() and len(cwds) < MAX_DIRECTORIES:
                cwds[cwd] = None
    folder = main.parent.name
    own = next((cwd for cwd in cwds if project_key(Path(cwd)) == folder), None)
    # A conversation that came from another machine names a directory there.
    return own or known.get(folder) or next(iter(cwds), "")


def mark_of(path: Path, length: int) -> str:
    """Return a hash of a file's beginning, as far as it was read, to recognize the file later."""
    size = min(length, MARKED)
    with path.open("rb") as file:
        return f"{size}.{hashlib.sha256(file.read(size)).hexdigest()[:32]}"


def is_same(path: Path, mark: str, read_to: int) -> bool:
    """Return whether a file is still the one that was read: it has at most grown, and begins the same."""
    length = mark.partition(".")[0]
    return path.stat().st_size >= read_to and length.isdigit() and mark_of(path, int(length)) == mark


def batches(path: Path, offset: int) -> Iterator[SpokenBatch]:
    """Yield the rest of a file, part by part; a line that is still being written is left for the next time."""
    with path.open("rb") as file:
        file.seek(offset)
        passages: list[Spoken] = []
        begin = end = offset
        for line in iter(lambda: file.readline(LONGEST_LINE), b""):
            if not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                break
            entry = _entry(line)  # a piece of a line that is too long is no JSON
            passages += spoken_in(entry) if entry is not None else ()
            end += len(line)
            if end - begin >= BATCH_BYTES:
                yield SpokenBatch(tuple(passages), end, mark_of(path, end))
                passages, begin = [], end
        if end > begin:
            yield SpokenBatch(tuple(passages), end, mark_of(path, end))


def _entry(line: bytes) -> Entry | None:
    if not line.startswith(b"{") or sum(line.count(mark) for mark in (b",", b"[", b"{")) > MAX_MARKS:
        return None
    try:
        value = bounded_json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
