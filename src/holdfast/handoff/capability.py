"""What handoff offers: commands that take a project to another machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.capability import Capability, Command
from holdfast.handoff.service import Archives
from holdfast.store import Store
from holdfast.teams.service import Teams
from holdfast.teams.team import Team


def capability(store: Store, home: Path, machine: str, teams: Teams) -> Capability:
    """The archives of one daemon."""

    async def roster() -> Mapping[str, Team]:
        await teams.refresh()
        return teams.targets()

    archives = Archives(store, home, machine, roster)

    def commands() -> list[Command]:
        return [
            Command("handoff", archives.handoff),
            Command("adopt", archives.adopt),
            Command("held", archives.held),
            Command("release", archives.release),
        ]

    return Capability(name="handoff", service=archives, commands=commands)
