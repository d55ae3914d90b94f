"""A byte that is not UTF-8 costs that character, and nothing else of the project."""

from __future__ import annotations

from pathlib import Path

import apsw
from tests.installation import Installation
from tests.process.agent import Agent


def test_one_unreadable_byte_in_a_thought_is_shown_as_such_named_by_verify_and_blocks_nothing(
    embedded: Installation, project: Path
) -> None:
    with Agent(embedded, project, session="before") as agent:
        session = agent.init("start_new", title="The fence")["session"]["id"]
        for text in ("the posts stand", "the boards are oak", "the gate is open"):
            agent.think(text, sessionId=session)
    assert embedded.run("stop").returncode == 0
    database = apsw.Connection(str(embedded.home / "holdfast.db"))
    database.execute("UPDATE thoughts SET content = CAST(X'74686520626f61726473ff' AS TEXT) WHERE number = 2")
    database.close()
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
