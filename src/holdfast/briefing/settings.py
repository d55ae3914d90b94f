"""How much a user wants to be told: HOLDFAST_BRIEFING where the agent runs, else `.holdfast/briefing.toml` there."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.briefing.model import TOKENS, Occasion, Wish
from holdfast.errors import HoldfastError
from holdfast.files.inside import UnreadableInside, read_inside
from holdfast.text import bounded_toml
from holdfast.text.bounded_toml import TomlFault

FILE = ".holdfast/briefing.toml"
LARGEST = 16 * 1024


class WishUnreadable(HoldfastError):
    """A setting that says nothing Holdfast knows."""

    code = "E_BRIEFING_SETTING"


def wish(environment: str | None, project: Path | None) -> Wish | None:
    """The wish in force; None where nobody has one, and each occasion gets what it needs."""
    if environment:
        return _wish(environment, "HOLDFAST_BRIEFING")
    if project is None or not os.path.lexists(project / FILE):
        return None
    try:
        content = read_inside(project, FILE, LARGEST)
    except UnreadableInside as failure:
        raise WishUnreadable(f"{FILE}: {failure}") from failure
    if content is None:
        return None
    import tomllib  # most projects have no such file, and all of them wait for the daemon to start

    try:
        mode = bounded_toml.loads(content.decode()).get("mode")
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, TomlFault) as failure:
        raise WishUnreadable(f"{FILE}: {failure}", recovery='It may hold: mode = "off"') from failure
    return _wish(mode, f"{FILE}: mode")


def budget(occasion: Occasion, wanted: Wish | None) -> int:
    """How many tokens a briefing may cost by itself; 0 for none."""
    if wanted is Wish.OFF:
        return 0
    usual = TOKENS[occasion]
    if wanted is Wish.OFFER:
        return min(usual, TOKENS[Occasion.STARTUP])
    if wanted is Wish.FULL and occasion is Occasion.STARTUP:
        return TOKENS[Occasion.CRASH]
    return usual


def _wish(text: object, where: str) -> Wish:
    try:
        return Wish(str(text))
    except ValueError:
        raise WishUnreadable(f"{where} must be off, offer or full, not {str(text)[:40]!r}.") from None
