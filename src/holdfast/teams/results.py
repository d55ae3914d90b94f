"""What teams answer. No hook needs any of it, so that a daemon's start does without this module."""

from __future__ import annotations

from holdfast.lazy_dataclass import dataclass
from holdfast.teams.config import Fault
from holdfast.teams.model import Ask, Conversation, PermissionRequest
from holdfast.teams.team import Team


@dataclass(frozen=True, slots=True)
class TeamStatus:
    """A team with its processes and its queue."""

    team: Team
    processes: int
    busy: int
    waiting: int
    running: int
    settings_off: str | None
    """Why its agent does not follow what its project brings; None where it does."""
    fault: str | None
    """Why it cannot be run; None where it can."""
    approvals: tuple[PermissionRequest, ...]
    """What its agents wait to be allowed, the oldest first."""


@dataclass(frozen=True, slots=True)
class TeamsStatus:
    """Teams, the processes of all of them, and what is wrong in teams.json."""

    teams: tuple[TeamStatus, ...]
    processes: int
    max_processes: int
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class ConversationHistory:
    """A conversation with what was asked and answered in it, the newest first."""

    conversation: Conversation
    asks: tuple[Ask, ...]


@dataclass(frozen=True, slots=True)
class TeamFigures:
    """What a team was asked, and what that took."""

    team: str
    asks: int
    answered: int
    failed: int
    input_tokens: int
    output_tokens: int
    cost_microusd: int
    duration_ms: int


@dataclass(frozen=True, slots=True)
class PairFigures:
    """How many messages a pair of teams exchanged."""

    from_team: str
    to_team: str
    messages: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Messages, lifetimes, tokens and cost of all teams, and the most active pairs."""

    conversations: int
    messages: int
    lifetime_ms: int
    """The lifetimes of all conversations, added up."""
    teams: tuple[TeamFigures, ...]
    pairs: tuple[PairFigures, ...]
