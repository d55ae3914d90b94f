"""Texts for chats: split where it hurts least, marked without markup that could break, at a pace that is allowed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bridge.chat import Limit
from holdfast.bridge.chat.formatting import formatted
from holdfast.bridge.chat.pace import Pace
from holdfast.bridge.chat.splitting import FENCE, clean, open_fence, split, units

LIMIT = 256
BITS = st.sampled_from(
    ["word ", "One. ", "\n", "\n\n", "```py\n", "\n```\n", "😀", "é", "x" * 90, "😀" * 140, "` ", " "]
)
TEXTS = st.lists(BITS, max_size=60).map("".join) | st.text(max_size=800)


@given(TEXTS)
def test_no_piece_is_longer_than_the_chat_takes(text: str) -> None:
    for piece in split(text, LIMIT):
        assert piece.strip()
        assert units(piece) <= LIMIT
        assert len(piece.encode("utf-16-le")) // 2 == units(piece)


@given(TEXTS)
def test_nothing_but_blanks_and_repeated_fences_differs_after_splitting(text: str) -> None:
    def words(value: str) -> str:
        return re.sub(r"\s+", "", re.sub(r"(?m)^```[^\n]*$", "", value))

    assert words("\n".join(split(text, LIMIT))) == words(clean(text))


@given(st.lists(st.sampled_from(["a line of code\n", "another = line\n", "\n"]), min_size=40, max_size=80))
def test_a_code_block_that_is_cut_is_closed_and_opened_again(lines: list[str]) -> None:
    pieces = split(f"Look:\n```python\n{''.join(lines)}```\nDone.", LIMIT)
    assert len(pieces) > 1
    for piece in pieces:
        assert open_fence(piece) is None
    assert sum(piece.startswith("```python\n") for piece in pieces[1:]) >= 1


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (f"{'a' * 150}\n\n{'b' * 60}\n{'c' * 150}", "a" * 150),
        (f"{'a' * 150}\n{'b' * 20}. {'c' * 150}", "a" * 150),
        (f"{'a' * 150} {'b' * 20}. {'c' * 150}", f"{'a' * 150} {'b' * 20}."),
        (f"{'a' * 150} {'b' * 20} {'c' * 150}", f"{'a' * 150} {'b' * 20}"),
    ],
)
def test_a_text_is_cut_after_a_paragraph_else_a_line_else_a_sentence_else_a_word(text: str, first: str) -> None:
    assert split(text, LIMIT)[0] == first


def test_halves_of_surrogate_pairs_and_nul_bytes_never_reach_a_chat() -> None:
    assert split("a\0b\ud83dc", LIMIT) == ["ab\ufffdc"]


@given(TEXTS)
def test_marks_always_lie_within_the_text(text: str) -> None:
    plain, spans = formatted(clean(text))
    length = units(plain)
    assert length <= units(clean(text))
    for span in spans:
        assert span.length > 0
        assert 0 <= span.offset <= span.offset + span.length <= length


@pytest.mark.parametrize(
    ("text", "plain", "marked"),
    [
        ("plain *text* with _odd_ [marks", "plain *text* with _odd_ [marks", []),
        ("a **bold** word", "a bold word", [("bold", "bold", None)]),
        ("run `ls -l` now", "run ls -l now", [("code", "ls -l", None)]),
        ("## Heading", "Heading", [("bold", "Heading", None)]),
        ("😀 [docs](https://example.org/a)", "😀 docs", [("text_link", "docs", "https://example.org/a")]),
        ("[no](javascript:x)", "[no](javascript:x)", []),
        ("```py\nx = '**a**'\n```", "x = '**a**'", [("pre", "x = '**a**'", "py")]),
        ("```\nnever closed", "```\nnever closed", []),
    ],
)
def test_markdown_becomes_plain_text_with_marks(
    text: str, plain: str, marked: list[tuple[str, str, str | None]]
) -> None:
    got, spans = formatted(text)
    assert got == plain
    raw = got.encode("utf-16-le")
    assert [
        (span.kind, raw[span.offset * 2 : (span.offset + span.length) * 2].decode("utf-16-le"), span.detail)
        for span in spans
    ] == marked


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 3)), max_size=80),
    st.integers(1, 5),
    st.integers(6, 12),
)
def test_no_window_of_time_ever_holds_more_than_a_limit_allows(
    tries: list[tuple[str, float]], few: int, many: int
) -> None:
    now = 0.0
    pace = Pace(lambda: now)
    sent: dict[str, list[float]] = {"a": [], "b": []}
    for chat, later in tries:
        now += later
        limits = [Limit(chat, few, 1.0), Limit(chat, many, 20.0)]
        while (more := pace.wait(chat, limits)) > 0:
            now += more
        pace.count(limits)
        sent[chat].append(now)
    for times in sent.values():
        for count, seconds in ((few, 1.0), (many, 20.0)):
            for first, last in zip(times, times[count:], strict=False):
                assert last - first >= seconds - 1e-6


def test_one_chat_at_its_limit_does_not_slow_another() -> None:
    pace = Pace(lambda: 0.0)
    pace.count([Limit("a", 1, 60.0)])
    assert pace.wait("a", [Limit("a", 1, 60.0)]) == 60.0
    assert pace.wait("b", [Limit("b", 1, 60.0)]) == 0.0


def test_a_pause_that_is_asked_for_is_kept_there_alone_and_never_shortened() -> None:
    pace = Pace(lambda: 100.0)
    pace.rest("a", 30.0)
    pace.rest("a", 5.0)
    assert pace.wait("a", []) == 30.0
    assert pace.wait("b", []) == 0.0


def test_a_fence_of_the_splitter_is_a_fence_of_the_formatter() -> None:
    for piece in split(f"{FENCE}py\n{'x = 1' * 20}\n{'y = 2' * 40}\n{FENCE}", LIMIT):
        assert [span.kind for span in formatted(piece)[1]] == ["pre"]
