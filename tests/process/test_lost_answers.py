"""An answer that is lost on its way from the daemon: the relay repeats the call, and it takes effect once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from tests.installation import Installation, wait_until
from tests.postgres import PostgresServer, fresh_database
from tests.process.agent import Agent
from tests.process.lost_answers import LostAnswers
from tests.process.test_bridge import write_targets
from tests.repository import Repository

Losing = Callable[..., dict[str, Any]]


@contextmanager
def losing(embedded: Installation, tmp_path: Path, project: Path, *, killed: bool) -> Iterator[tuple[Agent, Losing]]:
    """An agent, and how it calls a tool whose first answer is lost; `killed`: with every other one the daemon."""

    def die() -> None:
        embedded.kill_daemon()
        embedded.serve()

    front = tmp_path / "front"
    with LostAnswers(embedded, front) as door, Agent(embedded, project, env={"HOLDFAST_HOME": str(front)}) as agent:

        def call(tool: str, **arguments: Any) -> dict[str, Any]:
            before = len(door.lost)
            door.lose_next(die if killed and before % 2 == 0 else lambda: None)  # a start takes two seconds
            reply = agent.call(tool, **arguments)
            assert len(door.lost) == before + 1, "no answer was lost"
            return reply

        yield agent, call


def _notices(holdfast: Installation) -> list[str]:
    query = "SELECT text FROM notices"
    if url := holdfast.settings.get("HOLDFAST_DATABASE_URL"):
        with psycopg.connect(url) as server:
            return [str(row[0]) for row in server.execute(query.encode()).fetchall()]
    database = apsw.Connection(str(holdfast.home / "holdfast.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return [str(row[0]) for row in database.execute(query).fetchall()]
    finally:
        database.close()


# How an answer gets lost does not depend on the engine, so each way is tried with one of them.
@pytest.mark.parametrize(
    ("engine", "killed"), [("sqlite", True), ("postgres", False)], ids=["daemon-killed", "connection-cut"]
)
def test_a_call_whose_answer_is_lost_takes_effect_once(
    embedded: Installation, tmp_path: Path, postgres: PostgresServer, engine: str, killed: bool
) -> None:
    if engine == "postgres":
        embedded.settings["HOLDFAST_DATABASE_URL"] = fresh_database(postgres)
    repository = Repository(tmp_path / "targets" / "mine")
    write_targets(embedded, tmp_path / "targets", ["mine", "theirs"])
    embedded.serve()
    with losing(embedded, tmp_path, repository.path, killed=killed) as (agent, losing_call):
        wait_until(lambda: "mine" in agent.call("queue_status")["targets"], "the daemon has read teams.json")

        agent.call("session_start", objective="Survive")
        evidence = f"README.md {repository.sha256('README.md')}"
        agent.call("record_evidence", phase="CONTEXT_RETRIEVAL", evidence_type="content_hash", evidence=evidence)
        assert losing_call("advance_phase")["phase"] == "CONTEXT_LOADED"
        assert agent.call("get_blocked_reason")["phase"] == "CONTEXT_LOADED"

        repository.write("code.py", "print('work')\n")
        repository.commit()
        ended = losing_call("session_end", summary="It survived.")
        assert (ended["status"], ended["commit_sha"]) == ("COMPLETE", repository.head())

        assert losing_call("teams_notify", toTeam="theirs", message="The port is 80.")["status"] == "kept"
        assert _notices(embedded) == ["The port is 80."]

        message = agent.call("send_message", target="mine", message="Look at this.")["id"]
        assert losing_call("take_message")["id"] == message
        put_back = losing_call("finish_message", id=message, outcome="later")
        assert (put_back["id"], put_back["status"], put_back["waiting"]) == (message, "pending", 1)
        taken = agent.call("take_message")
        assert (taken["id"], taken["attempt"]) == (message, 2), "it was put back once"
        agent.call("finish_message", id=message, outcome="done")


def test_a_tool_use_repeated_by_a_new_relay_takes_effect_once(embedded: Installation, tmp_path: Path) -> None:
    """The relay is killed between effect and answer; the agent's own id of the call tells that it is the same."""
    repository = Repository(tmp_path / "project")
    write_targets(embedded, tmp_path / "targets", ["theirs"])
    embedded.serve()
    front = tmp_path / "front"
    call = {"name": "advance_phase", "arguments": {}, "_meta": {"claudecode/toolUseId": "toolu_1"}}
    with LostAnswers(embedded, front) as door:
        first = Agent(embedded, repository.path, session="s", env={"HOLDFAST_HOME": str(front)})
        first.call("session_start", objective="Survive")
        evidence = f"README.md {repository.sha256('README.md')}"
        first.call("record_evidence", phase="CONTEXT_RETRIEVAL", evidence_type="content_hash", evidence=evidence)
        door.lose_next(first.process.kill)
        first.ask("tools/call", call)
        first.process.wait()
        first.close()
    with Agent(embedded, repository.path, session="s") as second:
        reply = second.request("tools/call", call)
        assert reply["structuredContent"]["phase"] == "CONTEXT_LOADED"
        assert second.call("get_blocked_reason")["phase"] == "CONTEXT_LOADED"
