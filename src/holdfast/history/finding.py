"""Hits as a person reads them: one per conversation, with its line and the way back into it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.reasoning.wording import one_line
from holdfast.redaction import masked
from holdfast.times import iso

LINE = 200
AROUND = 60
"""Characters shown before the first word that was found."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that holds what was looked for."""

    session_id: str
    directory: str
    role: str
    content: str
    at: int
    path: str
    elsewhere: bool = False
    """It was imported on another machine, which shares the store."""


def grouped(hits: Iterable[Hit], words: list[str], limit: int, config: Path) -> list[dict[str, Any]]:
    """The best line of each conversation, in the order of the hits, and how many more it has.

    `config` is the configuration directory that `claude` has where the hits are shown.
    """
    best: dict[str, Hit] = {}
    count: dict[str, int] = {}
    for hit in hits:
        best.setdefault(hit.session_id, hit)
        count[hit.session_id] = count.get(hit.session_id, 0) + 1
    return [_view(hit, words, count[hit.session_id] - 1, config) for hit in list(best.values())[:limit]]


def _view(hit: Hit, words: list[str], more: int, config: Path) -> dict[str, Any]:
    return {
        "project": hit.directory,
        "date": iso(hit.at)[:16].replace("T", " ") if hit.at else "",
        "role": hit.role,
        "line": masked(line_with(hit.content, words)),  # also of what was imported under older rules
        "more": more,
        "session": hit.session_id,
        "resume": resume_command(hit, config),
        "elsewhere": hit.elsewhere,
    }


def resume_command(hit: Hit, config: Path) -> str:
    """What takes the conversation up again, for a shell."""
    its = next((folder.parent for folder in Path(hit.path).parents if folder.name == "projects"), config)
    setting = "" if its == config else f"CLAUDE_CONFIG_DIR={shlex.quote(str(its))} "
    return f"cd {shlex.quote(hit.directory)} && {setting}claude --resume {hit.session_id}"


def line_with(text: str, words: list[str]) -> str:
    """The line that holds most of the words, shortened around the first of them."""
    patterns = [re.compile(re.escape(word), re.IGNORECASE) for word in words]
    line = max(text.splitlines() or [""], key=lambda one: sum(bool(pattern.search(one)) for pattern in patterns))
    places = [found.start() for pattern in patterns if (found := pattern.search(line))]
    start = max(0, min(places, default=0) - AROUND) if len(line) > LINE else 0
    return ("…" if start else "") + one_line(line[start:], LINE)


def holds(text: str, words: list[str]) -> bool:
    """Whether a text holds all the words."""
    lower = text.lower()
    return all(word.lower() in lower for word in words)
