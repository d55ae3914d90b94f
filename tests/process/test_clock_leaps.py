"""The clock leaps by thirty hours while agents are at work: nothing of theirs ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.installation import Clocked, wait_until
from tests.postgres import fresh_database
from tests.process.agent import Agent
from tests.process.test_bridge import write_targets
from tests.repository import Repository

LEAP = 30 * 3_600_000


@pytest.fixture(params=["sqlite", "postgres"])
def clocked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Clocked]:
    """A running Holdfast on each engine, with a target of the bridge."""
    installation = Clocked(tmp_path / "holdfast")
    if request.param == "postgres":
        installation.settings["HOLDFAST_DATABASE_URL"] = fresh_database(request.getfixturevalue("postgres"))
    write_targets(installation, tmp_path / "targets", ["homelab"])
    try:
        installation.serve()
        yield installation
    finally:
        installation.close()


def _leap(clocked: Clocked, milliseconds: int, agent: Agent) -> None:
    """Let the clock leap. On PostgreSQL, whose clock all daemons share, wait until this one has noticed."""
    clocked.leap(milliseconds)
    if "HOLDFAST_DATABASE_URL" in clocked.settings:

        def noticed() -> bool:
            with contextlib.suppress(AssertionError):
                return bool(agent.call("get_blocked_reason"))
            return False

        wait_until(noticed, "the leap was noticed")


def test_a_run_a_message_and_a_session_at_work_outlive_a_leap_of_the_clock(clocked: Clocked, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    with Agent(clocked, repository.path, session="at work") as agent:
        run = agent.call("session_start", objective="Work over a suspended night")["session_id"]
        agent.think("What I am at work on")
        sent = agent.call("send_message", target="homelab", message="Fix the DNS record")["id"]
        assert agent.call("take_message", target="homelab")["id"] == sent
        for leap in (LEAP, -LEAP):
            _leap(clocked, leap, agent)
            with Agent(clocked, repository.path, session=f"newcomer {leap}") as newcomer:
                assert newcomer.init("load_context")["heldByOthers"], "a live caller's session is not given away"
                assert run in newcomer.refused("session_start", objective="Another"), "the run goes on"
                assert "id" not in newcomer.call("take_message", target="homelab"), "it is being worked on"
            assert agent.call("validate_gate", phase="ALL")
        assert agent.call("finish_message", id=sent, outcome="done", reply="Fixed.")
        clocked.later(25 * 3_600_000)
        assert agent.refused("get_blocked_reason").startswith("E_NO_SESSION"), "a day that really passed"
