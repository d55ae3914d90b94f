"""Words as they are indexed and looked for, the same on both engines: without case and accents.

In scripts that are written without spaces each character is a word by itself, so that a part of a run is found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import pairwise

from holdfast.errors import BadInput
from holdfast.lazy_dataclass import dataclass

MAX_WORDS = 32
INDEXED = 200_000
"""How many characters of a text are indexed; more may not fit into one of PostgreSQL's index entries."""
REMEMBERED = 10_000

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese, within a class of a regular expression."""
LETTER = rf"[^\W_{UNSPACED}]"
"""A letter or digit of a word that stands between spaces."""

_UNSPACED = re.compile(f"[{UNSPACED}]")
_PIECE = re.compile(rf"[{UNSPACED}]+|{LETTER}+")
_ACCENTS = re.compile("[\u0300-\u036f]")


class _Folding(dict[int, str]):
    """The form in which each character is indexed, computed when it is first met."""

    def __init__(self, *, apart: bool) -> None:
        super().__init__()
        self._apart = apart

    def __missing__(self, code: int) -> str:
        folded = _folded(chr(code))
        if self._apart:
            folded = _UNSPACED.sub(r" \g<0> ", folded)
        if len(self) < REMEMBERED:
            self[code] = folded
        return folded


def _folded(char: str) -> str:
    if unicodedata.category(char).startswith("M"):
        return ""
    plain = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", char).casefold()))
    return "".join(one if one.isalnum() else " " for one in plain)


_INLINE = _Folding(apart=False)
_APART = _Folding(apart=True)


@dataclass(frozen=True, slots=True)
class Term:
    """Words that follow each other, as one part of a query."""

    words: tuple[str, ...]
    beginning: bool = False
    """Whether the last one may be the beginning of a word."""

    @property
    def text(self) -> str:
        return self._joined(" ", "", str)

    @property
    def pattern(self) -> str:
        """A regular expression that finds it in a folded text."""
        before = "" if _UNSPACED.match(self.words[0]) else f"(?<!{LETTER})"
        after = "" if _UNSPACED.match(self.words[-1]) else f"{LETTER}*" if self.beginning else f"(?!{LETTER})"
        return before + self._joined(" +", " *", re.escape) + after

    def _joined(self, space: str, none: str, spelled: Callable[[str], str]) -> str:
        text = spelled(self.words[0])
        for one, other in pairwise(self.words):
            text += (none if _UNSPACED.match(one) and _UNSPACED.match(other) else space) + spelled(other)
        return text


def fold(text: str) -> str:
    """Return a text as it is compared: no case, no accents, a space for anything but letters and digits."""
    return unicodedata.normalize("NFC", text).translate(_INLINE)


def folded_with_places(text: str) -> tuple[str, list[int]]:
    """Fold a composed text; return it with the position in the original of each of its characters."""
    parts = [_INLINE[ord(char)] for char in text]
    return "".join(parts), [place for place, part in enumerate(parts) for _ in part]


def indexed(text: str) -> str:
    """Return a text as both engines index it."""
    return unicodedata.normalize("NFC", text[:INDEXED]).translate(_APART)[:INDEXED]


def terms_of(query: str) -> list[Term]:
    """Split a query into words, runs of characters and quoted phrases; the last word may be a prefix."""
    *parts, last = query.split('"')
    terms: list[Term] = []
    for place, part in enumerate(parts):
        part_terms = _terms(part)
        if place % 2 and part_terms:
            terms.append(Term(tuple(word for term in part_terms for word in term.words)))
        else:
            terms += part_terms
    if part_terms := _terms(last):
        terms += [*part_terms[:-1], Term(part_terms[-1].words, beginning=True)]
    if not terms:
        raise BadInput("query", "holds no word to search for", recovery="Pass at least one word.")
    if (count := sum(len(term.words) for term in terms)) > MAX_WORDS:
        raise BadInput("query", f"holds {count} words; the limit is {MAX_WORDS}", recovery="Pass fewer.")
    return terms


def _terms(text: str) -> list[Term]:
    return [Term(tuple(piece) if _UNSPACED.match(piece) else (piece,)) for piece in _PIECE.findall(fold(text))]


def match_expression(engine: str, terms: Sequence[Term]) -> str:
    """Build the engine's match expression, with every term quoted so that none is an operator."""
    if engine == "sqlite":
        return " ".join(f'"{" ".join(term.words)}"{"*" if term.beginning else ""}' for term in terms)
    phrases = [" <-> ".join(f"'{word}'" for word in term.words) for term in terms]
    return " & ".join(
        f"({phrase}{':*' if term.beginning else ''})" for phrase, term in zip(phrases, terms, strict=True)
    )


def holds(tokens: Sequence[str], term: Term) -> bool:
    size = len(term.words)
    *first, last = term.words
    for start in range(len(tokens) - size + 1):
        end = tokens[start + size - 1]
        if list(tokens[start : start + size - 1]) == first and (
            end.startswith(last) if term.beginning else end == last
        ):
            return True
    return False
