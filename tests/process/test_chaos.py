"""A short chaos run: clients at work while daemon and relays are killed, and everything they were told holds."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from tests.chaos.report import excerpts
from tests.chaos.runs import SHORT, Wanted, run

pytestmark = pytest.mark.early


@pytest.mark.parametrize("engine", SHORT)
def test_nothing_is_lost_and_nothing_happens_twice_while_processes_are_killed(engine: str) -> None:
    wanted = Wanted(1, (engine,), SHORT[engine], seconds=1.0, compiler=False)
    with tempfile.TemporaryDirectory(prefix="hf-chaos-", dir="/tmp") as folder:  # a socket's path must be short
        results = run(wanted, Path(folder))
    assert [result.fault for result in results] == list(SHORT[engine])
    found = "\n".join(text for result in results for text in excerpts(result, "make chaos SEED=1"))
    assert not found, found
