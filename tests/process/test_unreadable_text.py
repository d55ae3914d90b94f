"""A byte that is not UTF-8 costs that character, and nothing else of the project."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from tests.installation import Installation
from tests.postgres import fresh_database
from tests.process.agent import Agent

from holdfast.handoff.signing import own_signer

BROKEN = "UPDATE thoughts SET content = CAST(X'74686520626f61726473ff' AS TEXT) WHERE number = 2"


def _with_an_unreadable_byte(holdfast: Installation, project: Path) -> str:
    """Three thoughts, a stopped daemon, and a byte in the second thought that is not UTF-8; the session's id."""
    with Agent(holdfast, project, session="before") as agent:
        session = agent.init("start_new", title="The fence")["session"]["id"]
        for text in ("the posts stand", "the boards are oak", "the gate is open"):
            agent.think(text, sessionId=session)
    assert holdfast.run("stop").returncode == 0
    database = apsw.Connection(str(holdfast.home / "holdfast.db"))
    database.execute(BROKEN)
    database.close()
    return str(session)


def test_one_unreadable_byte_in_a_thought_is_shown_as_such_named_by_verify_and_blocks_nothing(
    embedded: Installation, project: Path
) -> None:
    session = _with_an_unreadable_byte(embedded, project)
    with Agent(embedded, project, session="after") as agent:
        assert agent.init("load_context", sessionId=session)["success"] is True
        read = agent.call("session", operation="get", sessionId=session, **{"from": 1, "to": 3})
        assert [thought["thought"] for thought in read["thoughts"]] == [
            "the posts stand",
            "the boards\ufffd",
            "the gate is open",
        ]
        assert "the boards\ufffd" in str(agent.call("session", operation="export", sessionId=session))
        found = agent.call("session", operation="search", query="gate")
        assert session in str(found)
        assert agent.think("and goes on", sessionId=session)["thoughtNumber"] == 4
    verified = embedded.run("verify")
    assert verified.returncode == 1
    assert f"session {session}" in verified.stdout and "thought 2 was changed" in verified.stdout
    assert "Traceback" not in verified.stdout + verified.stderr


@pytest.mark.parametrize("into", ["sqlite", "postgres"])
def test_a_backup_with_an_unreadable_byte_says_so_and_restores_into_either_engine(
    embedded: Installation, into: str, project: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    session = _with_an_unreadable_byte(embedded, project)
    file = tmp_path / "everything.backup"
    taken = embedded.run("backup", str(file), "--anyway")
    assert file.exists(), taken.stdout + taken.stderr
    assert "Damaged text, not UTF-8: thoughts, row_id 2: content" in taken.stdout
    other = Installation(tmp_path / "other")
    if into == "postgres":
        other.settings["HOLDFAST_DATABASE_URL"] = fresh_database(request.getfixturevalue("postgres"), migrated=False)
    try:
        restored = other.run("restore", str(file))
        assert restored.returncode == 0, restored.stderr
        assert "Damaged text, not UTF-8: thoughts, row_id 2: content" in restored.stdout
        with Agent(other, project, session="elsewhere") as agent:
            thoughts = agent.init("load_context", sessionId=session)["thoughts"]
            assert [one["thought"] for one in thoughts] == ["the posts stand", "the boards\ufffd", "the gate is open"]
            assert session in str(agent.call("session", operation="search", query="boards"))
        verified = other.run("verify")
        assert verified.returncode == 1
        assert "thought 2 was changed" in verified.stdout
    finally:
        other.close()


def test_a_project_with_an_unreadable_byte_can_be_handed_off_and_adopted(
    embedded: Installation, project: Path, tmp_path: Path
) -> None:
    session = _with_an_unreadable_byte(embedded, project)
    archive = tmp_path / "fence.handoff"
    done = embedded.run("handoff", str(project), "-o", str(archive))
    assert done.returncode == 0, done.stderr
    assert f"Reasoning session {session} is damaged (changed thoughts 2)" in done.stdout + done.stderr
    there = tmp_path / "there"
    there.mkdir()
    other = Installation(tmp_path / "other")
    try:
        signer = own_signer(embedded.home).fingerprint
        adopted = other.run("adopt", str(archive), "--project", str(there), "--trust-signer", signer)
        assert adopted.returncode == 0, adopted.stderr
        with Agent(other, there, session="elsewhere") as agent:
            assert len(agent.init("load_context", sessionId=session)["thoughts"]) == 3
        assert "thought 2 was changed" in other.run("verify").stdout
    finally:
        other.close()
