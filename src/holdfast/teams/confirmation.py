"""Confirmed rights of teams: a right in teams.json takes effect only after a person confirmed it.

Stored beside teams.json. While there is no such file, everything takes effect; the first start of a daemon writes it
with what teams.json says at that moment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, astuple, field, fields, replace
from pathlib import Path
from typing import Any

from holdfast.files import read_bounded, write_private
from holdfast.lazy_dataclass import dataclass
from holdfast.teams.config import SETTINGS, TEAM_FIELDS
from holdfast.teams.config_fields import Refused
from holdfast.teams.team import Chat, Delivery, Team, TeamSettings

FILE_NAME = "teams.confirmed"
MAX_BYTES = 4 * 1024 * 1024

HARMLESS = frozenset({"description", "color", "idleSeconds"})
"""Fields of a team that do not affect what its agent may do; all others, new ones too, need confirmation."""
HARMLESS_SETTINGS = frozenset(
    {"idleTimeout", "healthCheckInterval", "stallTimeout", "compactAfterMessages", "archiveAfterDays", "warmUp"}
)
"""The same for the settings that all teams share."""
PLACE = frozenset({"agent", "machine"})
"""Which agent it is and where it runs: no value of these is narrower than another."""
NARROWEST_FIRST = (Delivery.HOOK, Delivery.AUTO, Delivery.RUN)


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What was confirmed for one team: its rights as a digest, and its limits, which apply while a change waits."""

    digest: str
    disallowed_tools: tuple[str, ...] = ()
    max_cost_usd_per_day: float | None = None
    delivery: Delivery = Delivery.AUTO


@dataclass(frozen=True, slots=True)
class Confirmations:
    """What was confirmed in a data directory."""

    teams: Mapping[str, Confirmed] = field(default_factory=dict, hash=False)
    settings: TeamSettings = field(default_factory=TeamSettings)
    """Only those that need confirmation."""
    begun: bool = True
    """Whether there is a file at all."""

    def waiting(self, team: Team) -> bool:
        """Return whether a team's rights wait for confirmation."""
        if not self.begun:
            return False
        known = self.teams.get(team.name)
        return narrowed(team) != team if known is None else known.digest != digest_of(team)

    def in_force(self, team: Team) -> Team:
        """Return the team with the rights in effect: its own if they are confirmed, otherwise the narrowest."""
        return narrowed(team, self.teams.get(team.name)) if self.waiting(team) else team

    def waiting_settings(self, settings: TeamSettings) -> list[str]:
        """Return the shared settings that wait for confirmation."""
        confirmed = rights_of_settings(self.settings)
        changed = [key for key, value in rights_of_settings(settings).items() if confirmed[key] != value]
        return changed if self.begun else []

    def settings_in_force(self, settings: TeamSettings) -> TeamSettings:
        """Return the settings in effect: those that need confirmation stay as they were confirmed."""
        names = [SETTINGS[key][0] for key in self.waiting_settings(settings)]
        return replace(settings, **{name: getattr(self.settings, name) for name in names})


def rights_of(team: Team) -> dict[str, Any]:
    """Return what decides what a team's agent may do, where, and who may give it orders."""
    named = {key: getattr(team, name) for key, (name, _) in TEAM_FIELDS.items() if key not in HARMLESS}
    return {"project": str(team.project)} | {key: _as_json(value) for key, value in named.items()}


def rights_of_settings(settings: TeamSettings) -> dict[str, Any]:
    """Return the shared settings that limit what agents may do."""
    named = {key: getattr(settings, name) for key, (name, _) in SETTINGS.items() if key not in HARMLESS_SETTINGS}
    return {key: _as_json(value) for key, value in named.items()}


def narrowed(team: Team, known: Confirmed | None = None) -> Team:
    """Return the team with the narrowest rights: those of a team that only names its project, under all limits."""
    known = known or Confirmed("")
    bare = {key: _DEFAULTS[name] for key, (name, _) in TEAM_FIELDS.items() if key not in HARMLESS | PLACE}
    costs = [cost for cost in (team.max_cost_usd_per_day, known.max_cost_usd_per_day) if cost is not None]
    limits: dict[str, Any] = {
        "disallowedTools": tuple(dict.fromkeys((*team.disallowed_tools, *known.disallowed_tools))),
        "maxCostUsdPerDay": min(costs, default=None),
        "delivery": min(team.delivery, known.delivery, Delivery.AUTO, key=NARROWEST_FIRST.index),
    }
    return replace(team, **{TEAM_FIELDS[key][0]: value for key, value in (bare | limits).items()})


_DEFAULTS: Mapping[str, Any] = {
    one.name: one.default_factory() if one.default_factory is not MISSING else one.default for one in fields(Team)
}


def _as_json(value: Any) -> Any:
    match value:
        case Path():
            return str(value)
        case Chat():
            return _as_json(astuple(value))
        case tuple():
            return [_as_json(one) for one in value]
        case Mapping():
            return dict(value)
    return value


def digest_of(team: Team) -> str:
    """Return a digest that is the same for the same rights."""
    return hashlib.sha256(json.dumps(rights_of(team), sort_keys=True).encode()).hexdigest()


def read_confirmations(home: Path) -> Confirmations:
    """Read what was confirmed. A file that cannot be read confirms nothing."""
    try:
        content = json.loads(read_bounded(home / FILE_NAME, MAX_BYTES))
        teams = {name: _read_team(one) for name, one in content["teams"].items()}
        settings = {SETTINGS[key][0]: SETTINGS[key][1](value) for key, value in content["settings"].items()}
        return Confirmations(teams, TeamSettings(**settings))
    except FileNotFoundError:
        return Confirmations(begun=False)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, Refused):
        return Confirmations()


def _read_team(one: dict[str, Any]) -> Confirmed:
    cost = one["maxCostUsdPerDay"]
    return Confirmed(
        str(one["digest"]),
        tuple(map(str, one["disallowedTools"])),
        None if cost is None else float(cost),
        Delivery(one["delivery"]),
    )


def write_confirmations(
    home: Path, teams: Iterable[Team], settings: TeamSettings | None, kept: Confirmations | None = None
) -> None:
    """Confirm the rights of these teams and these settings as they are, in addition to earlier confirmations."""
    kept = kept or Confirmations()
    confirmed = dict(kept.teams) | {
        team.name: Confirmed(digest_of(team), team.disallowed_tools, team.max_cost_usd_per_day, team.delivery)
        for team in teams
    }
    named = {
        name: {
            "digest": one.digest,
            "disallowedTools": list(one.disallowed_tools),
            "maxCostUsdPerDay": one.max_cost_usd_per_day,
            "delivery": one.delivery,
        }
        for name, one in confirmed.items()
    }
    shared, usual = rights_of_settings(settings or kept.settings), rights_of_settings(TeamSettings())
    content = {"teams": named, "settings": {key: value for key, value in shared.items() if value != usual[key]}}
    write_private(home / FILE_NAME, json.dumps(content))
