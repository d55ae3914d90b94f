"""Parses outside JSON with a depth limit: a text of nothing but brackets must not end in a RecursionError.

Python's own limit depends on the current stack: a text that parses here may be too deep to be written, compared or
copied a few calls further down. So the limit is far below that, and above any real document.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from holdfast.relay.lines import deeper_than

MAX_DEPTH = 200
"""Nested objects and lists. A relay's line may have a hundred levels, and a transcript quotes it."""


class JsonTooDeep(ValueError):
    """The text is nested too deeply to be parsed."""

    def __init__(self) -> None:
        super().__init__(f"it is nested deeper than {MAX_DEPTH} levels")


def loads(
    text: str | bytes | bytearray,
    *,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
    parse_constant: Callable[[str], Any] | None = None,
    parse_float: Callable[[str], Any] | None = None,
) -> Any:
    """Parse a JSON text. Raises ValueError if it is invalid, or too deep (JsonTooDeep)."""
    try:
        value = json.loads(
            text, object_pairs_hook=object_pairs_hook, parse_constant=parse_constant, parse_float=parse_float
        )
    except RecursionError:
        raise JsonTooDeep from None
    marks = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if marks > MAX_DEPTH and deeper_than(MAX_DEPTH, value):
        raise JsonTooDeep
    return value
