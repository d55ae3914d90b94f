"""Nothing that was lost is glossed over: it is named, and it is told until somebody has taken note of it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import apsw
import psutil
import pytest
from tests.installation import Installation, wait_until
from tests.process.agent import Agent
from tests.process.hooks import left_behind, starts
from tests.process.test_damage import PAGE, Work
from tests.process.test_damage import work as work

ALL_IS_WELL = "Nothing was lost or changed"


def _emptied(database: Path) -> None:
    database.write_bytes(b"")


def _missing(database: Path) -> None:
    database.unlink()


def _zeroed_header(database: Path) -> None:
    with database.open("r+b") as file:
        file.write(bytes(100))


def _garbage(database: Path) -> None:
    database.write_bytes(os.urandom(database.stat().st_size))


def _cut_in_half(database: Path) -> None:
    os.truncate(database, database.stat().st_size // 2)


def _overwritten_pages(database: Path) -> None:
    with database.open("r+b") as file:
        for page in range(2, database.stat().st_size // PAGE, 3):
            file.seek(page * PAGE)
            file.write(b"\xa5" * PAGE)


def _as_it_is(home: Path) -> dict[str, bytes | None]:
    files = [home / name for name in ("holdfast.db", "holdfast.db-wal")]
    return {file.name: file.read_bytes() if file.exists() else None for file in files}


@pytest.mark.parametrize(
    "destroy",
    [_emptied, _missing, _zeroed_header, _garbage, _cut_in_half, _overwritten_pages],
    ids=lambda f: f.__name__,
)
def test_verify_names_a_loss_and_leaves_the_store_as_it_was(
    embedded: Installation, work: Work, destroy: Callable[[Path], None]
) -> None:
    session = work.copied_to(embedded)
    assert embedded.run("verify").returncode == 0
    destroy(embedded.home / "holdfast.db")
    before = _as_it_is(embedded.home)
    for _ in range(2):  # a second look finds the same
        verified = embedded.run("verify")
        assert verified.returncode == 1, verified.stdout
        assert ALL_IS_WELL not in verified.stdout
        assert _as_it_is(embedded.home) == before
    if destroy is not _zeroed_header:  # of which a salvage reads everything
        assert session in verified.stdout
    assert "Traceback" not in verified.stdout + verified.stderr
    assert sorted(path.name for path in embedded.home.iterdir() if path.name.startswith((".", "salvage"))) == []


def test_a_loss_is_told_until_somebody_acknowledges_it(embedded: Installation, work: Work, tmp_path: Path) -> None:
    session = work.copied_to(embedded)
    (embedded.home / ".verifying-killed").mkdir()
    transcript = left_behind(tmp_path / "transcripts", work.project)
    (embedded.home / "holdfast.db").write_bytes(b"")
    for _ in range(2):  # a restart does not make it forgotten
        embedded.serve()
        assert not (embedded.home / ".verifying-killed").exists(), "a copy of everything was left lying about"
        assert session in embedded.run("status").stdout
        assert "acknowledge-loss" in embedded.run("status").stdout
        told = starts(embedded, work.project, transcript)["message"]
        assert "lost data" in told and "holdfast status" in told
        assert session in embedded.run("doctor").stdout
        verified = embedded.run("verify")
        assert verified.returncode == 1 and session in verified.stdout and ALL_IS_WELL not in verified.stdout
        embedded.run("stop")
        verified = embedded.run("verify")
        assert verified.returncode == 1 and session in verified.stdout and ALL_IS_WELL not in verified.stdout

    embedded.serve()
    unseen = embedded.run("acknowledge-loss")
    assert unseen.returncode == 1 and "Only a person at a terminal" in unseen.stderr
    acknowledged = embedded.at_terminal("acknowledge-loss")
    assert acknowledged.returncode == 0 and session in acknowledged.stdout
    assert session not in embedded.run("status").stdout
    assert starts(embedded, work.project, transcript)["message"] == ""
    assert session not in embedded.run("doctor").stdout
    assert embedded.run("verify").returncode == 0
    assert "No loss is waiting" in embedded.run("acknowledge-loss").stdout


def _mark_has_all(holdfast: Installation) -> bool:
    """Whether the high-water mark is level with the store."""
    try:
        lines = (holdfast.home / "high-water.jsonl").read_text().splitlines()
    except FileNotFoundError:
        return False
    reading = apsw.Connection(str(holdfast.home / "holdfast.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        ((head,),) = reading.execute("SELECT seq FROM event_head").fetchall()
    finally:
        reading.close()
    return bool(lines) and json.loads(lines[-1])[1] == head


def _frames(log: Path) -> int:
    return (log.stat().st_size - 32) // (24 + PAGE)


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.8])
def test_thoughts_that_a_cut_log_took_are_missed_by_name(embedded: Installation, project: Path, kept: float) -> None:
    with Agent(embedded, project, session="writer") as agent:
        for number in range(30):
            session = agent.think(f"thought {number}")["sessionId"]
        wait_until(lambda: _mark_has_all(embedded), "the mark is level with the store")
        (embedded.home / "stopped").touch()  # else the relay would start another daemon at once
        embedded.kill_daemon()
    log = embedded.home / "holdfast.db-wal"
    os.truncate(log, 32 + int(_frames(log) * kept) * (24 + PAGE))
    before = _as_it_is(embedded.home)
    verified = embedded.run("verify")
    assert verified.returncode == 1, verified.stdout
    assert session in verified.stdout or kept == 0.0  # then the store itself is gone, with all its tables
    assert ALL_IS_WELL not in verified.stdout
    assert _as_it_is(embedded.home) == before
    embedded.serve()
    assert session in embedded.run("status").stdout


def test_a_session_that_was_deleted_as_a_whole_is_missed_by_name(embedded: Installation, work: Work) -> None:
    session = work.copied_to(embedded)
    database = apsw.Connection(str(embedded.home / "holdfast.db"))
    database.execute("DELETE FROM thoughts")
    database.execute("DELETE FROM sessions")
    database.close()
    verified = embedded.run("verify")
    assert verified.returncode == 1 and session in verified.stdout
    assert "missing with all its thoughts" in verified.stdout


@pytest.mark.parametrize(
    "removed", [("holdfast.db",), ("holdfast.db", "holdfast.db-wal", "holdfast.db-shm"), ("holdfast.db-wal",)]
)
def test_a_database_removed_under_a_running_daemon_loses_nothing_that_was_acknowledged(
    embedded: Installation, project: Path, removed: tuple[str, ...]
) -> None:
    with Agent(embedded, project, session="writer") as agent:
        acknowledged = [agent.think(f"thought {number}")["thoughtNumber"] for number in range(1, 6)]
        for name in removed:
            (embedded.home / name).unlink()
        _until_refused(agent, acknowledged, embedded.home / removed[0])

        def put_back() -> bool:
            return "was put back" in embedded.run("status").stdout

        wait_until(put_back, "the daemon has put the file back and tells it")
        acknowledged.append(agent.think("and it goes on")["thoughtNumber"])
        assert acknowledged == list(range(1, len(acknowledged) + 1)), "none of them is lost, and none is given twice"
        context = agent.init("load_context", limit=100)
        assert [one["thoughtNumber"] for one in context["thoughts"]] == acknowledged
    verified = embedded.run("verify")
    assert verified.returncode == 0, verified.stdout


def test_a_database_removed_just_before_the_daemon_is_stopped_is_put_back_by_that_stop(
    embedded: Installation, project: Path
) -> None:
    with Agent(embedded, project, session="writer") as agent:
        for number in range(1, 6):
            agent.think(f"thought {number}")
        pid = embedded.daemon()
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        (embedded.home / "holdfast.db").unlink()
        os.kill(pid, signal.SIGTERM)  # comes before anything else when it goes on
        os.kill(pid, signal.SIGCONT)
        wait_until(lambda: not psutil.pid_exists(pid), "the daemon has stopped")
        context = agent.init("load_context", limit=100)
        assert [one["thoughtNumber"] for one in context["thoughts"]] == [1, 2, 3, 4, 5]
        assert "was put back" in embedded.run("status").stdout
    verified = embedded.run("verify")
    assert verified.returncode == 0, verified.stdout


def _until_refused(agent: Agent, acknowledged: list[int], removed: Path) -> None:
    """Think on until the daemon has noticed, and says so, or has put the database back between two thoughts.

    What it acknowledges meanwhile counts too.
    """

    def refused() -> bool:
        text = f"while it is gone {len(acknowledged)}"
        answer = agent.answer(agent.ask("tools/call", {"name": "thought", "arguments": _thought(text)}))["result"]
        if not answer.get("isError"):
            acknowledged.append(answer["structuredContent"]["thoughtNumber"])
            return removed.name == "holdfast.db" and removed.exists()
        assert "while it was open" in answer["content"][0]["text"]
        return True

    wait_until(refused, "nothing more is acknowledged")


def _thought(text: str) -> dict[str, object]:
    return {"thought": text, "thoughtNumber": 1, "totalThoughts": 9, "nextThoughtNeeded": True}


def test_a_database_replaced_under_a_running_daemon_keeps_both(
    embedded: Installation, project: Path, work: Work
) -> None:
    with Agent(embedded, project, session="writer") as agent:
        agent.think("what was acknowledged")
        other = work.home / "holdfast.db"
        fresh = embedded.home / "other.db"
        fresh.write_bytes(other.read_bytes())
        fresh.replace(embedded.home / "holdfast.db")
        wait_until(lambda: "was put back" in embedded.run("status").stdout, "the daemon noticed by itself")
        assert [one["thought"] for one in agent.init("load_context")["thoughts"]] == ["what was acknowledged"]
    (aside,) = [path for path in embedded.home.glob("holdfast.db.replaced-*") if not path.name.endswith("-wal")]
    assert aside.read_bytes()[:16] == other.read_bytes()[:16]
    assert aside.name in embedded.run("status").stdout


def test_a_socket_that_was_removed_is_put_back(embedded: Installation, project: Path) -> None:
    embedded.serve()
    serving = embedded.daemon()
    with Agent(embedded, project, session="inside") as inside:
        inside.think("before")
        (embedded.home / "daemon.sock").unlink()
        wait_until(lambda: embedded.daemon() == serving, "the daemon is found again")
        assert inside.think("who was inside stays")["thoughtNumber"] == 2
        with Agent(embedded, project, session="later") as later:
            assert later.init("list_sessions")["sessions"]
    assert embedded.daemon() == serving


def test_a_backup_of_a_store_that_does_not_verify_is_refused_unless_it_is_wanted(
    embedded: Installation, work: Work, tmp_path: Path
) -> None:
    session = work.copied_to(embedded)
    database = apsw.Connection(str(embedded.home / "holdfast.db"))
    database.execute("UPDATE thoughts SET content = 'changed' WHERE number = 7")
    database.close()
    file = tmp_path / "kept.backup"
    refused = embedded.run("backup", str(file))
    assert refused.returncode == 1 and not file.exists()
    assert session in refused.stderr and "thought 7 was changed" in refused.stderr and "--anyway" in refused.stderr
    made = embedded.run("backup", str(file), "--anyway")
    assert made.returncode == 0 and file.exists()
    assert "thought 7 was changed" in made.stdout and "verification failed" in made.stdout


def test_a_restored_store_is_not_taken_for_a_loss(embedded: Installation, work: Work, tmp_path: Path) -> None:
    session = work.copied_to(embedded)
    file = tmp_path / "earlier.backup"
    assert embedded.run("backup", str(file)).returncode == 0
    with Agent(embedded, work.project, session="later") as agent:
        agent.think("after the backup", sessionId=session)
        later = agent.init("start_new", title="later")["session"]["id"]
    embedded.run("stop")
    assert embedded.run("restore", str(file)).returncode == 0
    assert embedded.run("verify").returncode == 0
    embedded.serve()
    status = embedded.run("status").stdout
    assert "notice" not in status and later not in status


def test_the_backup_of_the_day_is_made_and_is_what_a_loss_notice_offers_first(
    embedded: Installation, work: Work
) -> None:
    work.copied_to(embedded)
    embedded.serve()
    loops = {loop["name"] for loop in json.loads(embedded.run("status", "--json").stdout)["loops"]}
    assert "daily backup" in loops
    embedded.run("stop")
    made = embedded.home / "backups" / "daily-20260101T000000000Z.db"
    made.parent.mkdir(exist_ok=True)
    assert embedded.run("backup", str(made)).returncode == 0
    (embedded.home / "backups" / "before-0009-20260901T000000000Z.db").write_bytes(made.read_bytes())
    (embedded.home / "holdfast.db").write_bytes(b"")
    embedded.settings["HOLDFAST_DAILY_BACKUP"] = "off"
    embedded.serve()
    assert f"holdfast restore {made}" in embedded.run("status").stdout
    loops = {loop["name"] for loop in json.loads(embedded.run("status", "--json").stdout)["loops"]}
    assert "daily backup" not in loops
