"""The protocol's answers to an agent's hooks: takes evidence, denies commits that are too early, reminds."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from posixpath import expanduser, isdir, join
from typing import TYPE_CHECKING, TypeVar

from holdfast.agents.hook_events import HookAnswer, HookEvent, HookKind, ToolKind
from holdfast.errors import HoldfastError
from holdfast.files.in_time import in_time
from holdfast.protocol import model
from holdfast.protocol.hooks.readings import is_path, readings
from holdfast.protocol.model import Gate
from holdfast.protocol.project.settings import Enforcement, ProjectProtocol
from holdfast.protocol.runs import ActiveRun, EvidenceKind, Verdict
from holdfast.protocol.service import Protocols
from holdfast.text import clipped
from holdfast.text.quoting import error_text, in_quotes, quoted

if TYPE_CHECKING:
    from holdfast.protocol.hooks.git_actions import GitAction

K = TypeVar("K")
V = TypeVar("V")

LONGEST_TEXT = 600
"""Characters of what an agent is told: it carries them through the whole conversation."""
LONGEST_WORDS = 300
"""Characters of a step or a fault in the project's words."""
MAX_LISTED = 4
MAX_REMEMBERED = 1_000


class ProtocolHooks:
    """Answers an agent's hooks for the worktree that they name.

    What is remembered here is only how often something was said. It is lost with the daemon, and then said once more.
    """

    def __init__(self, protocols: Protocols) -> None:
        self._protocols = protocols
        self._awaits_prompt: dict[str, bool] = {}
        self._reminded: dict[tuple[object, ...], bool] = {}
        self._let_through: dict[str, tuple[str, GitAction]] = {}
        self._events: dict[HookKind, Callable[[HookEvent], Awaitable[HookAnswer | None]]] = {
            HookKind.STARTED: self._session_start,
            HookKind.PROMPTED: self._prompt,
            HookKind.BEFORE_TOOL: self._before_tool,
            HookKind.AFTER_TOOL: self._after_tool,
            HookKind.STOPPING: self._stop,
        }

    async def handle(self, event: HookEvent) -> HookAnswer | None:
        """Answer a hook; None if there is nothing to say."""
        answer = self._events.get(event.kind)
        return await answer(event) if answer is not None and is_path(event.cwd) else None

    async def _session_start(self, event: HookEvent) -> HookAnswer | None:
        """Say where the run stands, also after a compaction, at which agents forget the protocol."""
        if event.is_subagent:
            return None
        active, project = await self._protocols.standing_at(event.cwd)
        if active is not None:
            return _context(_standing(active)) if _speaks(active.project) else None
        if project is None or not _speaks(project):
            return None
        if project.started_by == "hook" and event.source in ("startup", "clear"):
            _remember(self._awaits_prompt, event.session_id, True)
            return None
        return _context(_how_to_begin(project))

    async def _prompt(self, event: HookEvent) -> HookAnswer | None:
        """Begin a run with the first prompt, if the project is configured so."""
        if not event.prompt or event.is_command or not self._awaits_prompt.pop(event.session_id, None):
            return None
        if await self._protocols.active_run(event.cwd) is not None:
            return None
        try:
            await self._protocols.start_run(event.cwd, event.prompt)
        except HoldfastError as refusal:
            return _context(f"Holdfast could not begin a session here: {refusal}")
        begun = await self._protocols.active_run(event.cwd)
        return _context(_standing(begun)) if begun is not None else None

    async def _before_tool(self, event: HookEvent) -> HookAnswer | None:
        """Deny or report a commit or push while a blocking gate before work is unmet."""
        tool, cwd = event.tool, event.cwd
        if tool is None or tool.command is None:
            return None
        from holdfast.protocol.hooks.git_actions import git_actions

        for action in sorted(await asyncio.to_thread(git_actions, tool.command)):
            active = await self._aimed_at(cwd, action)
            gate = model.unmet_before_work(active.protocol, active.standing) if active else None
            if active is None or gate is None or not _speaks(active.project):
                continue
            if active.project.enforcement is Enforcement.ENFORCE:
                return HookAnswer(denied=_shortened(_too_early(active, gate, action)))
            _remember(self._let_through, tool.call_id, (cwd, action))
            return _context(
                _too_early(active, gate, action) + " It was let through; if it succeeds, it is recorded as a violation."
            )
        return None

    async def _after_tool(self, event: HookEvent) -> HookAnswer | None:
        """Store what a tool's answer is evidence of; a tool that failed has another event."""
        tool = event.tool
        if tool is None or not tool.name.isascii() or tool.arguments is None:
            return None
        if tool.kind is ToolKind.RUN:
            await self._record_violation(tool.call_id)
        active = await self._protocols.active_run(event.cwd)
        if active is None:
            return None
        for reading in await asyncio.to_thread(readings, tool, active.worktree):
            await self._protocols.record_seen(active, EvidenceKind.FILE_READ, reading.path, reading.sha256)
        if tool.kind in (ToolKind.RUN, ToolKind.MCP):
            await self._protocols.record_seen(active, EvidenceKind.TOOL_CALLED, tool.name, "")
        return None

    async def _record_violation(self, call_id: str) -> None:
        if call_id not in self._let_through:
            return
        cwd, action = self._let_through.pop(call_id)
        active = await self._aimed_at(cwd, action)
        gate = model.unmet_before_work(active.protocol, active.standing) if active else None
        if active is not None and gate is not None:
            await self._protocols.violated(active, gate, f"{gate.level} {gate.name} before git {action.name}")

    async def _stop(self, event: HookEvent) -> HookAnswer | None:
        """Send an agent that wants to stop back to work, once for the same reason and never twice in a row."""
        if event.already_sent_on is not False or event.is_subagent:
            return None
        active = await self._protocols.active_run(event.cwd)
        if active is None or not _speaks(active.project):
            return None
        missing = await self._protocols.missing(active)
        reason = (event.session_id, active.run.row_id, *(gate.name for gate, _ in missing))
        if reason in self._reminded:
            return None
        _remember(self._reminded, reason, True)
        return HookAnswer(keep_going=_shortened(_unfinished(active, missing)))

    async def _aimed_at(self, cwd: str, action: GitAction) -> ActiveRun | None:
        """Return the active run of the worktree that a commit or push targets, wherever the agent is."""
        return await self._protocols.active_run(await in_time(_existing, cwd, action.directory))


