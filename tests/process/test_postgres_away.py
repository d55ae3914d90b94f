"""PostgreSQL that is cut off, swallowed up or stopped under a running daemon, as an agent and a user see it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.installation import Installation, wait_until
from tests.postgres import PostgresServer, fresh_database, own_server
from tests.postgres_proxy import Fault, Proxy, proxied
from tests.process.agent import Agent
from tests.shared_daemon import Guest

from holdfast.cli.control import CommandFailed, ask_daemon
from holdfast.config import read_settings

STOP_LIMIT = 12.0
"""Seconds within which a daemon has stopped, on a machine that is busy; on one that is not it takes about one."""


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    with proxied(fresh_database(postgres)) as one:
        yield one


@pytest.fixture
def served(embedded: Installation, proxy: Proxy) -> Installation:
    embedded.settings["HOLDFAST_DATABASE_URL"] = proxy.url
    embedded.serve()
    return embedded


def _thought(text: str) -> dict[str, object]:
    return {"thought": text, "nextThoughtNeeded": True}


def _thoughts(agent: Agent) -> int:
    return int(agent.init("load_context")["session"]["thoughtCount"])


def _stop(holdfast: Installation) -> float:
    """Stop the daemon; how long that took."""
    began = time.monotonic()
    assert "Stopped" in holdfast.run("stop").stdout
    return time.monotonic() - began


def _failures(holdfast: Installation) -> int:
    """How often the background loop has failed that failed most."""
    return max(int(loop["failures"]) for loop in json.loads(holdfast.run("status", "--json").stdout)["loops"])


@pytest.mark.parametrize("fault", ["cut before", "cut after", "deaf after"])
def test_an_agent_is_told_the_truth_of_a_call_whose_commit_got_no_answer(
    served: Installation, proxy: Proxy, project: Path, fault: Fault
) -> None:
    with Agent(served, project) as agent:
        assert agent.think("one")["thoughtNumber"] == 1
        proxy.at_commit, proxy.of = fault, b"INSERT INTO thoughts"
        assert agent.think("two")["thoughtNumber"] == 2
        assert proxy.faults == 1
        assert agent.think("three")["thoughtNumber"] == 3
        assert _thoughts(agent) == 3


def test_a_call_into_a_black_hole_is_answered_with_a_reason_and_works_again_afterwards(
    served: Installation, proxy: Proxy, project: Path
) -> None:
    with Agent(served, project) as agent:
        agent.think("one")
        proxy.deafen()
        answer = agent.answer(agent.ask("tools/call", {"name": "thought", "arguments": _thought("lost")}))
        assert answer["result"]["isError"]
        text = answer["result"]["content"][0]["text"]
        assert "cannot be reached" in text
        assert "sekret" not in text
        assert served.run("status").returncode == 1
        proxy.hear()
        wait_until(lambda: served.run("status").returncode == 0, "the database is back")
        assert agent.think("two")["thoughtNumber"] == 2
        assert _thoughts(agent) == 2


def test_a_daemon_whose_database_was_stopped_says_so_everywhere_and_stops_soon(
    embedded: Installation, project: Path
) -> None:
    with own_server() as server:
        embedded.settings["HOLDFAST_DATABASE_URL"] = fresh_database(server)
        with Agent(embedded, project) as agent:  # its relay starts the daemon, so it has a log
            agent.think("one")
        with httpx2.Client(base_url=embedded.address(), timeout=60) as http:
            assert http.get("/readyz").json()["status"] == "ready"
            server.stop()
            wait_until(lambda: http.get("/readyz").status_code == 503, "the outage is noticed")
            refused = http.get("/readyz")
            assert "has not answered since 2" in refused.json()["detail"]
            assert str(server.folder) not in refused.text
            assert http.get("/healthz").status_code == 200
            assert http.get("/api/mcp/sessions", headers={"Authorization": "Bearer x"}).status_code == 503

            status = embedded.run("status")
            assert status.returncode == 1
            assert "trouble   the store has not answered since 2" in status.stdout
            assert "PostgreSQL server cannot be reached" in status.stdout
            told = embedded.run("status", "--json").stdout
            assert '"running": true' in told
            failed = embedded.run("queue")
            assert failed.returncode == 1
            assert "ended before it answered" not in failed.stderr
            assert "cannot be reached" in failed.stderr

            with Agent(embedded, project) as late:
                answer = late.answer(late.ask("tools/call", {"name": "thought", "arguments": _thought("late")}))
                assert "cannot be reached" in answer["result"]["content"][0]["text"]

            wait_until(lambda: _failures(embedded) >= 2, "a loop has failed again")
            assert _stop(embedded) < STOP_LIMIT
            log = (embedded.home / "daemon.log").read_text()
            assert log.count("background loop 'flush' failed") == 1
            assert log.count("Traceback") <= 1
            assert len(log) < 20_000
            assert "stopped, because" in log


def test_a_command_that_fails_unexpectedly_is_answered_and_the_daemon_lives_on(shared_embedded: Guest) -> None:
    settings = read_settings({}, home=str(shared_embedded.home))
    with pytest.raises(CommandFailed, match=r"failed unexpectedly \(KeyError\); the daemon's log says more"):
        ask_daemon(settings, "bridge-send", {})
    assert ask_daemon(settings, "status")["ready"]


def test_a_daemon_in_a_black_hole_stops_soon(served: Installation, proxy: Proxy, project: Path) -> None:
    with Agent(served, project) as agent:
        agent.think("one")
        proxy.deafen()
        agent.ask("tools/call", {"name": "thought", "arguments": _thought("under way")})
        assert _stop(served) < STOP_LIMIT
