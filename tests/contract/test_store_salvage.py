"""A damaged database is kept, rebuilt as far as it reads, and nothing is lost without a word."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from tests.contract.conftest import PAGE, leaf_pages, root_page, spoil
from tests.contract.test_store_backup import add_session, add_thought, fill

from holdfast.errors import StoreCorrupt, StoreError, StoreTooNew
from holdfast.protocol import queries
from holdfast.protocol.memories import current_state, history
from holdfast.protocol.runs import RunRecord
from holdfast.store import Row, Tx, events
from holdfast.store.backup.backup import backup
from holdfast.store.migrations import load
from holdfast.store.opening import open_store
from holdfast.store.salvage import damage as damage_checks
from holdfast.store.salvage.damage import CORRUPT, check_at_start, open_for_inspection, quick_check
from holdfast.store.salvage.stand_ins import CONVERSATION_PAIRS, CONVERSATION_SESSIONS, RUN_NUMBERS, RUNS_BY_PROJECT
from holdfast.store.sqlite import SqliteStore
from holdfast.store.verify import LOST_EVENT, Problem, verify

SESSIONS, THOUGHTS = 3, 30


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What every test gets a copy of."""
    folder = tmp_path_factory.mktemp("filled")

    async def scenario() -> None:
        store, notices = await open_store(folder)
        assert notices == []
        await fill(store, SESSIONS, THOUGHTS)
        await store.close()

    asyncio.run(scenario())
    assert not (folder / "holdfast.db-wal").exists()
    return folder


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Path:
    """A data directory with a store that was closed in order."""
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    return tmp_path


def _reopen(home: Path) -> tuple[list[str], dict[str, list[int]], dict[str, str | None]]:
    """Open the store as a daemon does; returns the notices, each session's thought numbers and its damage."""

    async def scenario() -> tuple[list[str], dict[str, list[int]], dict[str, str | None]]:
        store, notices = await open_store(home)

        def read(tx: Tx) -> tuple[dict[str, list[int]], dict[str, str | None]]:
            damage = {row["id"]: row["damage"] for row in tx.all("SELECT id, damage FROM sessions")}
            numbers: dict[str, list[int]] = {session: [] for session in damage}
            for row in tx.all("SELECT session_id, number FROM thoughts ORDER BY number"):
                numbers[row["session_id"]].append(row["number"])
            return numbers, damage

        numbers, damage = await store.read(read)
        assert (await verify(store)).ok
        for session in numbers:  # the store is one that can be written to, also where it has gaps
            following = await store.read(
                lambda tx, session=session: tx.one(  # type: ignore[misc]
                    "SELECT thought_count AS n FROM sessions WHERE id = :id", id=session
                )
            )
            await store.write(lambda tx, s=session, n=following["n"]: add_thought(tx, s, n + 1))  # type: ignore[misc]
        await store.close()
        return notices, numbers, damage

    return asyncio.run(scenario())


def _assert_reported(home: Path, notices: list[str]) -> str:
    """Damage was told, the report was saved, the damaged file was kept; returns the report."""
    saved = list(home.glob("salvage-*.txt"))
    assert len(saved) == 1
    text = saved[0].read_text()
    assert text.splitlines() == notices[:-1]
    assert notices[-1] == f"This report is saved as {saved[0]}."
    assert not list(home.glob("*.salvaging*"))
    assert not (home / CORRUPT).exists()
    return text


def test_a_whole_database_is_not_touched(home: Path) -> None:
    assert check_at_start(home / "holdfast.db") is None
    notices, numbers, damage = _reopen(home)
    assert notices == []
    assert {len(found) for found in numbers.values()} == {THOUGHTS}
    assert set(damage.values()) == {None}
    assert not list(home.glob("*corrupt*"))


