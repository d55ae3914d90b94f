"""How ages, counts and first lines are written for people and agents."""

from __future__ import annotations

_UNITS = (("day", 86_400_000), ("h", 3_600_000), ("min", 60_000))


def age(ms: int) -> str:
    """How long ago something was: "just now", "2 min ago", "3 h ago", "5 days ago"."""
    for name, length in _UNITS:
        if ms >= length:
            count = ms // length
            plural = "s" if name == "day" and count > 1 else ""
            return f"{count} {name}{plural} ago"
    return "just now"


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 thought", "47 thoughts", "3 branches"."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}{'es' if noun.endswith(('ch', 's', 'x')) else 's'}"


def one_line(text: str, limit: int) -> str:
    """The beginning of a text on one line, at most `limit` characters, with an ellipsis where it was cut."""
    if len(text) <= limit and text.isprintable():  # as most are: names, paths, short lines
        return " ".join(text.split()) if " " in text else text
    # The rest of a long text cannot matter once there are more visible characters than fit.
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * limit]).split())
    if len(line) <= limit and len(text) <= 4 * limit:
        return line
    return line[: limit - 1].rstrip() + "…"


def first_line(text: str, limit: int) -> str:
    """The first line that says anything, shortened to `limit` characters; empty where none does."""
    for line in text.lstrip()[: 16 * limit].splitlines():
        words = one_line(line, limit)
        if words:
            return words
    return ""
