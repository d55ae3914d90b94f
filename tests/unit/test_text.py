"""Times, ages, first lines and snippets as people and agents read them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import BadInput
from holdfast.reasoning.fulltext import Term, match_expression, terms_of
from holdfast.reasoning.search import names_match, snippet
from holdfast.text import age, clipped, counted, first_line, one_line
from holdfast.times import YEAR_10000, iso, milliseconds

LAW = settings(deadline=None, derandomize=True)
"""The same cases in every run, however slow the machine is."""

S, MIN, H, DAY = 1000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-5, "just now"),
        (0, "just now"),
        (59 * S, "just now"),
        (MIN, "1 min ago"),
        (2 * MIN + 59 * S, "2 min ago"),
        (59 * MIN, "59 min ago"),
        (H, "1 h ago"),
        (23 * H, "23 h ago"),
        (DAY, "1 day ago"),
        (5 * DAY, "5 days ago"),
    ],
)
def test_an_age_is_said_in_its_largest_unit(ms: int, text: str) -> None:
    assert age(ms) == text


def test_times_are_utc_with_milliseconds() -> None:
    assert iso(1_768_608_000_007) == "2026-01-17T00:00:00.007Z"


@LAW
@given(st.integers(min_value=0, max_value=YEAR_10000 - 1))
def test_a_time_written_is_the_time_read(ms: int) -> None:
    assert milliseconds(iso(ms)) == ms


@pytest.mark.parametrize(
    ("count", "noun", "text"), [(1, "thought", "1 thought"), (0, "thought", "0 thoughts"), (3, "branch", "3 branches")]
)
def test_counts_agree_with_their_nouns(count: int, noun: str, text: str) -> None:
    assert counted(count, noun) == text


@pytest.mark.parametrize(
    ("text", "most", "ellipsis", "cut"),
    [
        ("", 3, "…", ""),
        ("abc", 3, "…", "abc"),
        ("abcd", 3, "…", "ab…"),
        ("two words", 5, "…", "two…"),
        ("abcdef", 5, "...", "ab..."),
        ("\U0001f600" * 4, 3, "…", "\U0001f600\U0001f600…"),
    ],
)
def test_a_clipped_text_has_at_most_so_many_characters_and_says_that_it_was_cut(
    text: str, most: int, ellipsis: str, cut: str
) -> None:
    assert clipped(text, most, ellipsis) == cut


@LAW
@given(st.text(), st.integers(2, 100))
def test_one_line_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line.isprintable()
    assert len(line.splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "line"),
    [("one\ntwo", "one"), ("\n \n  two  words ", "two words"), ("x" * 100, "x" * 79 + "…"), ("\u200b\u200b", "")],
)
def test_the_first_line_that_says_anything_is_the_title(text: str, line: str) -> None:
    assert first_line(text, 80) == line


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("a b", ["a", "b*"]),
        ("file_name.py", ["file", "name", "py*"]),
        ('x OR "y"', ["x", "or", "y"]),
        ("größe", ["grosse*"]),
        ("Résumé", ["resume*"]),
        ("Re\u0301sume\u0301", ["resume*"]),
        ("数据", ["数 据*"]),
        ("我的SQLite数据库", ["我 的", "sqlite", "数 据 库*"]),
        ('say "what it was" now', ["say", "what it was", "now*"]),
        ('"what it was"', ["what it was"]),
        ('open "quote', ["open", "quote*"]),
        ("がか", ["が か*"]),
        ("ＡＢＣ", ["abc*"]),
    ],
)
def test_a_query_is_its_terms(query: str, terms: list[str]) -> None:
    assert [" ".join(term.words) + ("*" if term.beginning else "") for term in terms_of(query)] == terms


@pytest.mark.parametrize(
    "query", ["", " \t", '"" ** --', "(%)", " ".join("abcdefghijklmnopqrstuvwxyz0123456"), "数" * 33]
)
def test_a_query_without_words_or_with_too_many_is_refused(query: str) -> None:
    with pytest.raises(BadInput, match="query"):
        terms_of(query)


def test_every_word_is_quoted_and_the_last_may_be_a_beginning() -> None:
    terms = [Term(("not", "so")), Term(("b",), beginning=True)]
    assert match_expression("sqlite", terms) == '"not so" "b"*'
    assert match_expression("postgres", terms) == "('not' <-> 'so') & ('b':*)"


@LAW
@given(st.text(min_size=1))
def test_no_query_gets_a_quote_into_an_expression(query: str) -> None:
    try:
        terms = terms_of(query)
    except BadInput:
        return
    assert match_expression("sqlite", terms).count('"') == 2 * len(terms)
    assert match_expression("postgres", terms).count("'") == 2 * sum(len(term.words) for term in terms)


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("The cat sat.", "cat", "The **cat** sat."),
        ("The cats sat; concat.", "cat", "The **cats** sat; concat."),
        ("Cat and DOG", "cat dog", "**Cat** and **DOG**"),
        ("cats and dogs", "cat dog", "cats and **dogs**"),
        ("nothing here", "cat", "nothing here"),
        ("line\nbreak cat", "cat", "line break **cat**"),
        ("Der Größte Café", "grosste cafe", "Der **Größte** **Café**"),
        ("Cafe\u0301!", "café", "**Café**!"),
        ("我们的数据库很大", "数据", "我们的**数据**库很大"),
        ("one, two three", '"one two"', "**one, two** three"),
        ("カタカナで書く", "タカ", "カ**タカ**ナで書く"),
    ],
)
def test_hits_are_marked_in_the_snippet(text: str, query: str, shown: str) -> None:
    assert snippet(text, terms_of(query)) == shown


def test_a_snippet_of_a_long_text_stands_around_the_first_hit() -> None:
    shown = snippet("a " * 5000 + "needle" + " b" * 5000, terms_of("needle"))
    assert shown.startswith("…a ")
    assert shown.endswith("b…")
    assert "**needle**" in shown
    assert len(shown) < 320


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("blue", True),
        ("blu", True),
        ("print head", True),
        ("hea blue", False),
        ("lue", False),
        ('"a heading"', True),
        ('"heading a"', False),
    ],
)
def test_titles_and_tags_match_by_whole_words_and_one_beginning(query: str, matches: bool) -> None:
    assert names_match("A Héading", ["blue-print"], terms_of(query)) is matches
