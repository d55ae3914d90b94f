"""What can go wrong with an ask, by name."""

from __future__ import annotations

from holdfast.errors import Conflict, HoldfastError


class UnknownTeam(HoldfastError):
    """No such team is configured."""

    code = "E_UNKNOWN_TEAM"


class TeamUnavailable(Conflict):
    """The team's agent cannot be run."""

    code = "E_TEAM_UNAVAILABLE"


class AskCycle(Conflict):
    """The ask would come back to a team that waits for it."""

    code = "E_ASK_CYCLE"


class AskTooDeep(Conflict):
    """The chain of asks is too long."""

    code = "E_ASK_DEPTH"


class SessionCreationError(HoldfastError):
    """The agent could not begin a session, not even with another id."""

    code = "E_SESSION_CREATION"


class AgentFailed(HoldfastError):
    """The agent reported an error instead of an answer."""

    code = "E_AGENT_ERROR"


class AgentLost(HoldfastError):
    """The agent died in mid-turn, more than once."""

    code = "E_AGENT_DIED"


class AgentStalled(HoldfastError):
    """The agent gave no sign of life for too long."""

    code = "E_AGENT_STALLED"


class BudgetSpent(HoldfastError):
    """The team's budget for today is spent."""

    code = "E_BUDGET"
