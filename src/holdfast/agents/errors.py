"""What can go wrong with an agent, each with its own name, so that teams can act on it."""

from __future__ import annotations

from holdfast.errors import HoldfastError


class AgentError(HoldfastError):
    """An agent could not do what was asked."""

    code = "E_AGENT"


class AgentUnavailable(AgentError):
    """The agent cannot run here: it is not installed, or too old."""

    code = "E_AGENT_UNAVAILABLE"


class PartMissing(AgentError):
    """The agent cannot do this at all."""

    code = "E_AGENT_PART_MISSING"


class AgentNotReady(AgentUnavailable):
    """The agent's process ended before it was ready; another start may do better."""


class SessionInUse(AgentError):
    """The session id is taken, or another process has the session open."""

    code = "E_AGENT_SESSION_IN_USE"


class SessionMissing(AgentError):
    """The session is neither on disk nor in the store."""

    code = "E_AGENT_SESSION_MISSING"


class SessionChanged(AgentError):
    """The agent answered from another session than the one it was asked in."""

    code = "E_AGENT_SESSION_CHANGED"


class AgentDied(AgentError):
    """The agent's process ended in the middle of a turn."""

    code = "E_AGENT_DIED"


class AgentBusy(AgentError):
    """A turn is running; a session takes one at a time."""

    code = "E_AGENT_BUSY"


class TranscriptCopyFailed(AgentError):
    """The turn ran, but its transcript did not reach the store."""

    code = "E_AGENT_MIRROR"


class CompactionFailed(AgentError):
    """The agent did not compact its context."""

    code = "E_AGENT_COMPACTION"
