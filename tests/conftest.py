"""What all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.installation import Installation
from tests.postgres import PostgresServer, postgres_server
from tests.shared_daemon import Guest, SharedDaemons, guest, nothing_left_in_this_process

# A slow machine is no failure, and a failure must come again.
settings.register_profile("holdfast", deadline=None, derandomize=True)
settings.load_profile("holdfast")


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, as the daemon does."""
    return "asyncio"


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """A test that changes the environment or the directory of this process fails."""
    with nothing_left_in_this_process():
        yield


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """One PostgreSQL server for all tests of this worker."""
    assert not request.config.getoption("without_postgres"), (
        "--without-postgres: name the fixture in the test's arguments"
    )
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def shared_daemons() -> Iterator[SharedDaemons]:
    """One daemon per engine for all tests of this worker that only need one."""
    daemons = SharedDaemons()
    try:
        yield daemons
    finally:
        daemons.close()


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, shared_daemons: SharedDaemons, tmp_path: Path) -> Iterator[Guest]:
    """A running daemon on each engine that other tests use too; what this test leaves behind fails it."""
    with guest(shared_daemons, request.param, tmp_path) as visiting:
        yield visiting


@pytest.fixture
def shared_embedded(shared_daemons: SharedDaemons, tmp_path: Path) -> Iterator[Guest]:
    """A running daemon on the embedded store that other tests use too; what this test leaves behind fails it."""
    with guest(shared_daemons, "sqlite", tmp_path) as visiting:
        yield visiting


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Installation]:
    """A Holdfast of this test's own, on the embedded store, that nobody started yet."""
    installation = Installation(tmp_path / "holdfast")
    try:
        yield installation
    finally:
        installation.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project directory."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder
