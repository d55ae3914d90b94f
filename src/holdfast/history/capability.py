"""What history offers: commands that index and search transcripts, and the status line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.capability import Capability, Command
from holdfast.history.service import History
from holdfast.history.status_line import StatusLine
from holdfast.store import Store
from holdfast.teams.team import Team


def capability(store: Store, machine: str, targets: Callable[[], Mapping[str, Team]]) -> Capability:
    """Return the history capability of one daemon."""
    history, status_line = History(store, machine), StatusLine(store, targets)

    def every_command() -> list[Command]:
        from holdfast.history.commands import commands

        return [*commands(history), Command("statusline", status_line.line, for_agents=True)]

    return Capability(name="history", service=history, commands=every_command)
