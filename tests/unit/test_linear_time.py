"""A hostile text costs time in proportion to its length, in every regular expression and every parser."""

from __future__ import annotations

import pytest
from tests.growth import Text, discovered, growth, other_uses, uses
from tests.unit.linear_patterns import ADVERSARIES, CALLED, UNREACHED

ANYWHERE = tuple(
    Text(repeated, prefix, suffix)
    for repeated in (" ", "a", "\\", "|", '"', "'", "[", "(", "\n", "`", "1", "-", ".", "a.", '\\"', " a", "${", "<!--")
    for prefix, suffix in (("", "!"), ("[", "\\"))
)
UP_TO_16_KB = (1_024, 4_096, 16_384)


def test_every_regular_expression_is_listed_with_the_text_it_would_be_slow_on() -> None:
    listed = [*ADVERSARIES, *CALLED, *UNREACHED]
    assert sorted(listed) == sorted(set(listed)), "listed twice"
    assert sorted(set(discovered()) - set(listed)) == [], "add them to linear_patterns.py"
    assert sorted(set(listed) - set(discovered())) == [], "these are no longer there"
    assert other_uses() == [], "use `re.compile` and the like, so that the list is whole"


@pytest.mark.parametrize("key", sorted(ADVERSARIES))
def test_a_regular_expression_is_linear_in_hostile_text(key: str) -> None:
    found = discovered()[key]
    works = list(uses(found))
    assert works, "listed with texts, but put together at run time: list the function that uses it"
    slow = [told for work in works for text in ADVERSARIES[key] if (told := growth(work, text))]
    slow += [told for work in works for text in ANYWHERE if (told := growth(work, text, UP_TO_16_KB))]
    assert slow == []
