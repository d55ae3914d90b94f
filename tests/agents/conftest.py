"""What every test with a real agent stands on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agents import agent_world, serena_environment, teams_world
from tests.agents.teams_world import Company
from tests.installation import Installation


def pytest_collection_finish(session: pytest.Session) -> None:
    """Where tests with a Serena were selected, it is made while the others run."""
    needed = any(hasattr(getattr(item, "module", None), "serena_program") for item in session.items)
    if needed and not session.config.option.collectonly:
        serena_environment.make_ahead()


@pytest.fixture
def holdfast(embedded: Installation) -> Installation:
    """A running Holdfast of this test's own; when the test ends, no process of it may be left."""
    embedded.serve()
    return embedded


@pytest.fixture
def made(tmp_path: Path) -> Iterator[agent_world.World]:
    """Claude Code as a team's agent, with a scripted model."""
    with agent_world.world("claude", tmp_path) as made:
        yield made


@pytest.fixture(scope="session")
def company() -> Iterator[Company]:
    """One daemon with many teams for all tests of this worker that do not end, damage or configure it."""
    company = Company()
    try:
        yield company
    finally:
        company.close()


@pytest.fixture
def world(company: Company) -> Iterator[teams_world.World]:
    """Three teams that no other test uses, on a daemon that others use too."""
    with company.world() as world:
        yield world


@pytest.fixture
def own_world(tmp_path: Path) -> Iterator[teams_world.World]:
    """Three teams on a daemon of this test's own; the first caller starts it."""
    with teams_world.own_world(tmp_path) as world:
        yield world
