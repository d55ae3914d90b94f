"""Claude Code, with all its parts."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agents import Agent, RunPart
from holdfast.agents.claude.hooks import HOOKS
from holdfast.agents.claude.transcripts.part import ClaudeTranscripts

if TYPE_CHECKING:
    from holdfast.agents.settings import SettingsPart
    from holdfast.agents.transcript_entries import Part
    from holdfast.store import Store


def settings() -> SettingsPart:
    """Return the part that knows Claude Code's settings."""
    from holdfast.agents.claude.settings_part import ClaudeSettings

    return ClaudeSettings()


def resume_command(session_id: str, *, fork: bool = False, config: Path | None = None) -> str:
    """Return the shell command that continues a conversation."""
    setting = "" if config is None else f"CLAUDE_CONFIG_DIR={shlex.quote(str(config))} "
    return f"{setting}claude --resume {session_id}" + (" --fork-session" if fork else "")


def run(home: Path, store: Store) -> RunPart:
    """Return the part that runs Claude Code; its transcripts are copied to the store."""
    from holdfast.agents.claude.run import ClaudeAgent
    from holdfast.agents.claude.transcripts.store import TranscriptStore

    return ClaudeAgent(home, TranscriptStore(store))


def rehearsal(transcript: Path, project: Path) -> Callable[[Part], None]:
    """Return what writes a transcript as Claude Code does."""
    from holdfast.agents.claude.transcripts.rehearsed import rehearsed

    return rehearsed(transcript, project)


def missing() -> str | None:
    """Return what Holdfast lacks to run Claude Code; None if nothing."""
    from holdfast.agents.claude import program

    return program.missing()


CLAUDE = Agent(
    name="claude",
    title="Claude Code",
    relay_variables=("CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT"),
    session_variables=(
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_PID",
        "CLAUDE_PROJECT_DIR",
    ),
    settings=settings,
    hooks=HOOKS,
    transcripts=ClaudeTranscripts(),
    resume_command=resume_command,
    run=run,
    rehearsal=rehearsal,
    missing=missing,
    session_variable="CLAUDE_CODE_SESSION_ID",
    project_variable="CLAUDE_PROJECT_DIR",
    pid_variable="CLAUDE_PID",
    plugin_variable="CLAUDE_PLUGIN_ROOT",
    outer_variables=("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR", "CLAUDE_PID", "CLAUDE_ENV_FILE"),
    skills=".claude/skills",
    mcp_tool="mcp__{server}__{tool}",
    call_id_meta="claudecode/toolUseId",
    always_load_meta="anthropic/alwaysLoad",
    search_hint_meta="anthropic/searchHint",
)
