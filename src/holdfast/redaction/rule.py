"""Rules for contexts in which a secret occurs, and how they are written. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from holdfast.lazy_dataclass import dataclass

_V = r"""(?:"(?P<secret>(?:[^"\\\n]|\\.){1,400}+)"|'(?P<single>[^'\n]{1,400}+)'|(?P<bare>[^\s"'|;&<>]{1,400}+))"""
_PARTS = {
    "VALUE": _V.replace("<secret>", "<double>"),
    "REST": r"[^\n|;&]{0,200}?\s",
}
"""What these words stand for in a pattern: a word or a quoted text; other arguments of the same command."""


class Fit(Enum):
    """What a value must be to be a secret."""

    ANY = auto()
    STRONG = auto()
    """No word looks like it."""
    MIXED = auto()
    """It has letters and digits, and either a sign or both cases."""
    KEY = auto()
    """It could be a key: it is not a method name or a path."""
    PRINTED = auto()
    """It is random, dense or mixed; for a value alone in its line."""
    CARD = auto()
    """It is a number with a valid check digit."""
    SESSION = auto()
    """One of these cookies is a credential."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A context in which a secret occurs."""

    needles: tuple[str, ...]
    """A text without any of these, in lower case, is not searched."""
    source: str
    fit: Fit


def rules(fit: Fit, patterns: Mapping[str, str | tuple[str, ...]], **parts: str) -> list[Rule]:
    """Build rules from patterns by their needles; a part's name in a pattern stands for the part."""
    return [
        Rule(tuple(needles.split("|")), filled(pattern, parts), fit)
        for needles, found in patterns.items()
        for pattern in ([found] if isinstance(found, str) else found)
    ]


def filled(pattern: str, parts: Mapping[str, str]) -> str:
    """Return a pattern with its parts."""
    for name, part in {**parts, **_PARTS}.items():
        pattern = pattern.replace(name, part)
    return pattern
