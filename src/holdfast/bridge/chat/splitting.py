"""Long texts in pieces that a chat accepts, cut where a reader would cut them. Pure, no I/O."""

from __future__ import annotations

import re

FENCE = "```"
LONGEST_OPENING = 40
"""Characters of a line that opens a code block and is repeated in the next piece."""
SHORTEST_LIMIT = 256

# Best first: after a paragraph, a line, a sentence, a word.
_CUTS = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"(?<=[.!?…:;])\s"), re.compile(r"\s"))


def units(text: str) -> int:
    """Return the length of a text in UTF-16 units, as chats count it."""
    return len(text) + sum(1 for char in text if ord(char) > 0xFFFF)


def clean(text: str) -> str:
    """Remove what no chat can carry: NUL bytes and halves of surrogate pairs."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", "")


def split(text: str, limit: int) -> list[str]:
    """Split a text into pieces of at most `limit` UTF-16 units; a cut code block is closed and reopened."""
    if limit < SHORTEST_LIMIT:
        raise ValueError(f"limit must be at least {SHORTEST_LIMIT}")
    whole, at, pieces = clean(text).strip("\n"), 0, []
    reopened = ""
    while True:
        # Only as much as could fit: counting the whole rest for each piece would take quadratic time.
        rest = reopened + whole[at : at + limit + 1]
        if units(rest) <= limit:
            break
        # Room for the line that closes a code block.
        head = _head(rest, limit - len(FENCE) - 1)
        opening = open_fence(head)
        pieces.append(f"{head.rstrip()}\n{FENCE}" if opening is not None else head.rstrip())
        at += max(len(head) - len(reopened), 1)
        while at < len(whole) and (whole[at] == "\n" or (opening is None and whole[at].isspace())):
            at += 1
        reopened = f"{opening}\n" if opening is not None and at < len(whole) else ""
    return [piece for piece in [*pieces, rest] if piece.strip()]


def open_fence(text: str) -> str | None:
    """Return the line that opened the code block in which a text ends; None outside a block."""
    opening: str | None = None
    for line in text.split("\n"):
        if line.startswith(FENCE):
            opening = None if opening is not None else line.rstrip()
    if opening is None:
        return None
    return opening if len(opening) <= LONGEST_OPENING and "`" not in opening[3:] else FENCE


def _head(text: str, limit: int) -> str:
    """Return the longest beginning that fits and ends at the best place for a cut."""
    most = _fitting(text, limit)
    window = text[:most]
    for cut in _CUTS:
        # A cut in the first half would make many short pieces; then the next kind of cut is better.
        found = [match.end() for match in cut.finditer(window, most // 2)]
        if found and window[: found[-1]].strip():
            return text[: found[-1]]
    return window


def _fitting(text: str, limit: int) -> int:
    """How many characters of a text fit into that many UTF-16 units."""
    used = 0
    for number, char in enumerate(text):
        used += 2 if ord(char) > 0xFFFF else 1
        if used > limit:
            return number
    return len(text)
