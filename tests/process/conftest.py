"""Real daemons on both engines for the tests that talk to them from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.installation import Installation
from tests.postgres import fresh_database
from tests.process.clients import WAYS, Way


@pytest.fixture(params=["sqlite", "postgres"])
def holdfast(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """A running Holdfast on each engine; when the test ends, no process of it may be left."""
    if request.param == "sqlite":
        yield from _installed(tmp_path, None)
    else:
        yield from _installed(tmp_path, fresh_database(request.getfixturevalue("postgres")))


@pytest.fixture(params=WAYS, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    """Every transport in every era."""
    assert isinstance(request.param, Way)
    return request.param


def _installed(folder: Path, database_url: str | None) -> Iterator[Installation]:
    installation = Installation(folder / "holdfast")
    if database_url is not None:
        installation.settings["HOLDFAST_DATABASE_URL"] = database_url
    try:
        installation.serve()
        yield installation
    finally:
        installation.close()
