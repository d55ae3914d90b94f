"""What a person is shown of a request before allowing it: all of it, as it is, and nothing that looks like ours."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import unicodedata
from typing import Any

import pytest

from holdfast.teams.permissions import LONGEST, shown_input, written
from holdfast.text.terminal import QUOTE_MARK, quoted_block, visible

UNSEEN = {
    "escape": "\x1b[2J\x1b[H",
    "return": "\r",
    "backspace": "\b\b\b",
    "bell, nul, delete": "\a\0\x7f",
    "C1": "\x9b2J\x85",
    "right to left": "\u202e\u2066\u2069\u200f\u061c",
    "zero width": "\u200b\u200c\u200d\u2060\ufeff",
    "separators": "\u2028\u2029\x0b\x0c\x1c",
    "blanks that count as letters": "\u3164\u115f\u1160\uffa0\u2800\u17b4",
    "variation selectors": "\ufe0f\U000e0100\U000e01ef\u180b\u034f",
    "tags": "\U000e0041\U000e007f",
    "soft hyphen, other spaces": "\u00ad\u00a0\u2003\u3000",
    "halves of characters": "\ud800\udfff",
    "private use, unassigned": "\ue000\U0010ffff\u0378",
}


@pytest.mark.parametrize("kind", UNSEEN)
def test_what_a_person_would_not_see_is_escaped_in_values_and_names(kind: str) -> None:
    text = UNSEEN[kind]
    unseen = {char for char in text if not " " <= char <= "~"}
    for given in ({"command": f"ls {text}; rm"}, {f"com{text}mand": "ls"}, {"a": [{"b": text}]}):
        shown = visible(quoted_block(shown_input(json.dumps(given))))
        assert not unseen & set(shown), ascii(shown)


@pytest.mark.parametrize("given", [{"a": "x" * 9_000}, {"a": "é" * 900}, {"a": ["b", {"c": None}]}, {}, {"": ""}])
def test_all_of_it_is_shown(given: dict[str, Any]) -> None:
    shown = quoted_block(shown_input(written(given) or ""))
    assert json.loads(shown.replace(QUOTE_MARK, "")) == given


@pytest.mark.parametrize("columns", [20, 80, 133])
@pytest.mark.parametrize("filler", [" ", "x", "漢", "e\u0301"], ids=["spaces", "letters", "wide", "combined"])
def test_no_line_on_the_screen_looks_like_one_of_ours(
    columns: int, filler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal breaks a long line wherever it ends; what comes next would stand at the left."""
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_, **__: os.terminal_size((columns, 24)))
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdout", terminal)
    forged = "Allowed: Read of team backend."
    for length in range(columns + 2):
        given = {"command": f"{filler * length}{forged}\n{forged}\r\n    {forged}"}
        lines = quoted_block(shown_input(json.dumps(given))).split("\n")
        assert all(line.startswith(QUOTE_MARK) and _width(line) <= columns for line in lines), lines
        whole = "".join(line.removeprefix(QUOTE_MARK) for line in lines)
        assert whole.count(forged) == 3


def _width(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)


@pytest.mark.parametrize(
    "given",
    [{"a": "x" * 1_000_000}, {"a" * LONGEST: 1}, {"a": ["x"] * LONGEST}, {"a": "\u3164" * (LONGEST // 5)}],
    ids=["a megabyte", "a long name", "many values", "escapes"],
)
def test_what_is_too_long_is_not_shown_at_all(given: dict[str, Any]) -> None:
    assert written(given) is None


def test_what_is_nested_too_deeply_is_refused_and_never_fails_the_one_who_looks() -> None:
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]
    assert written({"a": deep}) is None
    shown_input("[" * 5_000 + "]" * 5_000)
