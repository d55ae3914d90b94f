"""Shell commands are read to their end, whatever somebody wrote."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.briefing.ledger.shell import MAX_TEXT, read

SCRAPS = st.sampled_from([*"gitcommpush -C$(){}`'\"\\<>|&;#=\n\t E", "git commit", "bash -c ", "<<E\n", "cd x"])


@given(st.lists(SCRAPS).map("".join))
def test_no_text_is_too_strange_to_be_read(command: str) -> None:
    script = read(command)
    assert all(one.scope < len(script.parents) for one in script.commands)


@given(st.text())
def test_every_word_that_is_read_stood_in_the_text(command: str) -> None:
    for one in read(command).commands:
        for word in one.words:
            assert set(word.text) <= set(command) | set("\n\t\r\a\b\x1b\f\v")


QUICK = ["$(", '"$(', "x\n", "\\", "sudo ", "env -C a ", "A=1 "]
COSTLY = ["(", "((", "$((", "`", '"${', "${", "<(", "<<E ", "bash -c '", "a=(", "{ "]


def hostile(piece: str, size: int) -> str:
    return "git commit; " + piece * (size // len(piece) + 10)


def calls(text: str) -> int:
    """How many functions are called to read a text: that is the same on every machine."""
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(counted)
    try:
        read(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("piece", [*QUICK, *COSTLY])
def test_a_hostile_text_is_read_in_one_pass(piece: str) -> None:
    assert calls(hostile(piece, 4_000)) < 4.5 * calls(hostile(piece, 1_000))


@pytest.mark.parametrize(
    ("piece", "size"),
    [
        *((piece, MAX_TEXT) for piece in QUICK),
        *((piece, MAX_TEXT // 16) for piece in COSTLY),
        *(pytest.param(piece, MAX_TEXT, marks=pytest.mark.long) for piece in COSTLY),
    ],
)
def test_a_hostile_text_hides_no_command_before_it(piece: str, size: int) -> None:
    assert [word.text for word in read(hostile(piece, size)).commands[0].words] == ["git", "commit"]
