"""What a protocol does when an agent's hook calls: it takes evidence, stops a commit that comes too early, reminds."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from posixpath import expanduser, isdir, join
from typing import TYPE_CHECKING, Any

from holdfast.errors import HoldfastError
from holdfast.protocol import model
from holdfast.protocol.hooks.readings import is_path, readings
from holdfast.protocol.in_time import in_time
from holdfast.protocol.model import Gate
from holdfast.protocol.project.settings import Enforcement, ProjectProtocol
from holdfast.protocol.runs import EvidenceKind, Verdict
from holdfast.protocol.service import Protocols
from holdfast.protocol.situation import Situation
from holdfast.quoting import error_text, in_quotes, quoted

if TYPE_CHECKING:
    from holdfast.protocol.hooks.git_actions import GitAction

LONGEST_TEXT = 600
"""Characters of what an agent is told: it carries them through the whole conversation."""
LONGEST_WORDS = 300
"""Characters of a step or a fault in the project's words."""
MOST_NAMED = 4
MOST_REMEMBERED = 1_000

Answer = dict[str, Any]
Payload = Mapping[str, Any]


class _Remembered:
    """A few things of the last conversations; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._things: OrderedDict[object, object] = OrderedDict()

    def add(self, thing: object, more: object = True) -> None:
        self._things[thing] = more
        if len(self._things) > MOST_REMEMBERED:
            self._things.popitem(last=False)

    def take(self, thing: object) -> object | None:
        return self._things.pop(thing, None)

    def __contains__(self, thing: object) -> bool:
        return thing in self._things


class ProtocolHooks:
    """Answers an agent's hooks for the worktree that they name.

    What is remembered here is only how often something was said. It is lost with the daemon, and then said once more.
    """

    def __init__(self, protocols: Protocols) -> None:
        self._protocols = protocols
        self._awaits_prompt = _Remembered()
        self._reminded = _Remembered()
        self._let_through = _Remembered()
        self._events: dict[str, Callable[[str, Payload], Awaitable[Answer | None]]] = {
            "SessionStart": self._session_start,
            "UserPromptSubmit": self._prompt,
            "PreToolUse": self._before_tool,
            "PostToolUse": self._after_tool,
            "Stop": self._stop,
        }

    async def handle(self, event: str, payload: dict[str, Any]) -> Answer | None:
        """What the hook is to print; None when there is nothing to say."""
        answer = self._events.get(event)
        cwd = payload.get("cwd")
        if answer is None or not is_path(cwd):
            return None
        return await answer(cwd, payload)

    async def _session_start(self, cwd: str, payload: Payload) -> Answer | None:
        """A conversation begins or goes on: agents forget the protocol at a compaction, so they are told again."""
        if "agent_id" in payload:
            return None
        situation, project = await self._protocols.standing_at(cwd)
        if situation is not None:
            return _told("SessionStart", _standing(situation)) if _speaks(situation.project) else None
        if project is None or not _speaks(project):
            return None
        if project.started_by == "hook" and payload.get("source") in ("startup", "clear"):
            self._awaits_prompt.add(_text(payload, "session_id"))
            return None
        return _told("SessionStart", _how_to_begin(project))

    async def _prompt(self, cwd: str, payload: Payload) -> Answer | None:
        """The first prompt begins a run, where the project says so."""
        prompt = _text(payload, "prompt").strip()
        if not prompt or prompt.startswith("/"):
            return None
        if (
            not self._awaits_prompt.take(_text(payload, "session_id"))
            or await self._protocols.situation(cwd) is not None
        ):
            return None
        try:
            await self._protocols.start_run(cwd, prompt)
        except HoldfastError as refusal:
            return _told("UserPromptSubmit", f"Holdfast could not begin a session here: {refusal}")
        begun = await self._protocols.situation(cwd)
        return _told("UserPromptSubmit", _standing(begun)) if begun is not None else None

    async def _before_tool(self, cwd: str, payload: Payload) -> Answer | None:
        """Only a commit or push can be too early, and only while a blocking gate before work is unmet."""
        command = _argument(payload, "command")
        if payload.get("tool_name") != "Bash" or not isinstance(command, str):
            return None
        from holdfast.protocol.hooks.git_actions import git_actions

        for action in sorted(await asyncio.to_thread(git_actions, command)):
            situation = await self._aimed_at(cwd, action)
            gate = _unmet(situation) if situation is not None else None
            if situation is None or gate is None or not _speaks(situation.project):
                continue
            if situation.project.enforcement is Enforcement.ENFORCE:
                return _denied(_too_early(situation, gate, action))
            self._let_through.add(_text(payload, "tool_use_id"), (cwd, action))
            return _told(
                "PreToolUse",
                _too_early(situation, gate, action) + " It was let through; if it worked, it is kept as a violation.",
            )
        return None

    async def _after_tool(self, cwd: str, payload: Payload) -> Answer | None:
        """A tool answered (one that failed has another event): what it shows is kept."""
        tool, arguments = _text(payload, "tool_name"), payload.get("tool_input")
        if not tool.isascii() or not isinstance(arguments, dict):
            return None
        if tool == "Bash":
            await self._record_violation(payload)
        situation = await self._protocols.situation(cwd)
        if situation is None:
            return None
        response = payload.get("tool_response")
        for reading in await asyncio.to_thread(readings, tool, arguments, response, situation.worktree):
            await self._protocols.saw(situation, EvidenceKind.FILE_READ, reading.path, reading.sha256)
        if tool == "Bash" or tool.startswith("mcp__"):
            await self._protocols.saw(situation, EvidenceKind.TOOL_CALLED, tool, "")
        return None

    async def _record_violation(self, payload: Payload) -> None:
        let_through = self._let_through.take(_text(payload, "tool_use_id"))
        if not isinstance(let_through, tuple):
            return
        cwd, action = let_through
        situation = await self._aimed_at(cwd, action)
        gate = _unmet(situation) if situation is not None else None
        if situation is not None and gate is not None:
            await self._protocols.violated(situation, gate, f"{gate.level} {gate.name} before git {action.name}")

    async def _stop(self, cwd: str, payload: Payload) -> Answer | None:
        """An agent that wants to stop is sent back once for the same reason, and never twice in a row."""
        if payload.get("stop_hook_active") is not False or "agent_id" in payload:
            return None
        situation = await self._protocols.situation(cwd)
        if situation is None or not _speaks(situation.project):
            return None
        missing = await self._protocols.missing(situation)
        reason = (_text(payload, "session_id"), situation.run.row_id, *(gate.name for gate, _ in missing))
        if reason in self._reminded:
            return None
        self._reminded.add(reason)
        return {"decision": "block", "reason": _shortened(_unfinished(situation, missing))}

    async def _aimed_at(self, cwd: str, action: GitAction) -> Situation | None:
        """The run of the worktree that a commit or push is about, wherever the agent stands."""
        return await self._protocols.situation(await in_time(_existing, cwd, action.directory))


def _existing(cwd: str, directory: str) -> str:
    """The directory that is meant, or the nearest above it that is there already."""
    meant = join(cwd, expanduser(directory))
    path = Path(os.path.realpath(meant if is_path(meant) else cwd))
    return str(next((folder for folder in (path, *path.parents) if isdir(folder)), path))


def _text(payload: Payload, name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def _argument(payload: Payload, name: str) -> object:
    arguments = payload.get("tool_input")
    return arguments.get(name) if isinstance(arguments, dict) else None


def _speaks(project: ProjectProtocol) -> bool:
    return project.enforcement is not Enforcement.OFF


def _unmet(situation: Situation) -> Gate | None:
    """The gate for whose sake a commit is too early; there is none from work on."""
    return None if situation.at_work else model.unmet_before_work(situation.protocol, situation.standing)


def _told(event: str, text: str) -> Answer:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": _shortened(text)}}


def _denied(reason: str) -> Answer:
    decision = {"permissionDecision": "deny", "permissionDecisionReason": _shortened(reason)}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}


def _shortened(text: str) -> str:
    # A project's own words may stand in it: the names of its gates, what its document lacks.
    told = error_text(text)
    return told if len(told) <= LONGEST_TEXT else told[: LONGEST_TEXT - 1] + "…"


def _too_early(situation: Situation, gate: Gate, action: GitAction) -> str:
    return (
        f"`git {action.name}` comes too early: {gate.name} of session {situation.run.id} is not met. Next:"
        f" {_words(gate.recovery)} Then call validate_gate with phase {gate.name}."
    )


def _standing(situation: Situation) -> str:
    run, standing = situation.run, situation.standing
    blocking = model.blocked_until(situation.protocol, standing)
    text = f"Holdfast: session {run.id} ({quoted(run.objective, 120)}) is active, in phase {standing.phase}."
    if standing.held_by is not None:
        text += f" It is held up until {standing.held_by} is met."
    if not blocking:
        return f"{text} Nothing blocks: advance_phase goes on, session_end ends it."
    gate = situation.protocol.gate(blocking[0])
    named = ", ".join(blocking[:MOST_NAMED]) + (" …" if len(blocking) > MOST_NAMED else "")
    next_step = f" Next: {_words(gate.recovery[:1])}" if gate is not None and gate.recovery else ""
    return f"{text} Gates to meet: {named}.{next_step} get_blocked_reason tells the rest."


def _how_to_begin(project: ProjectProtocol) -> str:
    if project.faults:
        fault = project.faults[0]
        return f"Holdfast: this project's protocol cannot be used: {in_quotes(str(fault), LONGEST_WORDS)}."
    return (
        f"Holdfast: this project works by the protocol {project.protocol.name}, and no session is active."
        " session_start with your objective begins one."
    )


def _unfinished(situation: Situation, missing: Sequence[tuple[Gate, Verdict]]) -> str:
    begun = f"Session {situation.run.id} is in phase {situation.standing.phase} and not ended."
    if not missing:
        return f"{begun} Every gate is met: call session_end with a summary."
    steps = []
    for number, (gate, verdict) in enumerate(missing[:MOST_NAMED], start=1):
        lacks = verdict.missing or verdict.evidence
        steps.append(
            f"{number}. {gate.name}{f' ({in_quotes(lacks, 100)})' if lacks else ''}: {_words(gate.recovery[:1])}"
        )
    more = f" And {len(missing) - MOST_NAMED} more." if len(missing) > MOST_NAMED else ""
    return f"{begun} If you wait for the user, just stop again. Missing: {' '.join(steps)}{more}"


def _words(recovery: Sequence[str]) -> str:
    """What a gate's steps are; the project may have written them."""
    return " ".join(in_quotes(step, LONGEST_WORDS) for step in recovery)
