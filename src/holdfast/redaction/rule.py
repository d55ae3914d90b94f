"""Rules for contexts in which a secret occurs, and how they are written. Pure, no I/O."""

from __future__ import annotations

from dataclasses import dataclass

_V = r"""(?:"(?P<secret>(?:[^"\\\n]|\\.){1,400}+)"|'(?P<single>[^'\n]{1,400}+)'|(?P<bare>[^\s"'|;&<>]{1,400}+))"""
_WORD_OR_QUOTED = _V.replace("<secret>", "<double>")
REST = r"[^\n|;&]{0,200}?\s"
"""Other arguments of the same command."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A context in which a secret occurs."""

    needles: tuple[str, ...]
    """A text without any of these, in lower case, is not searched."""
    source: str
    strong: bool = False
    """Only a value that no word looks like is a secret."""
    mixed: bool = False
    """Only a value with letters and digits, and either a sign or both cases, is one."""
    keyed: bool = False
    """Only a value that could be a key is one: not a method name or a path."""
    printed: bool = False
    """Only a value alone in its line that is random, dense or mixed is one."""
    card: bool = False
    """Only a number with a valid check digit is one."""


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
    """Build a rule; VALUE in its pattern stands for a word or a quoted text."""
    pattern = pattern.replace("VALUE", _WORD_OR_QUOTED)
    return Rule(tuple(needles.split("|")), pattern, strong, mixed, keyed, printed, card)
