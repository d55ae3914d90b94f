"""What is told first, how much, and that it fits."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.briefing.model import MAX_BRIEFING_CHARS, TOKENS, BriefingSetting, Occasion, fitting, joined, tokens
from holdfast.briefing.settings import FILE, BriefingSettingUnreadable, briefing_setting, budget
from holdfast.capability.briefing import Item
from holdfast.text.quoting import quoted

ITEMS = st.builds(
    Item,
    kind=st.sampled_from(["request", "task", "read"]),
    rank=st.integers(0, 90),
    text=st.text(max_size=400),
    more=st.none() | st.text(min_size=1, max_size=30),
    shorter=st.none() | st.text(max_size=40),
)


@given(st.lists(ITEMS, max_size=40), st.integers(50, 5_000))
def test_a_briefing_is_within_its_budget_whatever_there_is_to_tell(items: list[Item], limit: int) -> None:
    frame = "[frame]"
    text = joined(frame, fitting(items, limit, frame))
    assert tokens(text) <= limit + 1 and len(text) <= MAX_BRIEFING_CHARS


@given(st.lists(ITEMS, max_size=20))
def test_the_most_needed_comes_first_and_each_text_once(items: list[Item]) -> None:
    told = fitting(items, 100_000)
    assert [item.rank for item in told] == sorted(item.rank for item in told)
    assert len({item.text for item in told}) == len(told)


def test_what_does_not_fit_whole_is_told_shorter_before_it_is_left_out() -> None:
    long = Item("thoughts", 1, "x" * 1_000, shorter="short")
    assert [item.text for item in fitting([long], 50)] == ["short"]
    assert fitting([Item("read", 1, "x" * 1_000)], 50) == []


def test_less_needed_things_do_not_push_out_what_is_needed_more() -> None:
    needed, rest = Item("request", 0, "y" * 100), [Item("read", 60, f"{number} " + "x" * 100) for number in range(50)]
    assert fitting([*rest, needed], 100)[0] == needed


def test_nothing_to_tell_is_no_text() -> None:
    assert joined("[frame]", []) == ""


@given(st.text())
def test_quoted_text_is_one_line_and_cannot_end_its_quotes(text: str) -> None:
    shown = quoted(text, 100)
    assert "\n" not in shown and '"' not in shown[1:-1] and "`" not in shown and "<" not in shown
    assert len(shown) <= 102


@pytest.mark.parametrize(
    ("occasion", "wanted", "expected"),
    [
        (Occasion.STARTUP, None, 400),
        (Occasion.STARTUP, BriefingSetting.FULL, 1_200),
        (Occasion.STARTUP, BriefingSetting.OFFER, 400),
        (Occasion.CRASH, None, 1_200),
        (Occasion.CRASH, BriefingSetting.OFFER, 400),
        (Occasion.COMPACT, BriefingSetting.OFFER, 400),
        (Occasion.COMPACT, BriefingSetting.OFF, 0),
        (Occasion.CLEAR, None, TOKENS[Occasion.CLEAR]),
    ],
)
def test_how_much_each_occasion_may_cost(occasion: Occasion, wanted: BriefingSetting | None, expected: int) -> None:
    assert budget(occasion, wanted) == expected


def test_the_environment_is_stronger_than_the_project(tmp_path: Path) -> None:
    assert briefing_setting(None, tmp_path) is None
    file = tmp_path / FILE
    file.parent.mkdir()
    file.write_text('mode = "offer"\n')
    assert briefing_setting(None, tmp_path) is BriefingSetting.OFFER
    assert briefing_setting("off", tmp_path) is BriefingSetting.OFF


@pytest.mark.parametrize("content", [b"mode = ", b'mode = "loud"', b"mode = 3", b"", b"\xff", b"x" * 20_000])
def test_a_setting_that_says_nothing_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / FILE
    file.parent.mkdir()
    file.write_bytes(content)
    with pytest.raises(BriefingSettingUnreadable, match=r"briefing\.toml"):
        briefing_setting(None, tmp_path)
