"""A damaged database never starts silently empty: it is set aside, salvaged, and the loss is told by name."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest
from tests.installation import Installation, wait_until
from tests.process.agent import Agent

PAGE = 4096


def _spoil(database: Path, table: str) -> None:
    """Overwrite a page in the middle of a table."""
    connection = apsw.Connection(str(database))
    pages = [
        page
        for (page,) in connection.execute(
            "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno", (table,)
        )
    ]
    connection.close()
    with database.open("r+b") as file:
        file.seek((pages[len(pages) // 2] - 1) * PAGE)
        file.write(b"\xa5" * PAGE)


@dataclass(frozen=True)
class Work:
    """Sixty thoughts of one session, written once, and a home for each test that spoils them."""

    project: Path
    session: str
    home: Path

    def copied_to(self, holdfast: Installation) -> str:
        """Make it the work in this home, whose daemon never ran; the session's id."""
        shutil.copytree(self.home, holdfast.home)
        (holdfast.home / "stopped").unlink()
        return self.session


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """What a daemon that was stopped left behind."""
    project = tmp_path_factory.mktemp("project")
    holdfast = Installation(tmp_path_factory.mktemp("filled") / "holdfast")
    try:
        with Agent(holdfast, project, session="filler") as agent:
            for number in range(60):
                reply = agent.think(f"thought {number} " + "with many words " * 40)
    finally:
        holdfast.close()
    return Work(project, str(reply["sessionId"]), holdfast.home)


def _notices(holdfast: Installation) -> str:
    shown = holdfast.run("status", "--json")
    return "\n".join(json.loads(shown.stdout).get("notices", []))


def test_damage_found_at_the_start_is_salvaged_and_told(embedded: Installation, work: Work) -> None:
    session = work.copied_to(embedded)
    _spoil(embedded.home / "holdfast.db", "thoughts")
    (embedded.home / "corrupt").write_text("as the daemon notes it\n")
    embedded.serve()
    notices = _notices(embedded)
    assert session in notices and "lost thoughts" in notices.lower()
    assert list(embedded.home.glob("holdfast.db.corrupt-*")) and list(embedded.home.glob("salvage-*.txt"))
    assert "notice" in embedded.run("status").stdout
    with Agent(embedded, work.project, session="filler") as agent:
        found = agent.init("load_context", sessionId=session)
        assert len(found["thoughts"]) > 0
        assert agent.think("and it goes on", sessionId=session)["thoughtNumber"] == 61
    verified = embedded.run("verify")
    assert verified.returncode == 1 and f"PROBLEM session {session}: lost thoughts" in verified.stdout
    assert embedded.at_terminal("acknowledge-loss").returncode == 0
    verified = embedded.run("verify")
    assert verified.returncode == 0, verified.stdout
    assert "known" in verified.stdout and session in verified.stdout


def test_damage_met_while_running_restarts_the_daemon_into_a_salvage(embedded: Installation, work: Work) -> None:
    session = work.copied_to(embedded)
    embedded.serve()
    served = embedded.daemon()
    _spoil(embedded.home / "holdfast.db", "thoughts")
    with Agent(embedded, work.project, session="reader") as agent:
        for start in range(1, 61, 20):
            agent.answer(
                agent.ask(
                    "tools/call",
                    {
                        "name": "session",
                        "arguments": {"operation": "get", "sessionId": session, "from": start, "to": start + 19},
                    },
                )
            )
        wait_until(lambda: session in _notices(embedded), "the daemon is back and tells what was lost")
        assert agent.think("the agent goes on", sessionId=session)["thoughtNumber"] == 61
        assert embedded.daemon() == served
        log = embedded.home / "daemon.log"
        assert not log.exists() or "takes over" not in log.read_text(), "a relay's daemon came in between"


