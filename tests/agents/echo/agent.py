"""The echo agent, with all its parts."""

from __future__ import annotations

from pathlib import Path

from holdfast.agents import Agent, RunPart
from holdfast.store import Store

FOLDER = "echo"
"""Where its transcripts are, in Holdfast's data directory."""


def run(home: Path, store: Store) -> RunPart:
    """What runs it."""
    from tests.agents.echo.run import EchoAgent

    return EchoAgent(home, home / FOLDER)


ECHO = Agent(name="echo", title="Echo", run=run)
