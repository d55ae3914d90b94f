"""What every test with a real agent stands on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agents.agent_world import World, world
from tests.installation import Installation


@pytest.fixture
def holdfast(tmp_path: Path) -> Iterator[Installation]:
    """A running Holdfast of this test's own; when the test ends, no process of it may be left."""
    installation = Installation(tmp_path / "holdfast")
    try:
        installation.serve()
        yield installation
    finally:
        installation.close()


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """Claude Code as a team's agent, with a scripted model."""
    with world("claude", tmp_path) as made:
        yield made
