"""Hook events and answers as capabilities see them, whichever agent called the hook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from holdfast.lazy_dataclass import dataclass


class HookKind(StrEnum):
    """What happened in the agent."""

    STARTED = "started"
    """A conversation began, or continues in a new process or after a compaction."""
    PROMPTED = "prompted"
    BEFORE_TOOL = "before_tool"
    AFTER_TOOL = "after_tool"
    COMPACTING = "compacting"
    STOPPING = "stopping"
    """The agent wants to end its turn."""
    ENDED = "ended"
    OTHER = "other"
    """Nothing that a capability acts on; it still shows that the session is alive."""


class ToolKind(StrEnum):
    """What a tool does, as far as it matters to a capability."""

    RUN = "run"
    """Runs a shell command."""
    READ = "read"
    """Shows a file."""
    MCP = "mcp"
    """Belongs to an MCP server."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file in a tool's result."""

    path: str
    lines: tuple[int, int, int] | None = None
    """The first line that was shown, how many were, and how many there are; None if it was shown whole."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call of a tool."""

    name: str
    """As the agent names the tool."""
    kind: ToolKind = ToolKind.OTHER
    call_id: str = ""
    arguments: Mapping[str, Any] | None = None
    """None if they are missing or not an object."""
    command: str | None = None
    """The shell command, if the tool runs one."""
    shown: ShownFile | None = None
    """The file that the tool's result shows."""
    server: str = ""
    """The MCP server that the tool belongs to, as the agent names it."""
    server_tool: str = ""
    """The tool's own name on that server."""


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One call of a hook. Texts are empty if the payload has none; ids and paths are as they came, unchecked."""

    kind: HookKind
    session_id: str = ""
    cwd: str = ""
    transcript: str = ""
    """Path of the session's transcript."""
    is_subagent: bool = False
    """Whether a subagent called the hook, and not the agent that the user talks to."""
    is_managed: bool = False
    """Whether Holdfast runs the agent itself, which gets its messages another way."""
    source: str = ""
    """Why the conversation starts: startup, resume, compact or clear."""
    reason: str = "other"
    """Why the session ended."""
    prompt: str = ""
    is_report: bool = False
    """Whether the agent wrote the prompt itself, to report on a subagent in the background."""
    is_command: bool = False
    """Whether the prompt is a command to the agent's program, which may not ask its model at all."""
    tool: ToolUse | None = None
    already_sent_on: bool | None = None
    """Whether an answer to a hook kept the agent from stopping before; None if the payload does not say."""
    last_words: str = ""
    """What the agent said last before it wants to stop."""


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The answer to a hook, from one capability or from all of them together."""

    context: str = ""
    """For the agent."""
    notice: str = ""
    """For the user."""
    denied: str | None = None
    """Why the tool must not be used."""
    keep_going: str | None = None
    """Why the agent must not stop yet."""


def combined(answers: Sequence[HookAnswer]) -> HookAnswer:
    """Join the answers of several capabilities: every reason, and all that is said, in order."""
    denied = [one.denied for one in answers if one.denied is not None]
    keep_going = [one.keep_going for one in answers if one.keep_going is not None]
    return HookAnswer(
        context="\n\n".join(one.context for one in answers if one.context),
        notice="\n".join(one.notice for one in answers if one.notice),
        denied="\n\n".join(filter(None, denied)) if denied else None,
        keep_going="\n\n".join(filter(None, keep_going)) if keep_going else None,
    )
