"""Results of the teams service. No hook needs them, so a daemon starts without importing this module."""

from __future__ import annotations

from holdfast.lazy_dataclass import dataclass
from holdfast.teams.config import Fault
from holdfast.teams.model import Ask, AskState, Conversation, PermissionRequest
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
    """Why its agent does not use its project's settings; None if it does."""
    fault: str | None
    """Why it cannot be run; None if it can."""
    approvals: tuple[PermissionRequest, ...]
    """Permissions that its agents wait for, the oldest first."""


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


@dataclass(frozen=True, slots=True)
class PairActivity:
    """What a pair of teams exchanged in a period."""

    from_team: str
    to_team: str
    asks: int
    answered: int
    failed: int
    input_tokens: int
    output_tokens: int
    cost_microusd: int
    unpriced: int
    """Turns whose cost the agent did not report."""
    last_at: int
    waiting: int
    running: int
    conversations: int


@dataclass(frozen=True, slots=True)
class StepFigures:
    """What was asked in one interval."""

    step: int
    asks: int
    answered: int
    failed: int
    input_tokens: int
    output_tokens: int
    cost_microusd: int
    unpriced: int


@dataclass(frozen=True, slots=True)
class TeamProcess:
    """An agent's process, with what it uses."""

    team: str
    conversation_id: int
    pid: int | None
    busy: bool
    doing: str | None
    resident_bytes: int | None
    """None if the system does not tell."""
    began_at: int | None


@dataclass(frozen=True, slots=True)
class Notice:
    """What somebody left for a team."""

    from_team: str
    text: str
    created_at: int
    shown_at: int | None


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that an agent did in a turn, as its transcript tells."""

    kind: str
    """call, said or compacted."""
    at: int | None = None
    tool: str = ""
    given: str = ""
    """Its arguments, shortened."""
    text: str = ""
    """What the agent said, or the tool answered."""
    outcome: str = ""
    """failed, refused, or nothing if all went well."""


@dataclass(frozen=True, slots=True)
class TurnSteps:
    """An ask with what its agent did for it."""

    state: AskState
    steps: tuple[Step, ...]
    left_out: int
    """How many steps are left out."""
    notices: tuple[Notice, ...]
    """What the agent was told in addition to the ask."""


@dataclass(frozen=True, slots=True)
class TranscriptPage:
    """A part of a conversation, its oldest turn first."""

    conversation: Conversation
    turns: tuple[TurnSteps, ...]
    older: tuple[int, int] | None
    """Where the next older part begins: before this ask, and this line of the transcript (0: its end)."""
    unseen: tuple[Notice, ...]
    """What the agent will be told with its next turn."""
