"""The name of the folder in which Claude Code keeps a project's transcripts.

Claude Code counts in UTF-16 and takes the path as the file system spells it. The SDK's own function counts in
characters and normalises, and so names another folder for a path with an emoji or a decomposed accent.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

MAX_NAME_CHARS = 200
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def project_key(project: Path) -> str:
    """Return the folder's name for a project directory, symbolic links resolved."""
    return _name(os.path.realpath(project))


@lru_cache(1_000)
def _name(path: str) -> str:
    spelled = path.encode("utf-16-le", "surrogatepass")
    units = [int.from_bytes(spelled[at : at + 2], "little") for at in range(0, len(spelled), 2)]
    name = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    return name if len(name) <= MAX_NAME_CHARS else f"{name[:MAX_NAME_CHARS]}-{_hash(units)}"


def _hash(units: list[int]) -> str:
    """Return Java's string hash, in base 36 without its sign."""
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    rest = min(value, 2**32 - value)
    text = ""
    while rest:
        rest, digit = divmod(rest, 36)
        text = DIGITS[digit] + text
    return text or "0"
