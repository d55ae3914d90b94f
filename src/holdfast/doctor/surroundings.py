"""Everything a check may use: the settings, the environment, the project, and the daemon's current status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.config import Settings
from holdfast.errors import NoDaemon
from holdfast.lazy_dataclass import dataclass
from holdfast.process.home_lock import Holder, current_holder
from holdfast.relay.main import DAEMON_WAIT

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Sends a command to the running daemon; raises NoDaemon."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The installation under examination."""

    settings: Settings
    env: Mapping[str, str]
    project: Path
    """The worktree that the doctor was started in."""
    ask: Ask
    daemon: Mapping[str, Any] | None = None
    """The daemon's status; None if none answers."""
    broken: frozenset[str] = frozenset()
    """The links found to be broken so far: nothing that depends on them is started."""

    timeout: float = DAEMON_WAIT
    """HOLDFAST_DAEMON_WAIT: seconds that a daemon or relay may take to answer."""

    @property
    def home(self) -> Path:
        """The data directory."""
        return self.settings.home

    @property
    def user(self) -> Path:
        """The user's home directory."""
        return Path(self.env.get("HOME") or Path.home())

    def refreshed(self) -> Surroundings:
        """Return the same with the daemon's current status."""
        try:
            daemon: Mapping[str, Any] | None = self.ask("status", {})
        except NoDaemon:
            daemon = None
        return replace(self, daemon=daemon)

    def with_broken(self, broken: Iterable[str]) -> Surroundings:
        """Return the same with these links marked as broken."""
        return replace(self, broken=frozenset(broken))

    def holder(self) -> Holder | None:
        """Return the process that holds the lock of the data directory, whether it answers or not. Read-only."""
        return current_holder(self.home)
