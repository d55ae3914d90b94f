"""Background work of teams."""

from __future__ import annotations

from holdfast.capability import HOUR_SECONDS, Loop
from holdfast.teams.model import RENEW_S
from holdfast.teams.runner import Runner
from holdfast.teams.service import Teams

REFRESH_SECONDS = 2.0


def loops(teams: Teams, runner: Runner) -> list[Loop]:
    """What a daemon supervises."""
    return [
        Loop("teams", runner.run),
        Loop("teams: discovery", teams.discover),
        Loop("teams: leases", runner.renew, RENEW_S, first=RENEW_S),
        Loop("teams: processes", runner.watch_processes),
        Loop("teams: teams.json", teams.refresh, REFRESH_SECONDS),
        Loop("teams: maintenance", teams.maintenance.maintain, HOUR_SECONDS, first=120.0),
    ]
