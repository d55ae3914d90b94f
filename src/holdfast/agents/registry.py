"""The agents that Holdfast knows, by name. A new one is a package below this one and a line here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agents import Agent, ResumeCommand, RunPart, SettingsPart, TranscriptsPart
from holdfast.agents.claude.agent import CLAUDE
from holdfast.agents.errors import PartMissing
from holdfast.agents.others import OTHERS

if TYPE_CHECKING:
    from holdfast.store import Store

AGENTS: dict[str, Agent] = {agent.name: agent for agent in (CLAUDE, *OTHERS)}
DEFAULT = CLAUDE.name
"""The agent that is meant where none is named: hooks installed by earlier versions name none."""


def settings_of(name: str = DEFAULT) -> SettingsPart:
    """Return an agent's settings; raises PartMissing where Holdfast does not know them."""
    agent = AGENTS.get(name)
    if agent is None or agent.settings is None:
        raise PartMissing(f"Holdfast does not know the settings of {name!r}.", recovery=f"Known: {', '.join(AGENTS)}.")
    return agent.settings()


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


def runnable() -> tuple[str, ...]:
    """Return the names of the agents that Holdfast can run."""
    return tuple(name for name, agent in AGENTS.items() if agent.run is not None)


class Runs(Mapping[str, RunPart]):
    """What runs each agent that can be run; made when it is first needed, because its modules take a while."""

    def __init__(self, home: Path, store: Store) -> None:
        self._home = home
        self._store = store
        self._made: dict[str, RunPart] = {}

    def __getitem__(self, name: str) -> RunPart:
        if name not in self._made:
            run = AGENTS[name].run
            if run is None:
                raise KeyError(name)
            self._made[name] = run(self._home, self._store)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in runnable()

    def __iter__(self) -> Iterator[str]:
        return iter(runnable())

    def __len__(self) -> int:
        return len(runnable())


def prepare() -> None:
    """Import what hooks and calls may come to need of every agent; takes a moment."""
    import holdfast.agents.claude.run
    import holdfast.agents.claude.settings_part
    import holdfast.agents.claude.transcripts.receipt
    import holdfast.agents.claude.transcripts.subagents  # noqa: F401
