"""Who speaks, and for which teams: decided by what a connection is, never by what it says of itself.

| Who calls                                                   | Sender             | Acts for               |
|-------------------------------------------------------------|--------------------|------------------------|
| an agent that Holdfast runs (its token says so)             | its team           | that team              |
| a process in a team's project                               | that team          | the teams of the place |
| a key that is limited to teams                              | the key            | these teams            |
| a client whose root is a team's project                     | that team          | the teams of the place |
| the owner's key, the command line, a chat                   | the owner          | every team             |
| another key                                                 | the key            | every team             |
| a process outside every team's project: the owner's session | an agent in a project | every team          |
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from holdfast.errors import BadInput, Conflict
from holdfast.identity.caller import Caller, Transport
from holdfast.identity.project import path_of
from holdfast.lazy_dataclass import dataclass
from holdfast.text import one_line
from holdfast.text.quoting import MAX_NAME_CHARS, quoted

OWNERS_KEY = "owner"


class HasProject(Protocol):
    """The part of a team's configuration that this module needs."""

    @property
    def project(self) -> Path: ...


class NotYours(Conflict):
    """It belongs to another team."""

    code = "E_NOT_YOURS"


class Kind(StrEnum):
    OWNER = "owner"
    TEAM = "team"
    AGENT = "agent"
    KEY = "key"


@dataclass(frozen=True, slots=True)
class Sender:
    """A caller that sends, asks or takes messages."""

    kind: Kind
    name: str
    """One line of at most 80 printable characters; empty for the owner."""
    teams: frozenset[str] | None
    """The teams that it may act for; None is every team."""
    home: str | None = None
    """The team that it acts for unless it names another."""

    @property
    def label(self) -> str:
        """The sender as the recipient of a message sees it."""
        match self.kind:
            case Kind.OWNER:
                return f"the owner ({self.name})" if self.name else "the owner"
            case Kind.TEAM:
                return f"team {self.name}"
            case Kind.KEY:
                return f"the key {self.name}"
            case Kind.AGENT:
                return f"an agent in {self.name}" if self.name else "an agent"

    def may_act_for(self, team: str) -> bool:
        """Return whether it may do what the team itself may do."""
        return self.teams is None or team in self.teams

    def may_see(self, team: str) -> bool:
        """Return whether it may know that the team exists: agents may, who ask each other; a limited key may not."""
        return self.kind is not Kind.KEY or self.may_act_for(team)

    def require(self, team: str, what: str) -> None:
        """Refuse what only the team itself or the owner may do."""
        if not self.may_act_for(team):
            raise NotYours(
                f"{what} of {quoted(team, 64)} is not yours: you are {self.label}.",
                recovery=f"Ask {_who_to_ask(team)}.",
            )

    def acting_for(self, declared: str | None, field: str = "fromTeam") -> str | None:
        """Return the team that a call is made for; None outside every team."""
        if declared is not None:
            if not self.may_act_for(declared):
                raise NotYours(
                    f"{field}: you are {self.label} and cannot speak for {quoted(declared, 64)}.",
                    recovery=f"Leave {field} out.",
                )
            return declared
        if self.home is None and self.teams is not None:
            names = ", ".join(sorted(self.teams)) or "none"
            raise BadInput(field, f"is required: you may act for {names}")
        return self.home


OWNER = Sender(Kind.OWNER, "", None)


def identify_sender(
    transport: Transport,
    *,
    key: str | None = None,
    key_teams: frozenset[str] | None = None,
    managed: str | None = None,
    here: Sequence[str] = (),
    declared: Sequence[str] = (),
    project: str = "",
) -> Sender:
    """Decide who speaks: `here` are the teams where its process is, `declared` those of the root it names."""
    if managed is not None:
        return _as_team((managed,))
    if here:
        return _as_team(tuple(here))
    if key is not None and key_teams is not None:
        mine = [team for team in declared if team in key_teams] or sorted(key_teams)
        return Sender(Kind.KEY, _name(key), key_teams, mine[0] if len(mine) == 1 or declared else None)
    if declared:
        return _as_team(tuple(declared))
    if key is not None:
        return OWNER if key == OWNERS_KEY else Sender(Kind.KEY, _name(key), None)
    if transport is Transport.RELAY:
        return _as_agent(project)
    return Sender(Kind.AGENT, "", frozenset())


