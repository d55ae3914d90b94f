"""How much a user wants agents to be told: HOLDFAST_BRIEFING of the agent, or else `.holdfast/briefing.toml`."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.briefing.model import TOKENS, BriefingSetting, Occasion
from holdfast.errors import HoldfastError
from holdfast.files.inside import UnreadableInside, read_inside
from holdfast.text import bounded_toml
from holdfast.text.bounded_toml import TomlFault

FILE = ".holdfast/briefing.toml"
MAX_SETTING_BYTES = 16 * 1024


class BriefingSettingUnreadable(HoldfastError):
    """A briefing setting cannot be read, or is none that Holdfast knows."""

    code = "E_BRIEFING_SETTING"


def briefing_setting(environment: str | None, project: Path | None) -> BriefingSetting | None:
    """Return the setting in force; None if none is set, so that each occasion gets its own default."""
    if environment:
        return _parsed(environment, "HOLDFAST_BRIEFING")
    if project is None or not os.path.lexists(project / FILE):
        return None
    try:
        content = read_inside(project, FILE, MAX_SETTING_BYTES)
    except UnreadableInside as failure:
        raise BriefingSettingUnreadable(f"{FILE}: {failure}") from failure
    if content is None:
        return None
    try:
        mode = bounded_toml.loads(content.decode()).get("mode")
    except (UnicodeDecodeError, TomlFault) as failure:
        raise BriefingSettingUnreadable(f"{FILE}: {failure}", recovery='It may hold: mode = "off"') from failure
    return _parsed(mode, f"{FILE}: mode")


def budget(occasion: Occasion, setting: BriefingSetting | None) -> int:
    """Return how many tokens a briefing may cost; 0 for no briefing."""
    if setting is BriefingSetting.OFF:
        return 0
    usual = TOKENS[occasion]
    if setting is BriefingSetting.OFFER:
        return min(usual, TOKENS[Occasion.STARTUP])
    if setting is BriefingSetting.FULL and occasion is Occasion.STARTUP:
        return TOKENS[Occasion.CRASH]
    return usual


def _parsed(text: object, where: str) -> BriefingSetting:
    try:
        return BriefingSetting(str(text))
    except ValueError:
        raise BriefingSettingUnreadable(f"{where} must be off, offer or full, not {str(text)[:40]!r}.") from None