def _remember(kept: dict[K, V], key: K, value: V) -> None:
    """Keep something of the last conversations; the oldest is forgotten first."""
    kept[key] = value
    if len(kept) > MAX_REMEMBERED:
        del kept[next(iter(kept))]


def _existing(cwd: str, directory: str) -> str:
    """Return the directory that is meant, or its nearest existing parent."""
    meant = join(cwd, expanduser(directory))
    path = Path(os.path.realpath(meant if is_path(meant) else cwd))
    return str(next((folder for folder in (path, *path.parents) if isdir(folder)), path))


def _speaks(project: ProjectProtocol) -> bool:
    return project.enforcement is not Enforcement.OFF


def _context(text: str) -> HookAnswer:
    return HookAnswer(context=_shortened(text))


def _shortened(text: str) -> str:
    # A project's own words may stand in it: the names of its gates, what its document lacks.
    return clipped(error_text(text), LONGEST_TEXT)


def _too_early(active: ActiveRun, gate: Gate, action: GitAction) -> str:
    return (
        f"`git {action.name}` comes too early: {gate.name} of session {active.run.id} is not met. Next:"
        f" {_words(gate.recovery)} Then call validate_gate with phase {gate.name}."
    )


def _standing(active: ActiveRun) -> str:
    run, standing = active.run, active.standing
    text = f"Holdfast: session {run.id} ({quoted(run.objective, 120)}) is active, in phase {standing.phase}."
    if standing.held_by is not None:
        text += f" It is blocked until {standing.held_by} is met."
    gates, step = active.still_to_meet(LONGEST_WORDS)
    if not gates:
        return f"{text} Nothing blocks: advance_phase goes on, session_end ends it."
    return f"{text} {gates}{step} get_blocked_reason lists the rest."


def _how_to_begin(project: ProjectProtocol) -> str:
    if project.faults:
        fault = project.faults[0]
        return f"Holdfast: this project's protocol cannot be used: {in_quotes(str(fault), LONGEST_WORDS)}."
    return (
        f"Holdfast: this project follows the protocol {project.protocol.name}, and no session is active."
        " session_start with your objective begins one."
    )


def _unfinished(active: ActiveRun, missing: Sequence[tuple[Gate, Verdict]]) -> str:
    begun = f"Session {active.run.id} is in phase {active.standing.phase} and not ended."
    if not missing:
        return f"{begun} Every gate is met: call session_end with a summary."
    steps = []
    for number, (gate, verdict) in enumerate(missing[:MAX_LISTED], start=1):
        why = f" ({in_quotes(verdict.reason, 100)})" if verdict.reason else ""
        steps.append(f"{number}. {gate.name}{why}: {_words(gate.recovery[:1])}")
    more = f" And {len(missing) - MAX_LISTED} more." if len(missing) > MAX_LISTED else ""
    return f"{begun} If you wait for the user, just stop again. Missing: {' '.join(steps)}{more}"


def _words(recovery: Sequence[str]) -> str:
    """Format a gate's recovery steps, which the project may have written."""
    return " ".join(in_quotes(step, LONGEST_WORDS) for step in recovery)
