"""A rewritten write-ahead log is one that SQLite reads to its end."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from holdfast.store.salvage.damage import unread_commits
from holdfast.store.salvage.log_repair import FRAME_HEADER, WAL_HEADER, header_is_valid, repair_log

PAGE = 4096
ROWS = 20


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database whose rows are in its log alone, as they are after a crash."""
    live = tmp_path / "live.db"
    connection = apsw.Connection(str(live))
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, text TEXT)")
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    for number in range(ROWS):
        connection.execute("INSERT INTO rows VALUES (?, ?)", (number, "x" * 3000))
    crashed = tmp_path / "crashed.db"
    crashed.write_bytes(live.read_bytes())
    (tmp_path / "crashed.db-wal").write_bytes((tmp_path / "live.db-wal").read_bytes())
    connection.close()
    return crashed


def _repair(database: Path) -> tuple[int, int]:
    log = database.with_name("crashed.db-wal")
    rewritten = database.with_name("rewritten")
    repaired = repair_log(log, rewritten, PAGE)
    rewritten.replace(log)
    return repaired.frames, repaired.dropped


def _rows(database: Path) -> int:
    connection = apsw.Connection(str(database))
    try:
        return int(str(connection.execute("SELECT count(*) FROM rows NOT INDEXED").fetchall()[0][0]))
    finally:
        connection.close()


def _overwrite(log: Path, offset: int, size: int) -> None:
    with log.open("r+b") as file:
        file.seek(offset)
        file.write(b"\xa5" * size)


def test_a_whole_log_stays_what_it_is(database: Path) -> None:
    log = database.with_name("crashed.db-wal")
    before = log.read_bytes()
    assert header_is_valid(before[:WAL_HEADER], PAGE)
    frames, dropped = _repair(database)
    assert frames == (len(before) - WAL_HEADER) // (FRAME_HEADER + PAGE)
    assert dropped == 0
    assert log.read_bytes() == before
    assert _rows(database) == ROWS


def test_a_lost_header_is_made_anew(database: Path) -> None:
    log = database.with_name("crashed.db-wal")
    _overwrite(log, 0, WAL_HEADER)
    assert not header_is_valid(log.read_bytes()[:WAL_HEADER], PAGE)
    assert _repair(database)[1] == 0
    assert _rows(database) == ROWS


def test_a_damaged_frame_is_dropped_and_those_behind_it_are_kept(database: Path) -> None:
    log = database.with_name("crashed.db-wal")
    frames = (log.stat().st_size - WAL_HEADER) // (FRAME_HEADER + PAGE)
    _overwrite(log, WAL_HEADER + (frames // 2) * (FRAME_HEADER + PAGE) + 500, 10)
    cut = unread_commits(log, frames // 2)
    assert cut is not None
    assert cut.frame == frames // 2 + 1
    assert _repair(database) == (frames, 1)
    assert _rows(database) >= ROWS - 1


def test_a_log_that_ends_in_one_torn_transaction_is_not_called_damaged(database: Path) -> None:
    log = database.with_name("crashed.db-wal")
    frames = (log.stat().st_size - WAL_HEADER) // (FRAME_HEADER + PAGE)
    assert unread_commits(log, frames - 1) is None
    assert unread_commits(log, frames) is None


@pytest.mark.parametrize("header", [b"", bytes(31), bytes(32), b"\xff" * 32])
def test_what_is_no_header_is_not_taken_for_one(header: bytes) -> None:
    assert not header_is_valid(header, PAGE)
