"""Text for people and agents: shortening, single lines, and ages and counts in words."""

from __future__ import annotations

_UNITS = (("day", 86_400_000), ("h", 3_600_000), ("min", 60_000))


def age(ms: int) -> str:
    """Return how long ago something was: "just now", "2 min ago", "3 h ago", "5 days ago"."""
    for name, length in _UNITS:
        if ms >= length:
            count = ms // length
            plural = "s" if name == "day" and count > 1 else ""
            return f"{count} {name}{plural} ago"
    return "just now"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: "1 thought", "47 thoughts", "3 branches"."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}{'es' if noun.endswith(('ch', 's', 'x')) else 's'}"


def clipped(text: str, most: int, ellipsis: str = "…") -> str:
    """Shorten a text to at most `most` characters, ending in an ellipsis if it was cut."""
    return text if len(text) <= most else text[: most - len(ellipsis)].rstrip() + ellipsis


def one_line(text: str, limit: int) -> str:
    """Return the beginning of a text on one line, at most `limit` characters, with an ellipsis if it was cut."""
    if len(text) <= limit and text.isprintable():  # as most are: names, paths, short lines
        return " ".join(text.split()) if " " in text else text
    # The rest of a long text does not matter once there are more visible characters than fit.
    line = " ".join(text[: 4 * limit].split())
    if not line.isprintable():
        line = " ".join("".join(char if char.isprintable() else " " for char in line).split())
    if len(line) <= limit and len(text) <= 4 * limit:
        return line
    return line[: limit - 1].rstrip() + "…"


def first_line(text: str, limit: int) -> str:
    """Return the first non-blank line, shortened to `limit` characters; empty if there is none."""
    for line in text.lstrip()[: 16 * limit].splitlines():
        words = one_line(line, limit)
        if words:
            return words
    return ""
