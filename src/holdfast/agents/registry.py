"""The agents that Holdfast knows, by name. A new one is a package below this one and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.agents import Agent, HooksPart, ResumeCommand, SettingsPart, TranscriptsPart
from holdfast.agents.claude.agent import CLAUDE
from holdfast.agents.errors import PartMissing

AGENTS: Mapping[str, Agent] = {agent.name: agent for agent in (CLAUDE,)}
DEFAULT = CLAUDE.name
"""The agent that is meant where none is named: hooks installed by earlier versions name none."""


def settings_of(name: str = DEFAULT) -> SettingsPart:
    """Return an agent's settings; raises PartMissing where Holdfast does not know them."""
    agent = AGENTS.get(name)
    if agent is None or agent.settings is None:
        raise PartMissing(f"Holdfast does not know the settings of {name!r}.", recovery=f"Known: {', '.join(AGENTS)}.")
    return agent.settings


def transcripts_of(name: str = DEFAULT) -> TranscriptsPart:
    """Return an agent's transcripts; raises PartMissing where it keeps none that Holdfast can read."""
    agent = AGENTS.get(name)
    if agent is None or agent.transcripts is None:
        raise PartMissing(f"Holdfast cannot read transcripts of {name!r}.", recovery=f"Known: {', '.join(AGENTS)}.")
    return agent.transcripts


def resume_command_of(name: str = DEFAULT) -> ResumeCommand:
    """Return how an agent's conversation is continued by hand; raises PartMissing where it cannot be."""
    agent = AGENTS.get(name)
    if agent is None or agent.resume_command is None:
        raise PartMissing(f"No command continues a conversation of {name!r}.", recovery=f"Known: {', '.join(AGENTS)}.")
    return agent.resume_command


def prepare() -> None:
    """Import what hooks and calls may come to need of every agent; takes a moment."""
    import holdfast.agents.claude.settings
    import holdfast.agents.claude.transcripts.receipt
    import holdfast.agents.claude.transcripts.subagents  # noqa: F401


def hooks_of(name: str = DEFAULT) -> HooksPart:
    """Return an agent's hooks; raises PartMissing where it has none."""
    agent = AGENTS.get(name)
    if agent is None or agent.hooks is None:
        raise PartMissing(f"{name!r} has no hooks.", recovery=f"Known: {', '.join(AGENTS)}.")
    return agent.hooks
