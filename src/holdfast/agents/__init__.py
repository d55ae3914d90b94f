"""The seam to coding agents: one `Agent` for each, of optional parts.

All that is known of an agent stands in its own package below this one and is reached through these parts, so that
capabilities know no agent's field names, paths or flags. Each part has a conformance suite that runs on every agent
that has the part.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from holdfast.agents.hook_events import HookAnswer, HookEvent
    from holdfast.agents.settings import SettingsPart
    from holdfast.agents.transcript_copies import TranscriptCopies
    from holdfast.agents.transcript_entries import Entry, KeptEntry, Part, Read, SpokenBatch, TranscriptFile
    from holdfast.agents.transcript_position import CallKind, Position
    from holdfast.store import Store, Tx


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
    asks_first: bool = False
    """Whether it asks before it changes files or runs commands, whatever its settings allow."""
    permission: Permission | None = None
    mcp_servers: Mapping[str, Any] | None = field(default=None, repr=False)
    """MCP servers for it to use, by name, besides those of its own settings."""
    append_system_prompt: str | None = None
    project_settings: bool = False
    """Whether it follows the settings that the project brings: hooks, MCP servers, permissions."""


@dataclass(frozen=True, slots=True)
class AgentEvent:
    """A sign of life in the middle of a turn."""

    kind: str
    """text, tool, tool_result, retry or status."""
    text: str = ""
    """What was said, or the name of the tool or the status; of a retry what the model did, as "answered 529"."""


OnEvent = Callable[[AgentEvent], None]
"""Called for each event as it comes; it must neither wait nor raise."""


class UnstoredLines(Protocol):
    """What an agent wrote in a turn and the store does not have yet."""

    def store(self, tx: Tx) -> None:
        """Store it along with what the turn came to."""
        ...

    async def store_alone(self) -> None:
        """Store it where that failed; raises TranscriptCopyFailed."""
        ...


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
    """Of this turn only; None if the agent does not say."""
    input_tokens: int = 0
    """Of the whole turn, cached ones included."""
    output_tokens: int = 0
    context_tokens: int | None = None
    """How full the context was at the end."""
    context_window: int | None = None
    """How much it holds."""
    unstored: UnstoredLines | None = None


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did to the size of the context."""

    pre_tokens: int | None
    post_tokens: int | None


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A conversation on this machine's disk."""

    session_id: str
    title: str
    modified_at: int
    """Milliseconds since the epoch."""
    first_prompt: str | None = None
    cwd: str | None = None
    is_kept: bool = True
    """Whether this Holdfast has run it, and not another one or a person."""


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

    async def is_overtaken(self) -> bool:
        """Return whether somebody else has written to the conversation, or has it open, so that it must be reopened."""
        ...

    async def send(self, text: str, on_event: OnEvent, *, stores: bool = True) -> Turn:
        """Give the agent a text and wait for the end of the turn. The text is data: it never runs as a command.

        With `stores` false, the caller stores the turn's `unstored` lines, in one transaction with the answer."""
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


class Lack(StrEnum):
    """What an agent cannot do; a call that needs it raises PartMissing."""

    GIVEN_IDS = "given ids"
    """It chooses the ids of its conversations itself; the only one that raises nothing."""
    FORK = "fork"
    COMPACT = "compact"
    LIST = "list"


class RunPart(Protocol):
    """Runs an agent. It works in a project directory and keeps conversations, each under an id.

    A session is one process at work on one conversation; it takes one turn at a time.
    """

    @property
    def lacks(self) -> frozenset[Lack]:
        """What it cannot do."""
        ...

    def available(self) -> str | None:
        """Return why it cannot run here; None when it can."""
        ...

    async def open(self, spec: AgentSpec, session_id: str, *, resume: bool) -> AgentSession:
        """Start a process on a conversation: a new one, or one that exists (`resume`).

        A new one gets this id, unless the agent chooses its own: see the session's `session_id`."""
        ...

    async def fork(self, spec: AgentSpec, session_id: str, title: str) -> str:
        """Copy a conversation as it is at this moment, and return the id under which the copy is resumed."""
        ...

    async def delete_transcript(self, spec: AgentSpec, session_id: str) -> None:
        """Delete a conversation's transcripts everywhere."""
        ...

    def forget(self, session_ids: Iterable[str]) -> None:
        """Delete what it keeps of these conversations in Holdfast's data directory; other files are the user's."""
        ...

    async def list_sessions(self, spec: AgentSpec) -> list[FoundSession]:
        """Return the project's conversations on this machine, the latest first."""
        ...

    async def headings(self, spec: AgentSpec, session_id: str) -> list[str]:
        """Return how each text that was sent to it in a conversation begins, and the titles it got, in their order."""
        ...


