"""What one has written, as another is told it: without secrets. Whoever wrote it gets it as it was written.

Services return texts as they are stored. Where it is on record who wrote a text, it is `Words`; the doors to agents and
to keys that are not the owner's pass every reply through `told`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

ANYBODY = "*"
"""In the place of a writer: the text is meant for whoever gets it, or was masked before."""
AT_ONCE = 8_192
"""Characters of a reply that are searched without letting others go on meanwhile: about 5 ms."""
REMEMBERED = 2_000
"""Characters of a text up to which it is kept in memory as others are told it."""
_PLAIN = re.compile(
    r"[\w.-]{0,19}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]{8,15}(?:Z|\+00:00)"
)
"""Ids, times and single words: too short for a token, and nothing in them says what it would be."""


class Words(str):
    """A text with whoever wrote it."""

    by: str | None
    """The connection; None where nobody is on record."""
    _whole: str
    _shape: Callable[[str], str]

    def __new__(cls, whole: str, by: str | None, shape: Callable[[str], str] = str) -> Words:
        """Cut the whole to its shape; secrets are looked for in the whole, so that none is halved."""
        made = super().__new__(cls, shape(whole))
        made.by, made._whole, made._shape = by, whole, shape
        return made

    def told(self, reader: str | None) -> str:
        """Return it as a connection is told it."""
        if self.by is not None and self.by in (reader, ANYBODY):
            return str(self)
        return self._shape(without_secrets(self._whole))


def without_secrets(text: str) -> str:
    """A text without its secrets. Titles, tasks and messages are told again and again, so short ones are remembered."""
    return _remembered(text) if len(text) <= REMEMBERED else _masked(text)


def _masked(text: str) -> str:
    from holdfast.redaction import masked  # a daemon's start does without it

    return masked(text)


_remembered = lru_cache(maxsize=512)(_masked)


def told(value: Any, reader: str | None) -> Any:
    """Return a reply with every text in it as a connection is told it."""
    if isinstance(value, Words):
        return value.told(reader)
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else Words(value, None).told(reader)
    if isinstance(value, dict):
        return {name: told(one, reader) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [told(one, reader) for one in value]
    return value


async def told_soon(value: Any, reader: str | None) -> Any:
    """Do the same; a long reply is searched in a thread, because others are served meanwhile."""
    if _size(value) <= AT_ONCE:
        return told(value, reader)
    return await asyncio.to_thread(told, value, reader)


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, list | tuple) else 0