@lru_cache(maxsize=256)
def _as_agent(project: str) -> Sender:
    """Return the sender for an agent outside every team. Cached, because every call needs it."""
    return Sender(Kind.AGENT, _name(project), None)


@lru_cache(maxsize=256)
def _as_team(teams: tuple[str, ...]) -> Sender:
    """Return a sender for these teams, by default for the first. Cached, because every call needs it."""
    return Sender(Kind.TEAM, teams[0], frozenset(teams), teams[0])


def sender_of(caller: Caller, teams: Mapping[str, HasProject]) -> Sender:
    """Return who a caller is, with the teams as configured now."""
    managed = caller.managed.team if caller.managed is not None else None
    here = _around_any(teams, caller.directories) if managed is None else ()
    if managed is not None or here:  # then the declared root does not matter
        return identify_sender(caller.transport, managed=managed, here=here)
    root = path_of(caller.root.uri) if caller.root is not None else None
    elsewhere = root is not None and str(root) not in caller.directories
    return identify_sender(
        caller.transport,
        key=caller.principal,
        key_teams=caller.key_teams,
        declared=_around_any(teams, (str(root),)) if elsewhere else (),
        project=root.name if root is not None else "",
    )


_Place = tuple[int, int]
"""Device and inode of a directory: the same whatever links lead there."""


def teams_around(teams: Mapping[str, HasProject], path: Path) -> tuple[str, ...]:
    """Return the teams whose project contains a directory, links resolved; of nested projects the nearest."""
    return _around_any(teams, (str(path),))


def _around_any(teams: Mapping[str, HasProject], directories: Sequence[str]) -> tuple[str, ...]:
    """Return the teams whose project contains the first of these directories that is in any."""
    if not directories:
        return ()
    first = directories[0]
    # Most agents start at their project's top, and this runs at every call, so avoid the disk. Teams that share the
    # project under another path are then missing, which only narrows what the caller may do.
    if names := tuple(name for name, team in teams.items() if str(team.project) == first):
        return names
    homes = _homes(teams) if teams else {}
    return next(filter(None, (_around(homes, directory) for directory in directories)), ())


def _homes(teams: Mapping[str, HasProject]) -> dict[_Place, list[str]]:
    homes: dict[_Place, list[str]] = {}
    for name, team in teams.items():
        if (place := _place(team.project)) is not None:
            homes.setdefault(place, []).append(name)
    return homes


def _around(homes: Mapping[_Place, list[str]], directory: str) -> tuple[str, ...]:
    place = _place(directory) if homes else None
    if place is None:
        return _around_missing(homes, directory) if homes else ()
    # Going up with `..` lets the kernel resolve links, in a tenth of the time of `realpath`.
    folder, above = directory, None
    while place != above:
        if place in homes:
            return tuple(homes[place])
        folder, above = f"{folder}/..", place
        place = _place(folder)
        if place is None:
            return _around_missing(homes, directory)
    return ()


def _around_missing(homes: Mapping[_Place, list[str]], directory: str) -> tuple[str, ...]:
    """Return the same for a directory that does not exist, or whose parents cannot be entered."""
    try:
        real = Path(os.path.realpath(directory))
    except ValueError:  # no path can have such characters
        return ()
    teams = (homes.get(place) for folder in (real, *real.parents) if (place := _place(folder)) is not None)
    return tuple(next(filter(None, teams), ()))


def _place(folder: str | Path) -> _Place | None:
    try:
        status = os.stat(folder)  # noqa: PTH116 - takes two thirds of the time
    except (OSError, ValueError):  # not there yet, not on this machine, or a name that no file can have
        return None
    return status.st_dev, status.st_ino


def _name(text: str) -> str:
    return one_line(text, MAX_NAME_CHARS)


def _who_to_ask(team: str) -> str:
    return f"that team, or the owner (send_message reaches {quoted(team, 64)})"
