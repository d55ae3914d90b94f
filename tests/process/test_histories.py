"""What a fresh agent is told after each of many histories, held against a file that a person has reviewed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.installation import Clocked
from tests.process.histories import HISTORIES, History

from holdfast.briefing.model import tokens

GOLDEN = Path(__file__).parents[1] / "golden" / "histories.md"
BEGINNING = """\
# Histories, and what a fresh agent is told

Made by `HOLDFAST_WRITE_GOLDEN=1 pytest tests/process/test_histories.py` on a real daemon, through real hooks, git and
commands. Times and ids are replaced by names. Read it as the agent that is told, and as the user who pays for it.
"""


@pytest.fixture
def clocked() -> Iterator[Clocked]:
    # The length of a path decides what fits: all of them are as long as this.
    with tempfile.TemporaryDirectory(prefix="h", dir="/tmp") as folder:
        installation = Clocked(Path(folder) / "holdfast")
        installation.serve()
        try:
            yield installation
        finally:
            installation.close()


def test_after_every_history_a_fresh_agent_is_told_what_was_reviewed(clocked: Clocked) -> None:
    ahead = [0]
    parts = [BEGINNING]
    for number, (what, act) in enumerate(HISTORIES, start=1):
        place = clocked.home.parent / f"{number:02}"
        place.mkdir()
        one = History(clocked, place, ahead)
        told = one.normal(act(one))
        shown = f"```\n{told}\n```" if told else "Nothing."
        parts.append(f"## {number}. {what}\n\nAbout {tokens(told)} tokens.\n\n{shown}\n")
    text = "\n".join(parts)
    if os.environ.get("HOLDFAST_WRITE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text(), "what agents are told has changed: review it, then write the file anew"
