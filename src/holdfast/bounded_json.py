"""JSON from outside, no deeper than what reads it can go: a text of brackets alone must not end in a RecursionError.

Python reads about as deep as its stack is, less what is on it: a text that is read here may be too deep to be written,
compared or copied a few calls further. So there is a limit, far below that and above what anybody writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from holdfast.relay.lines import deeper_than

MAX_DEPTH = 200
"""Objects and lists within each other. A relay's line may have a hundred, and a transcript quotes it."""


class JsonTooDeep(ValueError):
    """A text that is not read, because it is nested too deeply."""

    def __init__(self) -> None:
        super().__init__(f"it is nested deeper than {MAX_DEPTH} levels")


def loads(
    text: str | bytes | bytearray,
    *,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
    parse_constant: Callable[[str], Any] | None = None,
    parse_float: Callable[[str], Any] | None = None,
) -> Any:
    """What a JSON text says. Raises ValueError for what is no JSON, or cannot be read (JsonTooDeep)."""
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
