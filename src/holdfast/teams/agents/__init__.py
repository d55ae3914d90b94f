"""The seam to an agent: what teams ask of one, and what it answers.

An agent works in a project directory and keeps conversations, each under a UUID. A session is one process at work on
one conversation; it takes one turn at a time. Every implementation passes `tests/agents/test_agent_conformance.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

Permission = Callable[[str, dict[str, Any]], Awaitable[bool | str | None]]
"""Asked before a tool that no rule allows is used: its name and its input.

Only True is a yes. A text is a no with its reason, None is no decision."""


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """Where and how an agent works."""

    project: Path
    """The directory it works in."""
    model: str | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to what agents get of this process's environment; not shown, because tokens are kept here."""
    skip_permissions: bool = False
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    permission: Permission | None = None
    mcp_servers: Mapping[str, Any] | None = field(default=None, repr=False)
    append_system_prompt: str | None = None
    project_settings: bool = False
    """Whether it follows the settings that the project brings: hooks, MCP servers, permissions."""


@dataclass(frozen=True, slots=True)
class AgentEvent:
    """A sign of life in the middle of a turn."""

    kind: str
    """text, tool, tool_result or status."""
    text: str = ""
    """What was said, or the name of the tool or the status."""


OnEvent = Callable[[AgentEvent], None]
"""Called for each event as it comes; it must neither wait nor raise."""


@dataclass(frozen=True, slots=True)
class Turn:
    """How a turn ended, as the agent reported it."""

    text: str
    session_id: str
    is_error: bool = False
    interrupted: bool = False
    subtype: str = "success"
    duration_ms: int = 0
    num_turns: int = 1
    """Requests to the model."""
    cost_usd: float | None = None
    """Of this turn alone."""
    input_tokens: int = 0
    """Of the whole turn, cached ones included."""
    output_tokens: int = 0
    context_tokens: int | None = None
    """How full the context was at the end."""
    context_window: int | None = None
    """How much it holds."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did to the size of the context."""

    pre_tokens: int | None
    post_tokens: int | None


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A conversation that lies on this machine's disk."""

    session_id: str
    title: str
    modified_at: int
    """Milliseconds since the epoch."""
    first_prompt: str | None = None
    cwd: str | None = None


class AgentSession(Protocol):
    """One process at work on one conversation."""

    @property
    def session_id(self) -> str: ...

    @property
    def pid(self) -> int | None:
        """The agent's own process; None once it has ended."""
        ...

    @property
    def alive(self) -> bool:
        """Whether it can take a turn."""
        ...

    async def send(self, text: str, on_event: OnEvent) -> Turn:
        """Give the agent a text and wait for the end of the turn. The text is data: it never runs as a command."""
        ...

    async def interrupt(self) -> None:
        """End the turn that is running, if one is; the session stays usable."""
        ...

    async def compact(self) -> Compaction:
        """Let the agent shorten its context."""
        ...

    async def close(self) -> None:
        """End the process and everything it started. May be called again."""
        ...


class Agent(Protocol):
    """A kind of agent."""

    def available(self) -> str | None:
        """Why it cannot run here; None when it can."""
        ...

    async def open(self, spec: AgentSpec, session_id: str, *, resume: bool, fork_of: str | None = None) -> AgentSession:
        """Start a process on a conversation: a new one, one that exists (`resume`) or a copy of another (`fork_of`)."""
        ...

    async def delete_transcript(self, spec: AgentSpec, session_id: str) -> None:
        """Delete what is kept of a conversation, everywhere."""
        ...

    async def list_sessions(self, spec: AgentSpec) -> list[FoundSession]:
        """The project's conversations on this machine, the latest first."""
        ...