def _one_schema_older(database: Path) -> None:
    """Take the last migration back, so that the next start has to repeat it."""
    connection = apsw.Connection(str(database))
    connection.execute("DROP TABLE session_register")
    for column in ("sessions", "heads_sum", "epoch"):
        connection.execute(f"ALTER TABLE event_head DROP COLUMN {column}")
    connection.execute("DELETE FROM schema_migrations WHERE number = (SELECT max(number) FROM schema_migrations)")
    connection.close()


@pytest.mark.parametrize(
    ("table", "migrating", "started_by"),
    [
        ("connections", False, "hand"),
        ("connections", False, "relay"),
        ("asks", False, "hand"),
        ("daemons", False, "hand"),
        ("thoughts", True, "hand"),
        ("thoughts", True, "relay"),
    ],
)
def test_damage_met_while_starting_is_salvaged_by_the_same_start(
    embedded: Installation, work: Work, table: str, migrating: bool, started_by: str
) -> None:
    """Header and schema read well; what the services read first, or a migration, does not."""
    work.copied_to(embedded)
    if migrating:
        _one_schema_older(embedded.home / "holdfast.db")
    _spoil(embedded.home / "holdfast.db", table)
    if started_by == "hand":
        embedded.serve()
    with Agent(embedded, work.project, session="filler") as agent:
        assert agent.init("list_sessions")["sessions"]
        assert "damaged" in _notices(embedded)
    assert list(embedded.home.glob("holdfast.db.corrupt-*"))


def test_a_start_that_meets_damage_after_a_salvage_says_so_instead_of_starting_for_ever(
    embedded: Installation, work: Work
) -> None:
    work.copied_to(embedded)
    _spoil(embedded.home / "holdfast.db", "daemons")
    refused = embedded.run("serve", env={"HOLDFAST_SALVAGING": "1"})  # as a daemon tells the one that it becomes
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert "A salvage did not repair it" in line and "holdfast restore" in line


def test_a_command_that_meets_damage_says_that_the_next_start_salvages_it(embedded: Installation, work: Work) -> None:
    work.copied_to(embedded)
    _one_schema_older(embedded.home / "holdfast.db")
    _spoil(embedded.home / "holdfast.db", "thoughts")
    refused = embedded.run("resume")
    assert refused.returncode == 1
    assert "holdfast serve" in refused.stderr and "salvages" in refused.stderr
    embedded.serve()
    assert "damaged" in _notices(embedded)


def test_a_flipped_bit_in_a_create_statement_costs_no_thought(embedded: Installation, work: Work) -> None:
    session = work.copied_to(embedded)
    database = embedded.home / "holdfast.db"
    data = bytearray(database.read_bytes())
    data[data.index(b"CREATE TABLE thoughts") + 3] ^= 0x10
    database.write_bytes(data)
    embedded.serve()
    notices = _notices(embedded)
    assert "malformed database schema" in notices and "No row is known to be lost." in notices
    with Agent(embedded, work.project, session="reader") as agent:
        numbers: list[int] = []
        for start in range(1, 61, 20):
            found = agent.call("session", operation="get", sessionId=session, **{"from": start, "to": start + 19})
            numbers += [thought["thoughtNumber"] for thought in found["thoughts"]]
        assert numbers == list(range(1, 61))
        assert agent.think("and it goes on", sessionId=session)["thoughtNumber"] == 61
    verified = embedded.run("verify")
    assert verified.returncode == 0, verified.stdout


def test_a_renamed_column_in_the_schema_is_noticed_and_put_right(embedded: Installation, work: Work) -> None:
    session = work.copied_to(embedded)
    database = embedded.home / "holdfast.db"
    data = bytearray(database.read_bytes())
    data[data.index(b"title TEXT NOT NULL") + 2] ^= 0x04  # another letter: the statement is as valid as before
    database.write_bytes(data)
    embedded.serve()
    wait_until(lambda: "No row is known to be lost." in _notices(embedded), "the daemon is back and tells of it")
    with Agent(embedded, work.project, session="reader") as agent:
        assert agent.think("and it goes on", sessionId=session)["thoughtNumber"] == 61
