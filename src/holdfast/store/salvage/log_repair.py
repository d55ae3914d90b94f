"""Rewrites a damaged write-ahead log from every frame in it that is still intact."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from holdfast.lazy_dataclass import dataclass

WAL_MAGIC = (0x377F0682, 0x377F0683)
"""The second one means that checksums are computed over big-endian words."""
WAL_VERSION = 3_007_000
WAL_HEADER, FRAME_HEADER = 32, 24

Checksum = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RepairedLog:
    """Result of repairing a log."""

    frames: int
    dropped: int
    """Frames that fail their checksum. A later image of the same page, if there is one, holds their changes too."""


def header_is_valid(header: bytes, page_size: int) -> bool:
    """Return whether SQLite would accept this as the header of a log with this page size."""
    if len(header) < WAL_HEADER:
        return False
    magic, version, size = struct.unpack(">III", header[:12])
    if magic not in WAL_MAGIC or version != WAL_VERSION or size != page_size:
        return False
    return checksum(header[:24], big_endian=magic == WAL_MAGIC[1]) == struct.unpack(">II", header[24:32])


def checksum(data: bytes, start: Checksum = (0, 0), *, big_endian: bool) -> Checksum:
    """Return SQLite's checksum of `data`, continued from the checksum before it."""
    one, two = start
    words = struct.unpack(f"{'>' if big_endian else '<'}{len(data) // 4}I", data)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two


def repair_log(log: Path, target: Path, page_size: int) -> RepairedLog:
    """Write a valid log to `target` with every intact frame of `log`.

    SQLite stops at the first frame that fails and drops all that follow. But each frame is the complete image of a
    page, so the later ones are worth more than the missing one. The pages may be inconsistent with each other; salvage
    reads them row by row and checks the result.
    """
    with log.open("rb") as file:
        header = file.read(WAL_HEADER)
    if header_is_valid(header, page_size):
        big_endian = int.from_bytes(header[:4], "big") == WAL_MAGIC[1]
        salts, before = header[16:24], struct.unpack(">II", header[24:32])
    else:
        big_endian = sys.byteorder == "big"
        first = next(_frames(log, page_size), None)
        salts, before = (first[0][8:16] if first else bytes(8)), None
        header = struct.pack(">IIII", WAL_MAGIC[big_endian], WAL_VERSION, page_size, 0) + salts
        header += struct.pack(">II", *checksum(header, big_endian=big_endian))
    written: Checksum = struct.unpack(">II", header[24:32])
    frames = dropped = 0
    with target.open("wb") as file:
        file.write(header)
        for frame, page in _frames(log, page_size):
            stored: Checksum = struct.unpack(">II", frame[16:24])
            # Each checksum continues the one stored before it, so a frame can be checked without the log's start.
            whole = before is None or checksum(frame[:8] + page, before, big_endian=big_endian) == stored
            before = stored
            if frame[8:16] != salts:
                continue  # left over from an earlier round of the log
            frames += 1
            if not whole:
                dropped += 1
                continue
            written = checksum(frame[:8] + page, written, big_endian=big_endian)
            file.write(frame[:16] + struct.pack(">II", *written) + page)
    return RepairedLog(frames, dropped)


def apply_log(log: Path, database: Path, page_size: int) -> None:
    """Apply a valid log to its database file, up to the last commit."""
    committed = pages = 0
    for count, (frame, _) in enumerate(_frames(log, page_size), start=1):
        if any(frame[4:8]):
            committed, pages = count, int.from_bytes(frame[4:8], "big")
    if not committed:
        return
    with database.open("r+b") as file:
        for frame, page in islice(_frames(log, page_size), committed):
            file.seek((int.from_bytes(frame[:4], "big") - 1) * page_size)
            file.write(page)
        file.truncate(pages * page_size)


def _frames(log: Path, page_size: int) -> Iterator[tuple[bytes, bytes]]:
    with log.open("rb") as file:
        file.seek(WAL_HEADER)
        while len(frame := file.read(FRAME_HEADER + page_size)) == FRAME_HEADER + page_size:
            yield frame[:FRAME_HEADER], frame[FRAME_HEADER:]
