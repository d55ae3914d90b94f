"""Stored text is data: on one line, in quotes, with nothing in it that could end them or look like markup."""

from __future__ import annotations

from holdfast.reasoning.wording import one_line

_TAMED = str.maketrans({'"': "'", "`": "'", "<": "‹", ">": "›"})


def quoted(text: str, limit: int) -> str:
    """A text of earlier work, as it stands in a briefing."""
    return f'"{one_line(text, limit).translate(_TAMED)}"'
