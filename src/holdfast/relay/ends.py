"""Reads the top-level members at both ends of a JSON object whose middle is unknown or broken.

Clients write the id first or last. Reading forward from the start and backward from the end finds it either
way, and never mistakes a nested id for the line's own.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False  # importing typing would double the relay's start-up
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_FORWARD = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]:,"]|[^\s{}\[\]:,"]++', re.DOTALL)
# In a reversed line the quote that opens a string is the first that no backslash follows: an escaped quote
# has one, and before an opening quote stands only punctuation. At the cut it could be either: the scan ends.
_BACKWARD = re.compile(rb'"[^"]*+(?:"(?=\\)[^"]*+)*+"(?=[^\\])|[{}\[\]:,"]|[^\s{}\[\]:,"]++', re.DOTALL)

_NAMES = ("id", "method", "result", "error")


def members(head: bytes, tail: bytes) -> dict[str, Any]:
    """Return which of id, method, result and error are at the top level, with the value of a valid id."""
    backward = _members(_BACKWARD.finditer(tail.rstrip()[::-1]), b"}]", b"{[", reverse=True)
    forward = _members(_FORWARD.finditer(head.lstrip()), b"{[", b"}]", reverse=False)
    seen = dict(backward)
    seen.update((name, value) for name, value in forward if value is not None or name not in seen)
    return seen


def _members(
    tokens: Iterator[re.Match[bytes]], opening: bytes, closing: bytes, *, reverse: bool
) -> Iterator[tuple[str, Any]]:
    first = next(tokens, None)
    if first is None or first[0] != opening[:1]:
        return
    depth = 1
    words: list[bytes] = []  # of the member being read, its nested parts left out
    for token in tokens:
        word = token[0]
        if word == b'"':
            return
        if word in opening:
            depth += 1
        elif word in closing:
            depth -= 1
        if depth == 0 or (depth == 1 and word == b","):
            yield from _member(words)
            words = []
        elif depth == 1 and len(words) < 4:  # a member has three; a broken line may never end
            words = [word[::-1], *words] if reverse else [*words, word]
            if len(words) == 2 and not reverse:
                yield from _member([*words, b""])  # the name counts even if its value never ends
        if depth == 0:
            return


def _member(words: list[bytes]) -> Iterator[tuple[str, Any]]:
    if len(words) == 3 and words[1] == b":":
        name = _value(words[0])
        if name in _NAMES:
            yield name, _value(words[2]) if name == "id" else None


def _value(word: bytes) -> Any:
    """Return the string or integer in `word`, or None."""
    try:
        value = json.loads(word)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except ValueError:
        return None
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None
