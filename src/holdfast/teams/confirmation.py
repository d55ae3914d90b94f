"""Which rights of which teams a person confirmed: what teams.json says of rights counts only then.

Kept beside teams.json. While there is no such file everything counts; a daemon's first start writes it with what
teams.json says at that moment.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.store.files import publish
from holdfast.teams.team import Policy, Team

FILE_NAME = "teams.confirmed"
MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What was confirmed of one team."""

    digest: str
    disallowed_tools: tuple[str, ...] = ()
    """They hold also while a change waits."""


@dataclass(frozen=True, slots=True)
class Confirmations:
    """What was confirmed in a data directory."""

    teams: Mapping[str, Confirmed] = field(default_factory=dict, hash=False)
    begun: bool = True
    """Whether there is a file at all."""

    def waiting(self, team: Team) -> bool:
        """Whether a team's rights wait for a person's word."""
        if not self.begun:
            return False
        known = self.teams.get(team.name)
        return widened(team) if known is None else known.digest != digest_of(team)

    def in_force(self, team: Team) -> Team:
        """The team with the rights that count now: its own where they are confirmed, else the narrowest."""
        if not self.waiting(team):
            return team
        known = self.teams.get(team.name)
        disallowed = dict.fromkeys((*team.disallowed_tools, *(known.disallowed_tools if known else ())))
        return replace(
            team,
            skip_permissions=False,
            allowed_tools=(),
            disallowed_tools=tuple(disallowed),
            policy=Policy.DENY,
            env={},
            chat=None,
        )


def rights_of(team: Team) -> dict[str, Any]:
    """What of a team says what its agent may do, where, and who may give it orders."""
    chat = team.chat
    return {
        "project": str(team.project),
        "agent": team.agent,
        "skipPermissions": team.skip_permissions,
        "allowedTools": list(team.allowed_tools),
        "disallowedTools": list(team.disallowed_tools),
        "policy": team.policy.value,
        "env": dict(team.env),
        "chat": None if chat is None else [chat.id, chat.topic, list(chat.allowed_users)],
    }


def widened(team: Team) -> bool:
    """Whether a team has more rights than one that only names its project."""
    return bool(team.skip_permissions or team.allowed_tools or team.env or team.chat or team.policy != Policy.DENY)


def digest_of(team: Team) -> str:
    """The same for the same rights."""
    return hashlib.sha256(json.dumps(rights_of(team), sort_keys=True).encode()).hexdigest()


def read_confirmations(home: Path) -> Confirmations:
    """What was confirmed. A file that cannot be read confirms nothing."""
    try:
        with (home / FILE_NAME).open("rb") as file:
            content = json.loads(file.read(MAX_BYTES))
        teams = {
            name: Confirmed(str(one["digest"]), tuple(map(str, one["disallowedTools"])))
            for name, one in content.items()
        }
        return Confirmations(teams)
    except FileNotFoundError:
        return Confirmations(begun=False)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Confirmations()


def write_confirmations(home: Path, teams: Iterable[Team], kept: Confirmations | None = None) -> None:
    """Confirm the rights of these teams as they are, beside what was confirmed before."""
    confirmed = dict(kept.teams) if kept else {}
    confirmed |= {team.name: Confirmed(digest_of(team), team.disallowed_tools) for team in teams}
    content = {
        name: {"digest": one.digest, "disallowedTools": list(one.disallowed_tools)} for name, one in confirmed.items()
    }
    fresh = home / f".{FILE_NAME}.{secrets.token_hex(8)}"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file)
        publish(fresh, home / FILE_NAME)
    finally:
        fresh.unlink(missing_ok=True)
