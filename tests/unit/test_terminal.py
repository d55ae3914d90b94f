"""Nothing from outside steers a terminal, and what was escaped can still be read."""

from __future__ import annotations

import io
import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.terminal import ScreenedStream, one_line, say, screened, visible, write_own

STEERING = [
    "\x1b",
    "\r",
    "\x07",
    "\x08",
    "\x0b",
    "\x0c",
    "\x7f",
    "\x85",
    "\x9b",
    "\u202e",
    "\u2066",
    "\u2028",
    "\u2029",
]


@pytest.mark.parametrize("char", [*STEERING, "\u200e", "\ufeff", "\udcff", "\U000e0041"], ids=ascii)
def test_a_character_that_steers_is_escaped_so_that_json_stays_json(char: str) -> None:
    shown = visible(f"a{char}b")
    assert shown.isascii() and json.loads(f'"{shown}"') == f"a{char}b"


def test_ordinary_text_stays_as_it_is() -> None:
    text = 'naïve Ελλάδα 日本 עברית 👩‍💻 "quoted" \\ tab\there\nnext'
    assert visible(text) == text
    assert one_line("a\nb") == "a\\nb"


@given(st.text())
def test_no_control_character_but_tab_comes_through_on_one_line(text: str) -> None:
    shown = one_line(text)
    assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in shown.replace("\t", ""))
    assert len(shown.splitlines()) <= 1


def test_a_screened_stream_takes_what_its_encoding_does_not_know() -> None:
    raw = io.BytesIO()
    stream = ScreenedStream(io.TextIOWrapper(raw, encoding="ascii"))
    print("ä\x1b[2J", file=stream, flush=True)
    assert raw.getvalue() == b"\\xe4\\u001b[2J\n"


def test_only_our_own_colours_reach_a_screened_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with screened():
        write_own("\x1b[31mfault\x1b[0m ", sys.stdout)
        say("\x1b[32mok\x1b[0m\nholdfast: fine")
    assert capsys.readouterr().out == "\x1b[31mfault\x1b[0m \\u001b[32mok\\u001b[0m\\nholdfast: fine\n"
