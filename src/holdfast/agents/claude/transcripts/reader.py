"""A transcript is read from where reading ended: whole lines only, within bounds, and anew where it was replaced.

A transcript belongs to another program, which appends to it at any time. Its path comes from outside: it is only read,
and nothing but a regular file is, so that no pipe or device keeps the reader waiting.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from holdfast.agents.claude.transcripts.entries import Entry
from holdfast.agents.transcript_entries import Read
from holdfast.agents.transcript_position import Position
from holdfast.files import open_regular
from holdfast.text import bounded_json

WINDOW = 24 * 1024 * 1024
"""Bytes that are read at once; of a longer file its end, and its beginning for the first request."""
HEAD = 1024 * 1024
BEGINNING = 32 * 1024
LONGEST_LINE = 8 * 1024 * 1024
"""Bytes of a line; a longer one holds an image or the like, and no fact that a ledger keeps."""
PIECE = 1024 * 1024
MARKED = 256
"""Bytes at the beginning and before the end of reading by which a file is known again."""
_UNTOLD = tuple(
    f'{{"type":"{kind}"'.encode()
    for kind in (
        "api-request",
        "atis-latch",
        "cost-state",
        "file-history-snapshot",
        "last-prompt",
        "mode",
        "progress",
        "tools-used",
    )
)
"""Beginnings of lines that a ledger does not need; the longest lines of a transcript are among them."""


def read_new(path: Path, since: Position, fold: Callable[[Entry], None], *, restart: Callable[[], None]) -> Read | None:
    """Hand each new entry to `fold`, after `restart` if the file is read from its start; None without a file."""
    with _opened(path) as file:
        if file is None:
            return None
        size = os.fstat(file.fileno()).st_size
        anew = not since.mark or not _is_same(file, since, size)
        if not anew and size == since.offset:
            return Read(since, anew=False)
        begin = 0 if anew else since.offset
        if anew:
            restart()
        end = begin
        for first, last in _spans(begin, size):
            end = _fold_lines(file, first, last, fold, inside=first != begin)
        return Read(Position(end, _mark(file, end)), anew)


def read_part(path: Path, offset: int, most_bytes: int) -> Iterator[Entry]:
    """Yield the entries behind an offset, within a number of bytes; nothing if the file is shorter or not there."""
    with _opened(path) as file:
        if file is None:
            return
        size = os.fstat(file.fileno()).st_size
        for line, _ in _lines(file, offset, min(size, offset + most_bytes)):
            if (entry := _entry(line)) is not None:
                yield entry


def _spans(begin: int, size: int) -> list[tuple[int, int]]:
    """Return the spans of a file to read: everything new, or its head and its tail."""
    if size - begin <= WINDOW:
        return [(begin, size)]
    tail = (size - WINDOW, size)
    return [(0, HEAD), tail] if begin == 0 else [tail]


def _fold_lines(file: BinaryIO, first: int, last: int, fold: Callable[[Entry], None], *, inside: bool) -> int:
    """Fold the whole lines between two offsets; returns where the last of them ends."""
    end = first
    for line, line_end in _lines(file, first, last):
        # A window that begins in the middle of a line has only the rest of it.
        entry = None if inside and end == first else _entry(line)
        end = line_end
        if entry is not None:
            fold(entry)
    return end


def _lines(file: BinaryIO, first: int, last: int) -> Iterator[tuple[bytes, int]]:
    """Yield each whole line and where it ends; of one that is too long, nothing but its end."""
    file.seek(first)
    at, rest, too_long = first, b"", False
    while at < last:
        piece = file.read(min(PIECE, last - at))
        if not piece:
            return  # it shrank while it was read
        begin = 0
        while (newline := piece.find(b"\n", begin)) >= 0:
            line = b"" if too_long else rest + piece[begin:newline]
            rest, too_long, begin = b"", False, newline + 1
            yield line, at + begin
        at += len(piece)
        rest = b"" if too_long else rest + piece[begin:]
        if len(rest) > LONGEST_LINE:
            rest, too_long = b"", True


def _entry(line: bytes) -> Entry | None:
    if line.startswith(_UNTOLD) or not line.strip():
        return None
    try:
        value = bounded_json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _is_same(file: BinaryIO, since: Position, size: int) -> bool:
    length = since.mark.partition(".")[0]
    return size >= since.offset and length.isdecimal() and _mark(file, since.offset, int(length)) == since.mark


def _mark(file: BinaryIO, offset: int, length: int | None = None) -> str:
    length = min(offset, MARKED) if length is None else min(length, MARKED)
    return f"{length}.{_hash_at(file, 0, length)}.{_hash_at(file, max(0, offset - MARKED), min(offset, MARKED))}"


def _hash_at(file: BinaryIO, offset: int, length: int) -> str:
    file.seek(offset)
    return hashlib.sha256(file.read(length)).hexdigest()[:16]


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | None]:
    """Open a regular file that can be read; None for any other."""
    try:
        file = open_regular(path)
    except (OSError, ValueError):
        yield None
        return
    with file:
        yield file


def first_cwd(path: Path) -> str | None:
    """Return the directory in which a session was begun."""
    with _opened(path) as file:
        if file is not None:
            size = os.fstat(file.fileno()).st_size
            for length in (BEGINNING, HEAD):  # nearly always it is at the very beginning
                for line, _ in _lines(file, 0, min(size, length)):
                    cwd = (_entry(line) or {}).get("cwd")
                    if isinstance(cwd, str):
                        return cwd
    return None
