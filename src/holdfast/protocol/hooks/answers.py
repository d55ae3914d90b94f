"""The protocol's answers to an agent's hooks: takes evidence, tells of commits that are too early, reminds."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.agents.hook_events import HookAnswer, HookEvent, HookKind, ToolKind
from holdfast.errors import HoldfastError
from holdfast.protocol.hooks.readings import is_path, readings
from holdfast.protocol.model import Gate
from holdfast.protocol.project.settings import Enforcement, ProjectProtocol
from holdfast.protocol.runs import ActiveRun, EvidenceKind, Verdict
from holdfast.protocol.service import Protocols
from holdfast.text import clipped
from holdfast.text.quoting import error_text, in_quotes

LONGEST_TEXT = 600
"""Characters of what an agent is told: it carries them through the whole conversation."""
LONGEST_WORDS = 300
"""Characters of a step or a fault in the project's words."""
MAX_LISTED = 4
MAX_REMEMBERED = 1_000

_COMMITS = re.compile(r"(?:^|[;&|\n])[ \t]*+git[ \t]++commit\b")
"""The common way to commit, for a hint; others are left to git's own hook."""


class ProtocolHooks:
    """Answers an agent's hooks for the worktree that they name.

    What is remembered here is only how often something was said. It is lost with the daemon, and then said once more.
    """

    def __init__(self, protocols: Protocols) -> None:
        self._protocols = protocols
        self._awaits_prompt: dict[str, bool] = {}
        self._said: dict[tuple[object, ...], bool] = {}
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
            return None if active.enforcement is Enforcement.OFF else _context(_standing(active))
        if project is None or project.enforcement is Enforcement.OFF:
            return None
        if project.started_by == "hook" and event.source in ("startup", "clear"):
            _first_time(self._awaits_prompt, event.session_id)
            return None
        return _context(_how_to_begin(project))

    async def _prompt(self, event: HookEvent) -> HookAnswer | None:
        """Begin a run with the first prompt, if the project is configured so; else tell of commits without one."""
        if not event.prompt or event.is_command:
            return None
        if not self._awaits_prompt.pop(event.session_id, None):
            return await self._without_run(event, even_if_idle=False)
        if await self._protocols.active_run(event.cwd) is not None:
            return None
        try:
            await self._protocols.start_run(event.cwd, event.prompt)
        except HoldfastError as refusal:
            return _context(f"Holdfast could not begin a session here: {refusal}")
        begun = await self._protocols.active_run(event.cwd)
        return _context(_standing(begun)) if begun is not None else None

    async def _before_tool(self, event: HookEvent) -> HookAnswer | None:
        """Tell an agent that is about to commit too early. Whether it can is up to git's own hook."""
        command = event.tool.command if event.tool is not None else None
        if command is None or "cd " in command or not _COMMITS.search(command):
            return None
        active = await self._protocols.active_run(event.cwd, only_stored=True)
        gate = active.commits_wait_for if active is not None else None
        if active is None or gate is None:
            return None
        refused = active.enforcement is Enforcement.ENFORCE
        outcome = "Git will refuse it." if refused else "If it succeeds, it is recorded as a violation."
        return _context(f"{active.too_early(gate)} {outcome}")

    async def _after_tool(self, event: HookEvent) -> HookAnswer | None:
        """Store what a tool's answer is evidence of; a tool that failed has another event."""
        tool = event.tool
        if tool is None or not tool.name.isascii() or tool.arguments is None:
            return None
        active = await self._protocols.active_run(event.cwd)
        if active is None:
            return await self._without_run(event, even_if_idle=True) if tool.kind is ToolKind.RUN else None
        for path, digest in await asyncio.to_thread(readings, tool, active.worktree, event.cwd):
            await self._protocols.record_seen(active, EvidenceKind.FILE_READ, path, digest)
        if tool.kind in (ToolKind.RUN, ToolKind.MCP):
            await self._protocols.record_seen(active, EvidenceKind.TOOL_CALLED, tool.name, "")
        return None

    async def _without_run(self, event: HookEvent, *, even_if_idle: bool) -> HookAnswer | None:
        """Tell an agent at work without a run, where the project enforces its protocol: once, and once of its commits.

        `even_if_idle` also if nothing is committed yet.
        """
        active, project = await self._protocols.standing_at(event.cwd)
        if event.is_subagent or active is not None or project is None or project.enforcement is not Enforcement.ENFORCE:
            return None
        commits = await self._protocols.unattended_commits(event.cwd)
        reason = (event.session_id, project.digest, bool(commits))
        if not (commits or even_if_idle) or not _first_time(self._said, reason):
            return None
        made = f"These were made without one: {', '.join(commits[-MAX_LISTED:])}." if commits else ""
        return _context(f"{_how_to_begin(project)} Commits without a session are recorded as a violation. {made}")

    async def _stop(self, event: HookEvent) -> HookAnswer | None:
        """Send an agent that wants to stop back to work, once for the same reason and never twice in a row."""
        if event.already_sent_on is not False or event.is_subagent:
            return None
        active = await self._protocols.active_run(event.cwd)
        if active is None or active.enforcement is Enforcement.OFF:
            return None
        missing = await self._protocols.missing(active)
        reason = (event.session_id, active.run.row_id, *(gate.name for gate, _ in missing))
        if not _first_time(self._said, reason):
            return None
        return HookAnswer(keep_going=_shortened(_unfinished(active, missing)))


def _first_time(kept: dict[Any, bool], key: object) -> bool:
    """Return whether this is new, and keep it; of what is kept, the oldest is forgotten first."""
    is_new = key not in kept
    kept[key] = True
    if len(kept) > MAX_REMEMBERED:
        del kept[next(iter(kept))]
    return is_new


def _context(text: str) -> HookAnswer:
    return HookAnswer(context=_shortened(text))


def _shortened(text: str) -> str:
    # A project's own words may stand in it: the names of its gates, what its document lacks.
    return clipped(error_text(text), LONGEST_TEXT)


def _standing(active: ActiveRun) -> str:
    text = f"Holdfast: {active.described(120)}"
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
        steps.append(
            f"{number}. {gate.name}{why}: {in_quotes(gate.recovery[0], LONGEST_WORDS) if gate.recovery else ''}"
        )
    more = f" And {len(missing) - MAX_LISTED} more." if len(missing) > MAX_LISTED else ""
    return f"{begun} If you wait for the user, just stop again. Missing: {' '.join(steps)}{more}"
