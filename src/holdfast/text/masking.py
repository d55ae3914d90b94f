"""Masks secrets in texts that are shown to anyone but their author.

Services return texts as they are stored. A text whose author is recorded is returned as `Words`; MCP and REST pass
every reply to agents and to keys other than the owner's through `mask_for`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

ANYBODY = "*"
"""As the author: the text is meant for every reader, or was already masked."""
MAX_INLINE_CHARS = 8_192
"""Characters of a reply that are searched on the event loop: about 5 ms."""
MAX_CACHED_CHARS = 2_000
"""Characters up to which the masked form of a text is cached."""
_PLAIN = re.compile(
    r"[\w.-]{0,19}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]{8,15}(?:Z|\+00:00)"
)
"""Ids, times and single words: too short for a token, and with nothing that would name one."""
_TEXTLESS = frozenset({bool, int, float, type(None)})


class Words(str):
    """A text with its author."""

    by: str | None
    """The author's connection; None if unknown."""
    _whole: str
    _shape: Callable[[str], str]

    def __new__(cls, whole: str, by: str | None, shape: Callable[[str], str] = str) -> Words:
        """Apply `shape` to the whole text; secrets are searched for in all of it, so that none is cut in half."""
        words = super().__new__(cls, shape(whole))
        words.by, words._whole, words._shape = by, whole, shape
        return words

    def mask_for(self, reader: str | None) -> str:
        """Return the text as this reader may see it: unmasked for its author."""
        if self.by is not None and self.by in (reader, ANYBODY):
            return str(self)
        return self._shape(without_secrets(self._whole))


def without_secrets(text: str) -> str:
    """Return a text without its secrets. Titles, paths and messages recur, so short results are cached."""
    return _cached_mask(text) if len(text) <= MAX_CACHED_CHARS else _masked(text)


def _masked(text: str) -> str:
    from holdfast.redaction import masked  # imported late to keep the daemon's start fast

    return masked(text)


_cached_mask = lru_cache(maxsize=1024)(_masked)


def mask_for(value: Any, reader: str | None) -> Any:
    """Return a reply with every text in it as this reader may see it."""
    if isinstance(value, Words):
        return value.mask_for(reader)
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else without_secrets(value)
    if isinstance(value, dict):
        return {name: one if type(one) in _TEXTLESS else mask_for(one, reader) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [mask_for(one, reader) for one in value]
    return value


async def mask_for_async(value: Any, reader: str | None) -> Any:
    """Do the same, in a thread for a long reply, so that other calls are served meanwhile."""
    if _size(value) <= MAX_INLINE_CHARS:
        return mask_for(value, reader)
    return await asyncio.to_thread(mask_for, value, reader)


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum([_size(one) for one in value.values() if type(one) not in _TEXTLESS])
    return sum(map(_size, value)) if isinstance(value, list | tuple) else 0
