"""`:name` becomes `%(name)s`, and nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.store.placeholders import for_psycopg


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("SELECT :a", "SELECT %(a)s"),
        ("WHERE a=:a AND b=:a_2", "WHERE a=%(a)s AND b=%(a_2)s"),
        ("SELECT x::text, :x::bigint", "SELECT x::text, %(x)s::bigint"),
        ("SELECT ':a' AS \":b\", :c", "SELECT ':a' AS \":b\", %(c)s"),
        ("SELECT 'it''s :a' || :a", "SELECT 'it''s :a' || %(a)s"),
        ("WHERE a LIKE '50%' AND b % 2 = :c", "WHERE a LIKE '50%%' AND b %% 2 = %(c)s"),
        ("SELECT 1 -- :a 100%\n, :b", "SELECT 1 -- :a 100%%\n, %(b)s"),
        ("SELECT /* :a\n */ :b", "SELECT /* :a\n */ %(b)s"),
        ("SELECT '12:30', a[1:2]", "SELECT '12:30', a[1:2]"),
    ],
)
def test_only_parameters_are_translated(written: str, sent: str) -> None:
    assert for_psycopg(written) == sent


def test_a_null_is_written_out_so_that_its_type_need_not_be_known() -> None:
    sql = "WHERE (:a IS NULL OR a = :a) AND b = :b AND c = ':a'"
    expected = "WHERE (NULL IS NULL OR a = NULL) AND b = %(b)s AND c = ':a'"
    assert for_psycopg(sql, frozenset({"a"})) == expected


@given(st.text(), st.sampled_from(["'", '"']))
def test_quoted_text_keeps_its_meaning(text: str, mark: str) -> None:
    quoted = mark + text.replace(mark, mark * 2) + mark
    sent = for_psycopg(f"SELECT {quoted}, :a")
    assert sent == f"SELECT {quoted.replace('%', '%%')}, %(a)s"
