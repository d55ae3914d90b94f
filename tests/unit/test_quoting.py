"""Outside text as an agent reads it: no line of it has the form of one of Holdfast's own."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.attacks import ATTACKS, has_form_of_ours

from holdfast.quoting import MARK, frame_word, marked, quoted, read_signed, signed


@given(st.text(max_size=400))
def test_every_line_of_a_marked_text_has_the_mark_and_shows_what_it_holds(text: str) -> None:
    for line in marked(text).splitlines():
        assert line.startswith(MARK.strip())
        assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in line if char != "\t")


@pytest.mark.parametrize("attack", ATTACKS, ids=[str(number) for number in range(len(ATTACKS))])
def test_no_line_of_an_attack_has_the_form_of_one_of_ours(attack: str) -> None:
    assert not has_form_of_ours(marked(attack))
    assert "\n" not in quoted(attack, 200) and quoted(attack, 200).isprintable()
    assert len(quoted(attack, 80)) <= 82 and quoted(attack, 200).count('"') == 2


def test_what_people_write_stays_as_it_is() -> None:
    code = "if a < b:\n\treturn '<div>'  # 👩‍👩‍👧 é ü 漢字"
    assert marked(code) == "\n".join(f"> {line}" for line in code.splitlines())


@given(st.text(max_size=100), st.text(max_size=20))
def test_only_holdfast_can_sign_a_text(text: str, word: str) -> None:
    assert read_signed(signed(text)) == text
    assert read_signed(f"{word}\n{text}") is None and read_signed(text) is None
    assert read_signed(signed(text) + "x") is None
    assert frame_word(text) != frame_word(text, "")
