"""Transcripts that are being copied: lines in temporary files, and in memory only what identifies each line."""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from holdfast.agents.claude.transcripts.files import METADATA, read_sidecar, sidecar_of
from holdfast.agents.claude.transcripts.merge import Line, merge
from holdfast.agents.transcript_copies import MAX_LINE, TranscriptTooLarge
from holdfast.store.files import publish
from holdfast.text import bounded_json

MAX_LINES = 100_000
"""Lines of one transcript."""
MAX_MARKS = 500_000
"""Commas and brackets of one line, which limit the values that parsing it creates."""
LONGEST_NOTE = 64
"""Characters of a line's id and time that are kept."""


class Spool:
    """A transcript's lines in a temporary file. A line's `text` is its offset and length there."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the spool
        self._size = 0
        self._seen: Counter[str] = Counter()
        self.lines: list[Line] = []

    @classmethod
    def of(cls, lines: Iterable[bytes]) -> Spool:
        """Return a transcript of these lines."""
        spool = cls()
        try:
            for line in lines:
                spool.add(line)
        except BaseException:
            spool.close()
            raise
        return spool

    @classmethod
    def of_file(cls, path: Path) -> Spool:
        """Return a transcript file, with what the agent keeps beside it."""
        spool = cls()
        try:
            with path.open("rb") as file:
                while line := file.readline(MAX_LINE + 1):
                    spool.add(line)
            beside = read_sidecar(path)
            if beside is not None:
                metadata = {"type": METADATA, **beside}
                spool.add(json.dumps(metadata, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
        except BaseException:
            spool.close()
            raise
        return spool

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Delete the temporary file."""
        self._file.close()

    def add(self, line: bytes) -> None:
        """Add a line; an incomplete last line is left out."""
        text = line.removesuffix(b"\n")
        if len(text) > MAX_LINE or len(self.lines) == MAX_LINES:
            raise TranscriptTooLarge(
                f"A transcript has a line of more than {MAX_LINE} bytes, or more than {MAX_LINES} lines.",
                recovery="Such a conversation cannot travel in an archive.",
            )
        entry = _entry(text)
        if text.strip() and (entry is not None or line.endswith(b"\n")):
            self._keep(self._key(text, entry), text, entry if entry is None else _noted(entry))

    def raw(self, line: Line) -> bytes:
        """Return the text of a line, without its newline."""
        start, _, length = line.text.partition("+")
        self._file.seek(int(start))
        return self._file.read(int(length))

    def content(self) -> Iterator[bytes]:
        """Yield the transcript line by line."""
        for line in self.lines:
            yield self.raw(line) + b"\n"

    def merged(self, other: Spool) -> Spool:
        """Merge two copies of a transcript, this one from the store, by the rules of merge.py."""
        merged = Spool()
        ours = {id(line) for line in self.lines}
        for line in merge(self.lines, other.lines):
            source = self if id(line) in ours else other
            merged._keep(line.key, source.raw(line), line.entry)
        return merged

    def write(self, path: Path) -> None:
        """Write the transcript to `path` atomically, unless it is already there."""
        meta = [line for line in self.lines if line.entry and line.entry.get("type") == METADATA]
        lines = [line for line in self.lines if not (line.entry and line.entry.get("type") == METADATA)]
        if lines:
            _write(path, (self.raw(line) + b"\n" for line in lines))
        if meta:
            entry = {name: value for name, value in bounded_json.loads(self.raw(meta[-1])).items() if name != "type"}
            if read_sidecar(path) != entry:
                _write(sidecar_of(path), [json.dumps(entry).encode()])

    def _keep(self, key: str, text: bytes, entry: dict[str, Any] | None) -> None:
        self._file.seek(self._size)
        self._file.write(text)
        self.lines.append(Line(key, f"{self._size}+{len(text)}", entry))
        self._size += len(text)

    def _key(self, text: bytes, entry: Mapping[str, Any] | None) -> str:
        """Return what identifies a line, as in merge.py: its uuid, or its content and how often that came before."""
        name = entry.get("uuid") if entry else None
        if isinstance(name, str):
            return f"uuid {name}" if len(name) <= LONGEST_NOTE else f"uuid {_digest(name.encode(errors='replace'))}"
        content = _digest(text if entry is None else json.dumps(entry, sort_keys=True).encode())
        self._seen[content] += 1
        return f"content {self._seen[content]} {content}"


def _entry(text: bytes) -> dict[str, Any] | None:
    if text.count(b",") + text.count(b"[") + text.count(b"{") > MAX_MARKS:
        return None  # it stays in its place, unread
    try:
        value = bounded_json.loads(text.decode("utf-8", "surrogateescape"))
    except bounded_json.JsonTooDeep:
        raise TranscriptTooLarge(
            "A transcript has a line that is nested too deep.",
            recovery="Such a conversation cannot travel in an archive.",
        ) from None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _noted(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a line that are needed later: its id, time and whether it is metadata."""
    noted = {name: entry[name][:LONGEST_NOTE] for name in ("uuid", "timestamp") if isinstance(entry.get(name), str)}
    return {**noted, "type": METADATA} if entry.get("type") == METADATA else noted


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _write(path: Path, content: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".level-")
    fresh = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for chunk in content:
                file.write(chunk)
        if not (path.is_file() and filecmp.cmp(fresh, path, shallow=False)):
            publish(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