def test_damaged_thoughts_are_named_by_session_and_number(home: Path) -> None:
    path = home / "holdfast.db"
    pages = leaf_pages(path, "thoughts")
    spoil(path, pages[len(pages) // 2])
    (home / CORRUPT).write_text("met at run time")
    notices, numbers, damage = _reopen(home)
    text = _assert_reported(home, notices)
    hurt = {session: found for session, found in numbers.items() if len(found) < THOUGHTS}
    assert len(hurt) == 1
    ((session, found),) = hurt.items()
    lost = sorted(set(range(1, THOUGHTS + 1)) - set(found))
    assert 0 < len(lost) < 6
    expected = f"lost thoughts {lost[0]}-{lost[-1]}" if len(lost) > 1 else f"lost thoughts {lost[0]}"
    assert damage == {**dict.fromkeys(numbers), session: expected}
    assert f"Lost: session {session} (Ein Titel – 100 %): {expected}" in text
    assert len(list(home.glob("holdfast.db.corrupt-*"))) == 1


def test_damage_in_an_index_or_in_the_search_costs_no_row(home: Path) -> None:
    path = home / "holdfast.db"
    for index in ("sqlite_autoindex_thoughts_1", "sqlite_autoindex_sessions_1", "thoughts_fts_data"):
        for page in leaf_pages(path, index):
            spoil(path, page)
    (home / CORRUPT).write_text("met at run time")
    notices, numbers, damage = _reopen(home)
    assert "No row is known to be lost." in _assert_reported(home, notices)
    assert {session: len(found) for session, found in numbers.items()} == dict.fromkeys(("s0", "s1", "s2"), THOUGHTS)
    assert set(damage.values()) == {None}


def test_thoughts_outlive_the_record_of_their_session(home: Path) -> None:
    path = home / "holdfast.db"
    spoil(path, root_page(path, "sessions"))
    (home / CORRUPT).write_text("met at run time")
    notices, numbers, damage = _reopen(home)
    text = _assert_reported(home, notices)
    assert {session: len(found) for session, found in numbers.items()} == dict.fromkeys(("s0", "s1", "s2"), THOUGHTS)
    assert set(damage.values()) == {"the session's record was lost"}
    assert "session s1 (Recovered: needle1 wörd): the session's record was lost" in text
    assert "sessions: rows 1-3" in text


def _team_work(tx: Tx) -> None:
    """Two asks of one conversation, and a run with what its gates said."""
    tx.run(
        "INSERT INTO conversations (id, from_team, to_team, thread, session_id, begun, status, message_count,"
        " compacted_count, created_at, last_used_at, last_started_at)"
        " VALUES (7, 'a', 'b', 'main', 'its-session', 1, 'active', 2, 0, 1, 2, 2)"
    )
    for number in (1, 2):
        tx.run(
            "INSERT INTO asks (id, conversation_id, to_team, text, chain, status, attempts, answer, created_at)"
            " VALUES (:id, 7, 'b', 'what?', '[]', 'answered', 1, 'this', :id)",
            id=str(number),
        )
    tx.run(
        "INSERT INTO protocol_runs (row_id, id, day, number, root, project, protocol, definition, objective, phase,"
        " status, started_at, touched_at) VALUES (5, '2026-01-02-session-03', '2026-01-02', 3, 'file:///p', 'file:///p',"
        " 'p', '{}', 'o', 'WORKING', 'active', 1, 1)"
    )
    tx.run("INSERT INTO protocol_gates (run, gate, status, evidence, checked_at) VALUES (5, 'G', 'passed', '[]', 4)")
    tx.run(
        "INSERT INTO protocol_evidence (run, kind, subject, detail, source, at)"
        " VALUES (5, 'content_hash', 'README.md', 'x', 'server', 3)"
    )


@pytest.mark.parametrize("indexes", ["readable", "lost"])
def test_asks_and_evidence_outlive_the_record_of_their_conversation_and_run(home: Path, indexes: str) -> None:
    async def fill_more() -> None:
        store, _ = await open_store(home)
        await store.write(_team_work)
        await store.close()

    asyncio.run(fill_more())
    path = home / "holdfast.db"
    lost = ["conversations", "protocol_runs"]
    if indexes == "lost":
        lost += [CONVERSATION_PAIRS, CONVERSATION_SESSIONS, RUN_NUMBERS, RUNS_BY_PROJECT]
    for name in lost:
        spoil(path, root_page(path, name))
    (home / CORRUPT).write_text("met at run time")
    text = _assert_reported(home, _reopen(home)[0])
    assert "Lost: conversations: " in text and "Lost: protocol_runs: " in text and "belonged to" not in text

    async def look() -> tuple[Row, str]:
        store, _ = await open_store(home)

        def read(tx: Tx) -> tuple[Row, RunRecord, str]:
            kept = tx.one("SELECT count(answer) AS asks FROM asks WHERE conversation_id = 7")
            pair = tx.one("SELECT from_team, to_team, thread, session_id, begun, note FROM conversations WHERE id = 7")
            (run,) = [run for run in queries.recent(tx, None, 1_000) if run.row_id == 5]
            assert kept is not None and kept["asks"] == 2 and pair is not None
            view = queries.record_of(tx, run)
            return pair, view, history([view]) + current_state(view)

        pair, view, told = await store.read(read)
        await store.close()
        assert (view.run.status, len(view.gates), len(view.evidence)) == ("orphaned", 1, 1)
        return pair, told

    pair, told = asyncio.run(look())
    assert pair["note"] is not None and "the record of it was lost" in pair["note"]
    if indexes == "readable":
        assert (pair["from_team"], pair["to_team"], pair["thread"], pair["session_id"]) == (
            "a",
            "b",
            "main",
            "its-session",
        )
        assert "2026-01-02-session-03" in told
    else:
        assert (pair["to_team"], pair["thread"], pair["begun"]) == ("b", "recovered-7", 0)


def test_a_cut_off_file_is_noticed_at_start(home: Path) -> None:
    path = home / "holdfast.db"
    size = path.stat().st_size
    os.truncate(path, size // PAGE * 9 // 10 * PAGE)
    assert isinstance(check_at_start(path), StoreCorrupt)
    notices, numbers, _ = _reopen(home)
    text = _assert_reported(home, notices)
    assert f"of {size} bytes" in text
    assert "Lost: " in text
    assert sum(len(found) for found in numbers.values()) > 0


@pytest.mark.parametrize("size", [16, 100, PAGE])
def test_a_destroyed_beginning_is_borrowed_from_a_new_store(home: Path, size: int) -> None:
    spoil(home / "holdfast.db", 1, size=size)
    notices, numbers, _ = _reopen(home)
    text = _assert_reported(home, notices)
    assert "not that of a SQLite database" in text
    assert {session: len(found) for session, found in numbers.items()} == dict.fromkeys(("s0", "s1", "s2"), THOUGHTS)


def _garbage(path: Path) -> None:
    path.write_bytes(os.urandom(path.stat().st_size))


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _missing(path: Path) -> None:
    path.unlink()


def _another(path: Path) -> None:
    path.unlink()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 1")
    connection.close()


@pytest.mark.parametrize("destroy", [_garbage, _empty, _missing, _another])
def test_a_database_of_which_nothing_is_left_is_never_silently_empty(
    home: Path, destroy: Callable[[Path], None]
) -> None:
    async def take_backup() -> None:
        store, _ = await open_store(home)
        (home / "backups").mkdir()
        await backup(store, home / "backups" / "mine.db")
        await store.close()

    asyncio.run(take_backup())
    destroy(home / "holdfast.db")
    notices, numbers, _ = _reopen(home)
    text = _assert_reported(home, notices)
    assert numbers == {}
    assert "the new holdfast.db is empty" in text
    assert "mine.db; holdfast restore puts one back" in text
    assert len(list(home.glob("holdfast.db.corrupt-*"))) == (0 if destroy is _missing else 1)


def test_a_new_data_directory_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    assert check_at_start(tmp_path / "holdfast.db") is None
    (tmp_path / "holdfast.db").touch()  # as a first start leaves it that was killed at once
    notices, _, _ = _reopen(tmp_path)
    assert notices == []


KILLED = """
import asyncio, os, sys
from pathlib import Path
from holdfast.store.opening import open_store
from tests.contract.test_store_backup import add_session, add_thought

async def main():
    store, _ = await open_store(Path(sys.argv[1]))
    await store.write(lambda tx: add_session(tx, "logged"))
    for number in range(1, 21):
        await store.write(lambda tx: add_thought(tx, "logged", number, "x" * 2000))
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.fixture
def killed(home: Path) -> Path:
    """A data directory whose last writes are in the write-ahead log alone."""
    command = [sys.executable, "-c", KILLED, str(home)]
    ended = subprocess.run(command, check=False, timeout=60, cwd=Path(__file__).parents[2])
    assert ended.returncode == -signal.SIGKILL
    assert (home / "holdfast.db-wal").stat().st_size > 20 * PAGE
    return home


def test_a_log_left_by_kill_nine_is_no_damage(killed: Path) -> None:
    before = (killed / "holdfast.db-wal").read_bytes()
    assert check_at_start(killed / "holdfast.db") is None
    assert (killed / "holdfast.db-wal").read_bytes() == before
    notices, numbers, _ = _reopen(killed)
    assert notices == []
    assert numbers["logged"] == list(range(1, 21))


def test_a_last_transaction_that_was_cut_off_is_no_damage(killed: Path) -> None:
    log = killed / "holdfast.db-wal"
    os.truncate(log, log.stat().st_size - 100)
    notices, numbers, _ = _reopen(killed)
    assert notices == []
    assert numbers["logged"] == list(range(1, 20))


def test_a_log_damaged_in_the_middle_is_reported(killed: Path) -> None:
    log = killed / "holdfast.db-wal"
    with log.open("r+b") as file:
        file.seek(log.stat().st_size // 2)
        file.write(b"\xa5" * 64)
    notices, numbers, _ = _reopen(killed)
    text = _assert_reported(killed, notices)
    assert "write-ahead log of holdfast.db is damaged at frame" in text
    assert re.search(r"Lost: [12] of the \d+ pages", text), "the damage may lie across two frames"
    # Each page in the log is complete, so those after the damaged one still hold what came before.
    assert len(numbers["logged"]) >= 19
    assert len(numbers["s0"]) == THOUGHTS
    assert len(list(killed.glob("holdfast.db.corrupt-*-wal"))) == 1


def test_a_log_whose_header_is_damaged_is_reported(killed: Path) -> None:
    with (killed / "holdfast.db-wal").open("r+b") as file:
        file.write(b"\xa5" * 20)
    notices, numbers, _ = _reopen(killed)
    text = _assert_reported(killed, notices)
    assert "header of its write-ahead log" in text
    assert "No row is known to be lost." in text
    assert numbers["logged"] == list(range(1, 21))
    assert len(numbers["s0"]) == THOUGHTS
    assert len(list(killed.glob("holdfast.db.corrupt-*-wal"))) == 1


@pytest.mark.parametrize("destroy", [_empty, _missing])
def test_a_log_without_its_database_is_kept(killed: Path, destroy: Callable[[Path], None]) -> None:
    before = (killed / "holdfast.db-wal").read_bytes()
    destroy(killed / "holdfast.db")
    notices, _, _ = _reopen(killed)
    _assert_reported(killed, notices)
    (kept,) = killed.glob("holdfast.db.corrupt-*-wal")
    assert kept.read_bytes() == before


def test_a_salvage_that_is_cut_off_can_be_repeated(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / "holdfast.db"
    spoil(path, leaf_pages(path, "thoughts")[4])
    (home / CORRUPT).write_text("met at run time")
    before = path.read_bytes()

    def fails(*arguments: object) -> None:
        raise OSError("the power is out")

    with monkeypatch.context() as patched:
        patched.setattr("holdfast.store.salvage.salvage.replace_database", fails)
        with pytest.raises(StoreError, match="power"):
            asyncio.run(open_store(home))
    assert path.read_bytes() == before
    for report in home.glob("salvage-*.txt"):
        report.unlink()
    notices, numbers, _ = _reopen(home)
    _assert_reported(home, notices)
    assert sum(len(found) for found in numbers.values()) > 80


def test_a_damaged_store_of_a_newer_program_is_left_alone(home: Path) -> None:
    path = home / "holdfast.db"
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO schema_migrations VALUES (9999, 'future', '99.0', 0)")
    connection.close()
    spoil(path, leaf_pages(path, "thoughts")[4])
    (home / CORRUPT).write_text("met at run time")
    before = path.read_bytes()
    with pytest.raises(StoreTooNew):
        asyncio.run(open_store(home))
    assert path.read_bytes() == before


def test_damage_met_at_run_time_is_noted_for_the_next_start(home: Path) -> None:
    path = home / "holdfast.db"
    spoil(path, leaf_pages(path, "thoughts")[4])

    async def scenario() -> None:
        told: list[StoreCorrupt] = []
        store, notices = await open_store(home, on_corrupt=told.append)
        assert notices == []
        assert isinstance(await quick_check(store), StoreCorrupt)
        assert len(told) == 1
        assert "damaged" in (home / CORRUPT).read_text()
        await store.close()

    asyncio.run(scenario())
    notices, _, _ = _reopen(home)
    _assert_reported(home, notices)


def test_a_watcher_that_fails_does_not_stop_the_store(home: Path) -> None:
    path = home / "holdfast.db"
    spoil(path, leaf_pages(path, "thoughts")[4])

    def fails(damage: StoreCorrupt) -> None:
        raise OSError("no room for the note")

    async def scenario() -> None:
        store, _ = await open_store(home, on_corrupt=fails)
        with pytest.raises(StoreCorrupt):
            await store.write(lambda tx: tx.all("SELECT content FROM thoughts"))
        await store.write(lambda tx: add_session(tx, "goes on"))
        await store.close()

    asyncio.run(scenario())


def test_a_database_that_cannot_be_opened_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "holdfast.db").mkdir()
    with pytest.raises(StoreError, match=r"cannot be opened.*holdfast\.db"):
        asyncio.run(open_store(tmp_path))


def test_a_false_alarm_costs_nothing(home: Path) -> None:
    (home / CORRUPT).write_text("a loose cable")
    notices, numbers, _ = _reopen(home)
    assert notices == []
    assert {len(found) for found in numbers.values()} == {THOUGHTS}
    assert not (home / CORRUPT).exists()


def test_events_keep_their_numbers_after_salvage(home: Path) -> None:
    path = home / "holdfast.db"
    spoil(path, root_page(path, "event_head"))
    (home / CORRUPT).write_text("met at run time")

    async def scenario() -> None:
        store, notices = await open_store(home)
        _assert_reported(home, notices)
        await store.write(lambda tx: add_session(tx, "next"))
        newest = await store.read(lambda tx: tx.one("SELECT max(seq) AS n FROM events"))
        assert newest == {"n": SESSIONS + SESSIONS * THOUGHTS + 1}
        await store.close()

    asyncio.run(scenario())


def test_lost_events_leave_a_mark_and_are_named(home: Path) -> None:
    path = home / "holdfast.db"

    async def fill_log() -> None:
        store, _ = await open_store(home)
        for number in range(300):
            await store.write(lambda tx, number=number: tx.emit("filler", f"{number:0100}"))  # type: ignore[misc]
        await store.close()

    asyncio.run(fill_log())
    spoil(path, leaf_pages(path, "events")[3])
    (home / CORRUPT).write_text("met at run time")

    async def scenario() -> None:
        store, notices = await open_store(home)
        text = _assert_reported(home, notices)
        log = await store.read(lambda tx: events.after(tx, 0))
        assert [event.seq for event in log] == list(range(1, SESSIONS + SESSIONS * THOUGHTS + 301))
        lost = [event.seq for event in log if event.kind == LOST_EVENT]
        assert lost
        assert f"Lost: events: numbers {lost[0]}-{lost[-1]}" in text
        report = await verify(store)
        assert report.ok
        assert report.problems == [Problem("events", f"{len(lost)} were lost in a salvage", known=True)]
        await store.close()

    asyncio.run(scenario())


def test_a_session_whose_removal_has_begun_is_not_called_damaged(home: Path) -> None:
    path = home / "holdfast.db"

    async def begin_removal() -> None:
        store, _ = await open_store(home)
        await store.write(lambda tx: tx.run("UPDATE sessions SET damage = 'being forgotten' WHERE id = 's1'"))
        await store.write(lambda tx: tx.run("DELETE FROM thoughts WHERE session_id = 's1' AND number > 10"))
        await store.close()

    asyncio.run(begin_removal())
    spoil(path, root_page(path, "events_of_reasoning"))
    (home / CORRUPT).write_text("met at run time")
    notices, _, damage = _reopen(home)
    assert "No row is known to be lost." in _assert_reported(home, notices)
    assert damage == {"s0": None, "s1": "being forgotten", "s2": None}


def test_looking_changes_neither_the_database_nor_its_log(killed: Path) -> None:
    files = [killed / "holdfast.db", killed / "holdfast.db-wal"]
    before = [file.read_bytes() for file in files]
    connection = open_for_inspection(files[0])
    assert connection.execute("SELECT count(*) FROM thoughts").fetchall() == [(SESSIONS * THOUGHTS + 20,)]
    with pytest.raises(apsw.ReadOnlyError):
        connection.execute("DELETE FROM thoughts")
    connection.close()
    assert [file.read_bytes() for file in files] == before


def test_a_random_flip_is_either_harmless_or_reported(home: Path) -> None:
    """Every twentieth page in turn: after the full check the store is whole, or what it lost was told."""
    original = (home / "holdfast.db").read_bytes()
    for page in range(1, len(original) // PAGE + 1, 20):
        for stale in home.glob("*salvage-*"):
            stale.unlink()
        (home / "holdfast.db").write_bytes(original)
        spoil(home / "holdfast.db", page, start=8, size=64)
        (home / CORRUPT).write_text("met at run time")
        notices, numbers, damage = _reopen(home)
        complete = {session: len(found) for session, found in numbers.items()} == dict.fromkeys(
            ("s0", "s1", "s2"), THOUGHTS
        )
        assert complete or notices, f"page {page}: silent loss"
        if notices:
            _assert_reported(home, notices)
        for session, found in numbers.items():
            assert len(found) == THOUGHTS or damage[session], f"page {page}: {session} is not marked"


def test_a_sound_store_passes_the_background_check_and_is_private(home: Path) -> None:
    async def scenario() -> None:
        store, _ = await open_store(home)
        assert isinstance(store, SqliteStore)
        assert await quick_check(store) is None
        assert (home / "holdfast.db").stat().st_mode & 0o777 == 0o600
        await store.close()

    asyncio.run(scenario())


def test_text_that_is_not_utf8_is_salvaged_byte_for_byte(home: Path) -> None:
    path = home / "holdfast.db"
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE thoughts SET content = CAST(X'6261ff64' AS TEXT) WHERE row_id = 2")
    connection.close()
    spoil(path, root_page(path, "events_of_reasoning"))
    (home / CORRUPT).write_text("met at run time")
    notices, numbers, _ = _reopen(home)
    assert "No row is known to be lost." in _assert_reported(home, notices)
    assert {len(found) for found in numbers.values()} == {THOUGHTS}
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT hex(content) FROM thoughts WHERE row_id = 2").fetchall() == [("6261FF64",)]
    connection.close()


def _flip_in_schema(path: Path, name: bytes, text: bytes, place: int = 0) -> None:
    """Flip a bit in a row of the schema, from where `name` and then `text` stand."""
    data = bytearray(path.read_bytes())
    start = data.index(text, data.index(b"CREATE TABLE " + name)) + place
    data[start] ^= 0x04
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        (b"thoughts", b"CREATE", 0),
        (b"sessions", b"title TEXT", 2),
        (b"bridge_messages", b"UNIQUE", 1),
        (b"thoughts", b"CREATE", -1),  # the number of the table's first page stands right before its text
    ],
)
def test_a_flipped_bit_in_the_schema_costs_no_row(home: Path, name: bytes, text: bytes, place: int) -> None:
    _flip_in_schema(home / "holdfast.db", name, text, place)
    (home / CORRUPT).write_text("met at run time")
    notices, numbers, damage = _reopen(home)
    assert "No row is known to be lost." in _assert_reported(home, notices)
    assert {session: len(found) for session, found in numbers.items()} == dict.fromkeys(("s0", "s1", "s2"), THOUGHTS)
    assert set(damage.values()) == {None}


def test_a_stop_does_not_wait_for_the_background_check(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = threading.Event()

    def endless(connection: apsw.Connection, *, quick: bool) -> list[str]:
        began.set()
        connection.execute("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")
        return []

    async def scenario() -> None:
        store, _ = await open_store(home)
        monkeypatch.setattr(damage_checks, "integrity_problems", endless)
        check = asyncio.ensure_future(quick_check(store))
        assert await asyncio.to_thread(began.wait, 60)
        check.cancel()
        with pytest.raises(asyncio.CancelledError):
            await check
        await store.close()

    asyncio.run(scenario())


def test_a_schema_that_is_valid_but_not_ours_is_noticed_in_the_background(home: Path) -> None:
    _flip_in_schema(home / "holdfast.db", b"sessions", b"title TEXT", 2)

    async def scenario() -> None:
        store, notices = await open_store(home)
        assert notices == []
        found = await quick_check(store)
        assert found is not None
        assert "the schema of sessions is not the one that was created" in found.message
        await store.close()

    asyncio.run(scenario())
    _reopen(home)


def test_a_table_whose_inner_pages_are_gone_is_read_from_its_leaves(home: Path) -> None:
    path = home / "holdfast.db"
    spoil(path, root_page(path, "thoughts"), size=PAGE)
    (home / CORRUPT).write_text("met at run time")
    notices, numbers, damage = _reopen(home)
    assert "No row is known to be lost." in _assert_reported(home, notices)
    assert {len(found) for found in numbers.values()} == {THOUGHTS}
    assert set(damage.values()) == {None}


def test_what_was_deleted_does_not_come_back_from_free_pages(home: Path) -> None:
    path = home / "holdfast.db"

    async def forget() -> None:
        store, _ = await open_store(home)
        await store.write(lambda tx: tx.run("DELETE FROM thoughts WHERE session_id = 's1'"))
        await store.write(lambda tx: tx.run("DELETE FROM sessions WHERE id = 's1'"))
        await store.close()

    asyncio.run(forget())
    assert b"needle1 " in path.read_bytes()
    spoil(path, root_page(path, "thoughts"), size=PAGE)
    for list_of_free_pages_is_damaged in (False, True):
        if list_of_free_pages_is_damaged:
            spoil(path, 1, size=100)
        (home / CORRUPT).write_text("met at run time")
        _, numbers, _ = _reopen(home)
        assert "s1" not in numbers


def test_a_session_that_lost_its_row_comes_back_in_its_project(home: Path) -> None:
    path = home / "holdfast.db"
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE sessions SET root_uri = 'file:///home/dev/fence', status = 'archived' WHERE id = 's1'")
    connection.close()
    spoil(path, root_page(path, "sessions"))
    (home / CORRUPT).write_text("met at run time")
    _reopen(home)
    connection = apsw.Connection(str(path))
    found = connection.execute("SELECT title, root_uri, status, thought_count FROM sessions WHERE id = 's1'").fetchall()
    connection.close()
    # The last thought is the one that _reopen adds.
    assert found == [("Recovered: needle1 wörd", "file:///home/dev/fence", "archived", THOUGHTS + 1)]


def test_an_event_number_that_is_damaged_does_not_fill_the_disk_with_marks(home: Path) -> None:
    path = home / "holdfast.db"
    connection = apsw.Connection(str(path))
    newest = int(str(connection.execute("SELECT max(seq) FROM events").fetchall()[0][0]))
    connection.execute("UPDATE events SET seq = seq + (1 << 40) WHERE seq = 5")
    connection.execute("UPDATE event_head SET seq = seq + (1 << 41)")
    connection.close()
    spoil(path, root_page(path, "events_of_reasoning"))
    (home / CORRUPT).write_text("met at run time")
    notices, _, _ = _reopen(home)
    text = _assert_reported(home, notices)
    assert "events: numbers 1099511627781, far from all others" in text
    assert "event_head: the number of the newest event" in text
    connection = apsw.Connection(str(path))
    # _reopen adds one event per session.
    assert connection.execute("SELECT max(seq), count(*) FROM events").fetchall() == [(newest + 3, newest + 3)]
    connection.close()


def test_damage_in_a_field_of_a_session_or_an_event_does_not_keep_the_rest_from_being_read(home: Path) -> None:
    path = home / "holdfast.db"
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE sessions SET tags = '[' WHERE id = 's0'")
    connection.execute("UPDATE sessions SET status = 'actize' WHERE id = 's1'")
    connection.execute("UPDATE events SET data = '{\"number' WHERE seq = 7")
    connection.close()
    spoil(path, root_page(path, "events_of_reasoning"))
    (home / CORRUPT).write_text("met at run time")
    notices, _, _ = _reopen(home)
    text = _assert_reported(home, notices)
    assert "sessions: row 1: the tags could not be read" in text
    assert "sessions: row 2: the status could not be read" in text
    assert "events: row 7, whose data was damaged" in text
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT tags, status FROM sessions ORDER BY id").fetchall() == [("[]", "active")] * 3
    assert connection.execute("SELECT kind, data FROM events WHERE seq = 7").fetchall() == [(LOST_EVENT, "{}")]
    connection.close()


def test_a_store_whose_counter_is_lost_gets_a_name_again(home: Path) -> None:
    path = home / "holdfast.db"
    spoil(path, root_page(path, "event_head"))
    (home / CORRUPT).write_text("met at run time")
    _reopen(home)
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT length(epoch), sessions FROM event_head").fetchall() == [(32, SESSIONS)]
    connection.close()


def test_a_damaged_store_of_an_older_program_is_salvaged_as_it_was_and_then_migrated(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"

    async def older() -> None:
        store, _ = await open_store(tmp_path, known=[step for step in load() if step.number < 9])

        def write(tx: Tx) -> None:
            tx.run(
                "INSERT INTO sessions (id, title, tags, status, pinned, thought_count, branch_count, head_hash,"
                " created_at, updated_at) VALUES ('old', 't', '[]', 'active', 0, 0, 0, '', 1, 1)"
            )
            for number in range(1, 41):
                tx.run(
                    "INSERT INTO thoughts (session_id, number, content, next_needed, is_revision, needs_more,"
                    " created_at, prev_hash, hash) VALUES ('old', :number, :text, 1, 0, 0, 1, '', '')",
                    number=number,
                    text="wörd " * 300,
                )
            tx.run("UPDATE sessions SET thought_count = 40")

        await store.write(write)
        await store.close()

    asyncio.run(older())
    spoil(path, root_page(path, "thoughts"), size=PAGE)
    (tmp_path / CORRUPT).write_text("met at run time")
    notices, numbers, _ = _reopen(tmp_path)
    assert "No row is known to be lost." in _assert_reported(tmp_path, notices)
    assert numbers == {"old": list(range(1, 41))}
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT id FROM session_register").fetchall() == [("old",)]
    connection.close()
