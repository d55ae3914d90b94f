"""Agents of which Holdfast only knows the settings. `file_settings.py`, imported late, describes their files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.agents import Agent

if TYPE_CHECKING:
    from holdfast.agents.settings import SettingsPart


def _settings(name: str) -> SettingsPart:
    from holdfast.agents.file_settings import SETTINGS

    return SETTINGS[name]


OTHERS = tuple(
    Agent(name, title, settings=partial(_settings, name))
    for name, title in (
        ("codex", "Codex"),
        ("gemini", "Gemini CLI"),
        ("opencode", "opencode"),
        ("cursor", "Cursor"),
        ("vscode", "VS Code"),
    )
)