class HooksPart(Protocol):
    """Reads the payloads of an agent's hooks and writes the answers."""

    def event(self, name: str, payload: Mapping[str, Any], *, is_managed: bool = False) -> HookEvent:
        """Parse a payload of any content; `name` is the event as the agent names it. Never fails."""
        ...

    def output(self, name: str, answer: HookAnswer) -> bytes:
        """Return the hook's output; empty if there is nothing to say."""
        ...

    def start_payload(self, session_id: str, cwd: Path, transcript: Path) -> tuple[str, str]:
        """Return the event's name and the payload that the agent sends when a session starts, for a rehearsal."""
        ...

    def context_in(self, output: str) -> str:
        """Return the text that a hook's output gives the agent."""
        ...


class TranscriptsPart(Protocol):
    """Finds an agent's transcripts on this machine, reads them as neutral entries, and copies them to a store."""

    def follow(
        self, transcript: Path, since: Position, fold: Callable[[Entry], None], *, restart: Callable[[], None]
    ) -> Read | None:
        """Hand each new entry to `fold`, after `restart` if the file is read from its start; None without a file."""
        ...

    def follow_subagents(
        self, transcript: Path, since: Mapping[str, str], fold: Callable[[Entry], None], *, most: int
    ) -> dict[str, str]:
        """Hand what the latest subagents did since then to `fold`; returns how far each was read."""
        ...

    def entries_from(self, transcript: Path, offset: int, most_bytes: int) -> Iterator[Entry]:
        """Yield the entries behind a place in a file, within a number of bytes; nothing without a file."""
        ...

    def kind_of(self, tool: str) -> CallKind:
        """Return the kind of a tool, by its name."""
        ...

    def began_in(self, transcript: Path) -> str | None:
        """Return the directory in which a session was begun."""
        ...

    def config_directory(self, env: Mapping[str, str]) -> Path:
        """Return the configuration directory of an agent with this environment."""
        ...

    def sessions_in(self, folder: Path) -> list[str]:
        """Return the names of the sessions with a transcript in a folder, in any order; nothing without a folder.

        It opens and looks at none of them: agents that start wait for it. A name may be none that a session has."""
        ...

    def file_of(self, folder: Path, session_id: str) -> Path:
        """Return the transcript of a session in a folder."""
        ...

    def running(self, config: Path) -> frozenset[str]:
        """Return the sessions that a process on this machine has open, as far as the agent itself lists them."""
        ...

    def folder(self, config: Path) -> Path:
        """Return the directory that has a folder of transcripts for each project."""
        ...

    def folder_name(self, project: Path) -> str:
        """Return the name of the folder in which a project's transcripts lie."""
        ...

    def found(self, config: Path, folder: str | None = None) -> list[TranscriptFile]:
        """Return the transcripts of one project's folder or of all, the newest first."""
        ...

    def directory_of(self, file: TranscriptFile, known: dict[str, str]) -> str:
        """Return the project that a conversation belongs to here.

        `known` names the directory of folders that are known otherwise."""
        ...

    def is_same(self, path: Path, mark: str, read_to: int) -> bool:
        """Return whether a file is still the one that was read: it grew, and its beginning is as it was."""
        ...

    def batches(self, path: Path, offset: int) -> Iterator[SpokenBatch]:
        """Yield the rest of a file, word for word and part by part.

        A line that is still being written is left for the next time."""
        ...

    def reached(self, transcript: str, headings: Mapping[str, str]) -> frozenset[str]:
        """Return the ids whose headings are in the transcript: the agent saw what was delivered with them.

        All of them if there is no transcript to look at."""
        ...

    def config_of(self, transcript: Path) -> Path | None:
        """Return the configuration directory that a transcript is in, if its path tells."""
        ...

    async def copy_to_store(self, store: Store, session_id: str, transcript: Path) -> None:
        """Bring the store's copy of a session that is over level with its file."""
        ...

    async def copy_from_store(self, store: Store, session_id: str, folder: Path) -> bool:
        """Continue or create a session's file from the store's copy; False if it has none or the two have diverged.

        The caller holds the session's lock."""
        ...

    async def kept(self, store: Store, session_id: str, before: int | None, most: int) -> list[KeptEntry]:
        """Return the last entries that the store has of a conversation, or those before a place; the latest first.

        One that is very long has no parts."""
        ...

    def copies(self, config: Path, project: Path) -> TranscriptCopies:
        """Return the object that exports a project's transcripts and imports copies from elsewhere."""
        ...

    def copy_moved(self, transcript: Path, before: Path, after: Path) -> Path | None:
        """Copy a transcript to where the agent looks after its project was moved; None if there is none to copy."""
        ...

    def opened_by(self, session_id: str) -> int | None:
        """Return the process that has a session open by hand, if one is seen."""
        ...


