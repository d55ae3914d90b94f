"""What handoff offers: commands that take a project to another machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from holdfast.capability import Capability
from holdfast.handoff.commands import commands
from holdfast.handoff.service import Handoff
from holdfast.store import Store
from holdfast.teams.service import Teams
from holdfast.teams.team import Team


def capability(store: Store, home: Path, machine: str, teams: Teams) -> Capability:
    """Return the handoff capability of one daemon."""

    async def configured() -> Iterable[Team]:
        await teams.refresh()
        return teams.targets().values()

    service = Handoff(store, home, machine, configured)
    return Capability(name="handoff", service=service, commands=lambda: commands(service))
