"""Outside text as an agent reads it: no line of it has the form of one of Holdfast's own."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.attacks import ATTACKS, CANARY, has_form_of_ours, invisible, unquoted_lines

from holdfast.process.guard import GuardedProcess
from holdfast.text.quoting import MARK, as_data, frame_word, marked, quoted, read_signed, signed


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


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5))
def test_a_result_is_one_line_of_json_however_it_is_written(value: object) -> None:
    written = json.dumps(as_data(value), ensure_ascii=False)
    assert len(f"x{written}x".splitlines()) == 1
    assert not any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in written)


def test_a_result_keeps_what_json_escapes_itself_and_every_script() -> None:
    kept = 'a "quoted"\n\tline \x1b 漢字 עברית 👩‍👩‍👧 \xa0'
    assert as_data({"text": [kept, 1, None]}) == {"text": [kept, 1, None]}
    assert as_data("a\u2028b\u202ec\x85\U000e0041") == r"a\u2028b\u202ec\x85\U000e0041"


@pytest.mark.parametrize("attack", ATTACKS, ids=[str(number) for number in range(len(ATTACKS))])
def test_the_last_words_of_an_agent_are_quoted(attack: str) -> None:
    grip = GuardedProcess()
    assert grip.last_words == ""
    for line in attack.splitlines():
        grip.read(line)
    said = f"Claude Code has ended. {grip.last_words}"
    assert CANARY in said and not unquoted_lines(said) and not invisible(said)


@given(st.text(max_size=100), st.text(max_size=20))
def test_only_holdfast_can_sign_a_text(text: str, word: str) -> None:
    assert read_signed(signed(text)) == text
    assert read_signed(f"{word}\n{text}") is None and read_signed(text) is None
    assert read_signed(signed(text) + "x") is None
    assert frame_word(text) != frame_word(text, "")
