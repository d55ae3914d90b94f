"""Claude Code as an agent: the user's own program, driven through the claude-agent-sdk (`holdfast[claude]`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.agents import AgentSpec, FoundSession, Lack, Permission
from holdfast.agents.claude.environment import claude_environment
from holdfast.agents.claude.open_elsewhere import opened_by
from holdfast.agents.claude.program import bundled_claude, missing
from holdfast.agents.claude.protected_files import FILE_TOOLS, ProtectedFiles, protected_files
from holdfast.agents.claude.transcripts.files import TranscriptFiles
from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.agents.claude.transcripts.merge import lines_of
from holdfast.agents.claude.transcripts.store import TranscriptStore
from holdfast.agents.claude.transcripts.transcript_copy import TranscriptCopy, level, merged
from holdfast.agents.errors import AgentUnavailable, SessionInUse, SessionMissing
from holdfast.agents.session_locks import SessionLocks, canonical_session_id
from holdfast.agents.transcript_copies import MAIN
from holdfast.errors import BadInput
from holdfast.process.guard import launcher

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions

    from holdfast.agents.claude.session import ClaudeSession

MANAGED = {"HOLDFAST_MANAGED": "1"}
"""Tells hooks that Holdfast itself speaks with this agent."""
SDK_OWN = frozenset({"CLAUDE_CODE_ENTRYPOINT", "CLAUDE_AGENT_SDK_VERSION"})
"""What the SDK sets itself."""
CONFIG_VARIABLE = "CLAUDE_CONFIG_DIR"
SETTINGS_OFF = (
    "The settings, MCP servers and CLAUDE.md of this project were not loaded, because its owner has not trusted them"
    " as they are (`holdfast trust` in the project). Read CLAUDE.md as a file, if there is one."
)
UNTOUCHABLE = "Holdfast's data and the agent's own settings are not to be touched."
CHANGING = ("Bash", "Edit", "NotebookEdit", "Write")
"""Tools that change something; a rule to ask is stronger than any that allows."""
LOCK_PATIENCE = 8.0
"""Seconds an agent of a killed daemon may take to end."""
ENDING_SECONDS = 3.0
"""Seconds for which a process that was just killed may still be seen."""
MESSAGE_LIMIT = 64 * 1024 * 1024
"""Bytes in one message of the agent; a transcript line may hold images."""


class ClaudeAgent:
    """Claude Code, one guarded process per session."""

    lacks: frozenset[Lack] = frozenset()

    def __init__(
        self,
        home: Path,
        transcripts: TranscriptStore,
        *,
        prefer_bundled: bool = False,
        patience: float = LOCK_PATIENCE,
    ) -> None:
        self._home = home
        self._transcripts = transcripts
        self._prefer_bundled = prefer_bundled
        self._locks = SessionLocks(home / "locks", patience)

    def available(self) -> str | None:
        """Return why Claude Code cannot run here; None when it can."""
        return missing()

    async def open(self, spec: AgentSpec, session_id: str, *, resume: bool) -> ClaudeSession:
        """Start Claude Code on a conversation; it is ready, and no model was asked."""
        session_id = canonical_session_id(session_id)
        problem = self.available()
        if problem is not None:
            raise AgentUnavailable(problem)
        if not spec.project.is_dir():
            raise BadInput("project", f"{spec.project} is not a directory")
        config, key = config_directory(spec.env), project_key(spec.project)
        files = TranscriptFiles(config)
        async with self._alone_with(session_id, config):
            if resume:
                if not await level(self._transcripts, files, key, session_id):
                    raise SessionMissing(f"There is no session {session_id}, neither on disk nor in the store.")
            elif files.known(session_id) or await self._transcripts.known(session_id):
                raise SessionInUse(f"Session {session_id} exists already.", recovery="Resume it or use a new id.")
        spent = await asyncio.to_thread(files.spent, key, session_id) if resume else 0.0
        copy = TranscriptCopy(self._transcripts, files.main_file(key, session_id))
        return await self._start(spec, {"resume" if resume else "session_id": session_id}, copy, spent)

    @contextlib.asynccontextmanager
    async def _alone_with(self, session_id: str, config: Path) -> AsyncIterator[None]:
        """Hold the session while no other process has it, started by Holdfast or by hand."""
        async with self._locks.held(session_id):
            pid = await _still_opened_by(session_id, config)
            if pid is not None:
                raise SessionInUse(
                    f"Session {session_id} is open in process {pid}.", recovery="Close it there, then try again."
                )
            yield

    async def fork(self, spec: AgentSpec, session_id: str, title: str) -> str:
        """Copy a conversation as it is now, into the store and, where the project is, to its file."""
        session_id = canonical_session_id(session_id)
        problem = self.available()
        if problem is not None:
            raise AgentUnavailable(problem)
        from holdfast.agents.claude.fork import forked

        files, key = TranscriptFiles(config_directory(spec.env)), project_key(spec.project)
        # Without its lock: while it is at work, its file is as current as it can be.
        lines = (await merged(self._transcripts, files, session_id, in_one_branch=True)).get(MAIN, [])
        try:
            entries = [line.entry for line in lines if line.entry is not None]
            made, copied = await forked(entries, spec.project, session_id, title)
        except (FileNotFoundError, ValueError) as error:
            raise SessionMissing(
                f"Session {session_id} cannot be copied: it is neither among the team's transcripts nor in the store.",
                recovery="If it was begun with another CLAUDE_CONFIG_DIR, give the team the same one under `env`.",
            ) from error
        await self._transcripts.put({"project_key": key, "session_id": made, "subpath": MAIN}, copied)
        if spec.project.is_dir():
            await asyncio.to_thread(files.write, key, made, MAIN, lines_of(copied))
        return made

    async def _start(self, spec: AgentSpec, start: dict[str, str], copy: TranscriptCopy, spent: float) -> ClaudeSession:
        from holdfast.agents.claude.session import ClaudeSession

        # The SDK would start the program once more only to ask its version; the session asks it after connecting.
        os.environ.setdefault("CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK", "1")
        program = self._program(spec.env)
        if program is None:
            raise AgentUnavailable("There is no `claude` on PATH.", recovery="Install Claude Code.")
        (session_id,) = start.values()
        env = {**claude_environment(), **MANAGED, **spec.env, **self._locks.environment(session_id)}
        # The SDK passes on all of this process's environment and can only be told to add to it.
        guarded = launcher(self._home / "guard", program, os.environ.keys() - env.keys() - SDK_OWN)
        protected = protected_files(self._home, config_directory(spec.env), spec.project)
        options = _options(spec, start, guarded, env, protected)
        permission = _within_limits(spec, protected)
        return await ClaudeSession.start(options, session_id, copy, permission, spent)

    def _program(self, env: Mapping[str, str]) -> str | None:
        """Return the user's own Claude Code, or else the one that came with the SDK."""
        own = shutil.which("claude", path=env.get("PATH", os.environ.get("PATH")))
        bundled = bundled_claude()
        brought = None if bundled is None else str(bundled)
        return (brought or own) if self._prefer_bundled else (own or brought)

    async def delete_transcript(self, spec: AgentSpec, session_id: str) -> None:
        """Delete a conversation's files and its rows in the store; refused while it is at work."""
        session_id = canonical_session_id(session_id)
        config = config_directory(spec.env)
        async with self._alone_with(session_id, config):
            await asyncio.to_thread(TranscriptFiles(config).delete, session_id)
            await self._transcripts.forget(session_id)

    def forget(self, session_ids: Iterable[str]) -> None:
        """Delete nothing: its files are the user's own, and their copies are rows of the store."""

    async def list_sessions(self, spec: AgentSpec) -> list[FoundSession]:
        """Return the project's conversations on this machine, the latest first."""
        from holdfast.agents.claude.found import found_sessions

        kept = {row["session_id"] for row in await self._transcripts.list_sessions(project_key(spec.project))}
        found = await found_sessions(config_directory(spec.env), spec.project)
        return [replace(session, is_kept=session.session_id in kept) for session in found]

    async def headings(self, spec: AgentSpec, session_id: str) -> list[str]:
        """Return how each prompt of a session on this machine's disk begins, and the titles it got."""
        files = TranscriptFiles(config_directory(spec.env))
        return await asyncio.to_thread(files.headings, project_key(spec.project), canonical_session_id(session_id))


