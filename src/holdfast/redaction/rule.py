"""What a place is in which a secret stands, and how one is written down. Pure, no I/O."""

from __future__ import annotations

from dataclasses import dataclass

_V = r"""(?:"(?P<secret>(?:[^"\\\n]|\\.){1,400}+)"|'(?P<single>[^'\n]{1,400}+)'|(?P<bare>[^\s"'|;&<>]{1,400}+))"""
_WORD_OR_QUOTED = _V.replace("<secret>", "<double>")
REST = r"[^\n|;&]{0,200}?\s"
"""Other arguments of the same command."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A place in which a secret stands."""

    needles: tuple[str, ...]
    """A text without any of these, in lower case, is not searched."""
    source: str
    strong: bool = False
    """Only what no word would look like is a secret there."""
    mixed: bool = False
    """Only what holds letters and digits, and either a sign or capital and small letters, is one."""
    keyed: bool = False
    """Only what could be a key is one: no name of a method, no path."""
    printed: bool = False
    """Only what stands alone in its line and is random, dense or mixed is one."""
    card: bool = False
    """Only a number is one whose check digit is right."""


def rule(
    needles: str,
    pattern: str,
    *,
    strong: bool = False,
    mixed: bool = False,
    keyed: bool = False,
    printed: bool = False,
    card: bool = False,
) -> Rule:
    """A rule in which VALUE stands for a word or a quoted text."""
    pattern = pattern.replace("VALUE", _WORD_OR_QUOTED)
    return Rule(tuple(needles.split("|")), pattern, strong, mixed, keyed, printed, card)
