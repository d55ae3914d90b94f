"""The agents that Holdfast knows, by name. A new one is a package below this one and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from holdfast.agents import Agent, HooksPart, ResumeCommand, RunPart, TranscriptsPart
from holdfast.agents.claude.agent import CLAUDE
from holdfast.agents.errors import PartMissing
from holdfast.agents.others import OTHERS

if TYPE_CHECKING:
    from holdfast.agents.settings import SettingsPart
    from holdfast.store import Store

P = TypeVar("P")

AGENTS: dict[str, Agent] = {agent.name: agent for agent in (CLAUDE, *OTHERS)}
DEFAULT = CLAUDE.name
"""The agent that is meant if none is named: hooks installed by earlier versions name none."""


def settings_of(name: str = DEFAULT) -> SettingsPart:
    """Return an agent's settings; raises PartMissing if Holdfast does not know them."""
    return _part(name, lambda agent: agent.settings, "Holdfast does not know the settings of")()


def transcripts_of(name: str = DEFAULT) -> TranscriptsPart:
    """Return an agent's transcripts; raises PartMissing if it keeps none that Holdfast can read."""
    return _part(name, lambda agent: agent.transcripts, "Holdfast cannot read transcripts of")


def resume_command_of(name: str = DEFAULT) -> ResumeCommand:
    """Return how an agent's conversation is continued by hand; raises PartMissing if it cannot be."""
    return _part(name, lambda agent: agent.resume_command, "No command continues a conversation of")


def _part(name: str, of: Callable[[Agent], P | None], problem: str) -> P:
    part = of(AGENTS[name]) if name in AGENTS else None
    if part is None:
        raise PartMissing(f"{problem} {name!r}.", recovery=f"Known: {', '.join(AGENTS)}.")
    return part


def runnable() -> tuple[str, ...]:
    """Return the names of the agents that Holdfast can run."""
    return tuple(name for name, agent in AGENTS.items() if agent.run is not None)


class Runs(Mapping[str, RunPart]):
    """The run part of each agent that has one, made on first use because its modules are slow to import."""

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


def hooks_of(name: str = DEFAULT) -> HooksPart:
    """Return an agent's hooks; raises PartMissing if it has none."""
    return _part(name, lambda agent: agent.hooks, "Holdfast does not know the hooks of")