async def _still_opened_by(session_id: str, config: Path) -> int | None:
    """Return the process that has a session open and keeps it open; one that is just ending is waited for."""
    began = time.monotonic()
    while (pid := await asyncio.to_thread(opened_by, session_id, config)) is not None:
        if time.monotonic() - began > ENDING_SECONDS:
            return pid
        await asyncio.sleep(0.1)
    return None


def config_directory(env: Mapping[str, str]) -> Path:
    """Return the configuration directory an agent with this environment uses.

    Refuses an environment in which the SDK would look for it elsewhere, because it would then copy nothing.
    """
    configured = env.get(CONFIG_VARIABLE)
    if configured is not None:
        if not Path(configured).is_absolute():
            raise BadInput(f"env.{CONFIG_VARIABLE}", f"must be an absolute path, not {configured!r}")
        return Path(configured)
    inherited = os.environ.get(CONFIG_VARIABLE)
    if inherited:
        return Path(inherited)
    home = env.get("HOME")
    if home is not None and Path(home) != Path.home():
        raise BadInput(
            "env.HOME",
            "moves Claude Code's configuration directory out of Holdfast's sight",
            recovery=f"Give env.{CONFIG_VARIABLE} as well, for example {Path(home) / '.claude'}.",
        )
    return Path.home() / ".claude"


