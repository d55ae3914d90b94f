"""How setup ends: with the unfinished work on this machine, and with an offer to index conversations, made once."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.files import write_private
from holdfast.text import clipped, counted

SHOWN = 5
ASKED_FOR = 200
"""Conversations that are asked for, so that all are counted."""
MAX_REQUEST = 60
OFFERED = "index-offered"
"""The file that says that the offer was made."""


def unfinished_lines(found: Mapping[str, Any]) -> list[str]:
    """Return what the command `unfinished` found, a line for each conversation with the command that continues it."""
    work = found["work"]
    if not work:
        return ["No unfinished work was found on this machine."]
    count = len(work) + found["more"]
    were = f"{counted(count, 'conversation')} {'was' if count == 1 else 'were'}"
    is_cut_off = not found["more"] and all(one["cut_off"] for one in work)
    lines = [f"{were} {'cut off' if is_cut_off else 'left unfinished'}:"]
    lines += [f"  {_line(one)}" for one in work[:SHOWN]]
    if count > SHOWN:
        lines.append(f"and {count - SHOWN} more: holdfast")
    return lines


def _line(one: Mapping[str, Any]) -> str:
    asked = clipped(one["asked"], MAX_REQUEST) or "(nothing was asked)"
    if not one["resumable"]:
        return f"{one['project']}: {asked} ({one['left']}; its transcript is gone)"
    return f"{asked} ({one['left']}): cd {shlex.quote(one['directory'])} && {shlex.join(one['resume'])}"


class IndexOffer:
    """The offer to index conversations for `holdfast find`. It is made once, whatever is answered."""

    def __init__(self, home: Path) -> None:
        self._mark = home / "setup" / OFFERED

    @property
    def is_due(self) -> bool:
        """Whether it was not made yet."""
        return not self._mark.exists()

    def note(self) -> None:
        """Record that it is made."""
        self._mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._mark, "")
