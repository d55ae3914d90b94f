"""A test that leaves something behind for the next one is caught: in this process, and on a daemon that tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.process.agent import Agent
from tests.shared_daemon import Guest, SharedDaemons, guest, nothing_left_in_this_process

ENGINES = pytest.mark.parametrize("engine", ["sqlite", "postgres"])


def caught(daemons: SharedDaemons, engine: str, place: Path, careless: Callable[[Guest], None]) -> str:
    """What is said of a test that does this and no more."""
    place.mkdir()
    with pytest.raises(AssertionError) as raised, guest(daemons, engine, place, patience=0.1) as visiting:
        careless(visiting)
    return str(raised.value)


@ENGINES
def test_an_agent_that_is_still_connected_is_caught(shared_daemons: SharedDaemons, engine: str, tmp_path: Path) -> None:
    agents: list[Agent] = []

    def connect(visiting: Guest) -> None:
        agents.append(Agent(visiting, visiting.place, session="lingering"))
        agents[0].think("I stay.")

    try:
        assert "1 client(s)" in caught(shared_daemons, engine, tmp_path / "test", connect)
    finally:
        for agent in agents:
            agent.close()


@ENGINES
def test_a_session_in_somebody_elses_project_is_caught(
    shared_daemons: SharedDaemons, engine: str, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def think_there(visiting: Guest) -> None:
        with Agent(visiting, elsewhere, session="wanderer") as agent:
            agent.think("I am not at home.")

    assert "row(s) in sessions" in caught(shared_daemons, engine, tmp_path / "test", think_there)


def test_a_target_and_a_key_are_caught(shared_daemons: SharedDaemons, tmp_path: Path) -> None:
    def configure(visiting: Guest) -> None:
        (visiting.home / "teams.json").write_text('{"teams": {}}')
        assert visiting.run("key", "create", "planted").returncode == 0

    home = shared_daemons.get("sqlite").home
    try:
        said = caught(shared_daemons, "sqlite", tmp_path / "test", configure)
    finally:
        (home / "teams.json").unlink()
        shared_daemons.get("sqlite").run("key", "revoke", "planted")
    assert "teams.json" in said and "row(s) in api_keys" in said


@pytest.mark.parametrize("harm", ["stop", "serve", "kill_daemon", "close"])
def test_a_guest_cannot_end_what_others_use(shared_daemons: SharedDaemons, tmp_path: Path, harm: str) -> None:
    with (
        guest(shared_daemons, "sqlite", tmp_path) as visiting,
        pytest.raises(AssertionError, match="needs a daemon of its own"),
    ):
        visiting.run("stop") if harm == "stop" else getattr(visiting, harm)()


@pytest.mark.parametrize("name", ["HOLDFAST_PLANTED", "PATH"])
def test_a_changed_environment_variable_is_caught_and_put_back(name: str) -> None:
    before = os.environ.get(name)
    with pytest.raises(AssertionError, match=name), nothing_left_in_this_process():
        os.environ[name] = "/planted"
    assert os.environ.get(name) == before


def test_another_working_directory_is_caught_and_left(tmp_path: Path) -> None:
    before = Path.cwd()
    with pytest.raises(AssertionError, match="working directory"), nothing_left_in_this_process():
        os.chdir(tmp_path)
    assert Path.cwd() == before