def _within_limits(spec: AgentSpec, protected: ProtectedFiles) -> Permission | None:
    """Wrap the spec's permission callback to refuse any tool that would reach protected files."""
    ask = spec.permission
    if ask is None:
        return None

    async def asked(tool: str, arguments: dict[str, Any]) -> bool | str | None:
        if protected.forbids(tool, arguments, spec.project):
            return UNTOUCHABLE
        return await ask(tool, arguments)

    return asked


def _start_hook(text: str) -> str:
    """Return a hook command that gives the agent a text at every start; a resumed one keeps its system prompt."""
    answer = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}
    return f"printf %s {shlex.quote(json.dumps(answer))}"


def _denying(protected: ProtectedFiles, project: Path) -> Any:
    """Return the hook that sees every use of a file tool, also of one that is allowed beforehand."""

    async def look(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        tool, arguments = str(given.get("tool_name")), given.get("tool_input")
        if isinstance(arguments, dict) and not await asyncio.to_thread(protected.forbids, tool, arguments, project):
            return {}
        decision = {"permissionDecision": "deny", "permissionDecisionReason": UNTOUCHABLE}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}

    return look


def _options(
    spec: AgentSpec, start: dict[str, str], program: Path, env: dict[str, str], protected: ProtectedFiles
) -> ClaudeAgentOptions:
    from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
    from claude_agent_sdk.types import SystemPromptPreset

    prompt: SystemPromptPreset = {"type": "preset", "preset": "claude_code"}
    if spec.append_system_prompt:
        prompt["append"] = spec.append_system_prompt
    settings: dict[str, Any] = {"permissions": {"deny": protected.rules}}
    if spec.asks_first:
        settings["permissions"]["ask"] = list(CHANGING)
    if not spec.project_settings:
        settings["hooks"] = {"SessionStart": [{"hooks": [{"type": "command", "command": _start_hook(SETTINGS_OFF)}]}]}
    servers: dict[str, Any] = dict(spec.mcp_servers or {})
    watched = HookMatcher(matcher="|".join(sorted(FILE_TOOLS)), hooks=[_denying(protected, spec.project)])
    return ClaudeAgentOptions(
        cwd=spec.project,
        model=spec.model,
        env=env,
        cli_path=program,
        system_prompt=prompt,
        setting_sources=["user", "project", "local"] if spec.project_settings else ["user"],
        permission_mode="bypassPermissions" if spec.skip_permissions else "default" if spec.asks_first else None,
        allowed_tools=list(spec.allowed_tools),
        disallowed_tools=list(spec.disallowed_tools),
        settings=json.dumps(settings),
        hooks={"PreToolUse": [watched]},
        mcp_servers=servers,
        max_buffer_size=MESSAGE_LIMIT,
        session_id=start.get("session_id"),
        resume=start.get("resume"),
    )