class ResumeCommand(Protocol):
    """Writes the shell command that continues a conversation."""

    def __call__(self, session_id: str, *, fork: bool = False, config: Path | None = None) -> str:
        """Return the command; `fork` continues a copy; `config` is a configuration that is not the usual one.

        The id is not escaped: a caller that shows an id from outside must make it safe first."""
        ...


@dataclass(frozen=True, slots=True)
class Agent:
    """A coding agent, as far as Holdfast knows it. A part that it lacks is None."""

    name: str
    """As commands and settings files name it."""
    title: str
    """As its users name it."""
    relay_variables: tuple[str, ...] = ()
    """Environment variables by which it tells an MCP server its session and its project; a relay passes them on."""
    session_variables: tuple[str, ...] = ()
    """Environment variables that belong to one session: a daemon that a relay starts does not inherit them."""
    settings: Callable[[], SettingsPart] | None = None
    """Makes what knows its settings (`agents/settings.py`); a daemon starts without it."""
    hooks: HooksPart | None = None
    transcripts: TranscriptsPart | None = None
    resume_command: ResumeCommand | None = None
    run: Callable[[Path, Store], RunPart] | None = None
    """Makes what runs it, with Holdfast's data directory and open store."""
    rehearsal: Callable[[Path, Path], Callable[[Part], None]] | None = None
    """Makes what writes a transcript of a project, entry by entry, as the agent would: for a demo without a model."""
    missing: Callable[[], str | None] = lambda: None
    """Returns what this installation lacks to run it, with the command that adds it; None if nothing."""
    session_variable: str = ""
    """The one of `relay_variables` that holds the id of its session."""
    project_variable: str = ""
    """The one of `relay_variables` that holds its project directory."""
    pid_variable: str = ""
    """Environment variable in which a hook finds the pid of the agent."""
    plugin_variable: str = ""
    """Environment variable that a hook has if a plugin names it, and not the settings."""
    outer_variables: tuple[str, ...] = ()
    """Environment variables that a managed agent must not inherit from an agent that started Holdfast."""
    skills: str = ""
    """The folder of a project in which it looks for skills."""
    mcp_tool: str = "{tool}"
    """How it names the tool of an MCP server in hooks."""
    call_id_meta: str = ""
    """Key in a tool call's `_meta` under which it sends the id that its model gave the call."""
    always_load_meta: str = ""
    """Key in a listed tool's `_meta` by which the tool is loaded from the start."""
    search_hint_meta: str = ""
    """Key in a listed tool's `_meta` with further words by which it is found."""
