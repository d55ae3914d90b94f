"""What a check may look at: the settings, the environment, the project, and the daemon as it answers now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.config import Settings
from holdfast.errors import NoDaemon
from holdfast.lock import Holder, current_holder
from holdfast.relay.main import DAEMON_WAIT

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Has the running daemon do a command; raises NoDaemon."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """One installation as it is found."""

    settings: Settings
    env: Mapping[str, str]
    project: Path
    """The worktree that the doctor was called in."""
    ask: Ask
    daemon: Mapping[str, Any] | None = None
    """What the daemon says of itself; None when none answers."""
    broken: frozenset[str] = frozenset()
    """The links that were found at fault so far: nothing is started on top of them."""

    patience: float = DAEMON_WAIT
    """HOLDFAST_DAEMON_WAIT: seconds that a daemon and a relay may take before they count as silent."""

    @property
    def home(self) -> Path:
        """The data directory."""
        return self.settings.home

    @property
    def user(self) -> Path:
        """The user's own directory."""
        return Path(self.env.get("HOME") or Path.home())

    @property
    def agent_config(self) -> Path:
        """Where Claude Code keeps its settings and transcripts."""
        given = self.env.get("CLAUDE_CONFIG_DIR")
        return Path(given) if given else self.user / ".claude"

    @property
    def agent_registry(self) -> Path:
        """Where Claude Code keeps the MCP servers that the user registered."""
        return Path(self.env.get("CLAUDE_CONFIG_DIR") or self.user) / ".claude.json"

    def looked_again(self) -> Surroundings:
        """The same, with the daemon asked anew."""
        try:
            daemon: Mapping[str, Any] | None = self.ask("status", {})
        except NoDaemon:
            daemon = None
        return replace(self, daemon=daemon)

    def knowing(self, broken: Iterable[str]) -> Surroundings:
        """The same, with these links known to be broken."""
        return replace(self, broken=frozenset(broken))

    def holder(self) -> Holder | None:
        """Which process holds the data directory now, whether it answers or not. Changes nothing."""
        return current_holder(self.home)
