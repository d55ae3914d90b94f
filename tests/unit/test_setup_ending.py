"""How setup ends: what it says of unfinished work, and that nothing there fails it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.registry import AGENTS
from holdfast.cli import setup
from holdfast.config import read_settings
from holdfast.errors import NoDaemon
from holdfast.setup.ending import IndexOffer, unfinished_lines

WORK = {
    "project": "/home/me/fence",
    "asked": "Mend the fence.",
    "left": "2 of 5 steps open",
    "cut_off": True,
    "directory": "/home/me/my fence",
    "resume": ["claude", "--resume", "5f0c"],
    "resumable": True,
}
COMMAND = "cd '/home/me/my fence' && claude --resume 5f0c"


@pytest.mark.parametrize(
    ("work", "more", "first", "second"),
    [
        ([WORK], 0, "1 conversation was cut off:", f"  Mend the fence. (2 of 5 steps open): {COMMAND}"),
        ([WORK, WORK | {"cut_off": False}], 0, "2 conversations were left unfinished:", None),
        ([WORK], 1, "2 conversations were left unfinished:", None),
        (
            [WORK | {"resumable": False}],
            0,
            "1 conversation was cut off:",
            "  /home/me/fence: Mend the fence. (2 of 5 steps open; its transcript is gone)",
        ),
    ],
)
def test_each_conversation_is_a_line_with_how_to_continue_it(
    work: list[dict[str, Any]], more: int, first: str, second: str | None
) -> None:
    lines = unfinished_lines({"work": work, "more": more})
    assert lines[0] == first and second in (None, lines[1])


def test_what_fails_at_the_end_fails_no_setup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any) -> dict[str, Any]:
        raise NoDaemon("It does not answer.")

    monkeypatch.setattr(setup, "ask_or_do", fails)
    setup._end(AGENTS["claude"], read_settings({}, home=str(tmp_path)), asks=True)
    assert "could not be searched for: It does not answer." in capsys.readouterr().err


def test_the_offer_is_made_once(tmp_path: Path) -> None:
    offer = IndexOffer(tmp_path / "home")
    made = [offer.is_due]
    offer.note()
    assert [*made, offer.is_due, IndexOffer(tmp_path / "home").is_due] == [True, False, False]
