"""The commands that look after what is stored, with and without a daemon, on both engines."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.installation import Installation
from tests.postgres import fresh_database
from tests.process.agent import Agent
from tests.shared_daemon import Guest


def _record(holdfast: Installation, project: Path, *texts: str) -> str:
    with Agent(holdfast, project, session="recorder") as agent:
        for text in texts:
            session = agent.think(text)["sessionId"]
    return str(session)


# Out of each engine and into each; tests/contract/test_store_backup.py restores every engine into every engine.
@pytest.mark.parametrize(("shared", "into"), [("sqlite", "postgres"), ("postgres", "sqlite")], indirect=["shared"])
def test_a_backup_taken_while_serving_restores_into_the_other_engine(
    shared: Guest, into: str, project: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    session = _record(shared, project, "first", "second", "third")
    file = tmp_path / "everything.backup"
    taken = shared.run("backup", str(file))
    assert taken.returncode == 0 and "verified" in taken.stdout, taken.stderr
    assert shared.run("backup", str(file)).returncode == 1, "an existing file is not overwritten"
    other = Installation(tmp_path / "other")
    if into == "postgres":
        other.settings["HOLDFAST_DATABASE_URL"] = fresh_database(request.getfixturevalue("postgres"), migrated=False)
    try:
        restored = other.run("restore", str(file))
        assert restored.returncode == 0, restored.stderr
        assert other.run("verify").returncode == 0
        with Agent(other, project, session="elsewhere") as agent:
            context = agent.init("load_context")
            assert context["session"]["id"] == session
            assert [thought["thought"] for thought in context["thoughts"]] == ["first", "second", "third"]
            found = agent.call("session", operation="search", query="second")
            assert found["results"][0]["thoughtNumber"] == 2
            refused = other.run("restore", str(file))
            assert refused.returncode == 1 and "holdfast stop" in refused.stderr, "not under a daemon that serves"
    finally:
        other.close()


def test_a_paused_project_records_nothing(shared_embedded: Guest, project: Path) -> None:
    assert "paused" in shared_embedded.run("pause", str(project)).stdout
    with Agent(shared_embedded, project) as agent:
        assert agent.think("off the record")["recorded"] is False
        assert agent.init("list_sessions")["sessions"] == []
        assert "on" in shared_embedded.run("resume-recording", str(project)).stdout
        assert agent.think("on the record")["thoughtNumber"] == 1


def test_verify_proves_that_a_changed_thought_was_changed(embedded: Installation, project: Path) -> None:
    import apsw

    session = _record(embedded, project, "as it was said", "and after it")
    assert embedded.run("stop").returncode == 0
    assert embedded.run("verify").returncode == 0
    connection = apsw.Connection(str(embedded.home / "holdfast.db"))
    connection.execute("UPDATE thoughts SET content = 'as it was not said' WHERE number = 1")
    connection.close()
    found = embedded.run("verify")
    assert found.returncode == 1
    assert session in found.stdout and "thought 1 was changed" in found.stdout


def test_help_shows_the_way(embedded: Installation) -> None:
    shown = embedded.run("--help")
    assert shown.returncode == 0 and "setup" in shown.stdout and "holdfast commands" in shown.stdout
    assert embedded.run("--version").stdout.startswith("holdfast ")
    assert "--toolsets" in embedded.run("mcp", "--help").stdout
    assert embedded.run("sevre").returncode == 2
