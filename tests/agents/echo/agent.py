"""The echo agent, with all its parts."""

from __future__ import annotations

from pathlib import Path

from tests.agents.echo.hooks import EchoHooks

from holdfast.agents import Agent, RunPart
from holdfast.agents.settings import SettingsPart
from holdfast.store import Store

FOLDER = "echo"
"""Where its transcripts are, in Holdfast's data directory."""


def settings() -> SettingsPart:
    """What knows its settings."""
    from tests.agents.echo.settings import EchoSettings

    return EchoSettings()


def run(home: Path, store: Store) -> RunPart:
    """What runs it."""
    from tests.agents.echo.run import EchoAgent

    return EchoAgent(home, home / FOLDER)


ECHO = Agent(name="echo", title="Echo", settings=settings, hooks=EchoHooks(), run=run)
