"""What forgetting offers: the command of `holdfast forget`, finished in the background where it was cut off."""

from __future__ import annotations

from pathlib import Path

from holdfast.capability import HOUR_SECONDS, Capability, Command, Loop
from holdfast.forgetting.service import Forgetting
from holdfast.reasoning.service import Reasoning
from holdfast.store import Store
from holdfast.teams.service import Teams


def capability(store: Store, home: Path, reasoning: Reasoning, teams: Teams) -> Capability:
    """The command and the loop."""
    forgetting = Forgetting(store, home, reasoning, teams.projects, teams.release)
    return Capability(
        name="forgetting",
        service=forgetting,
        commands=lambda: [Command("forget", forgetting.command)],
        loops=lambda: [Loop("forgetting", forgetting.finish, HOUR_SECONDS)],
    )
