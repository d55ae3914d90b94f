"""Claude Code, with all its parts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agents import Agent, RunPart
from holdfast.agents.claude.hooks import HOOKS
from holdfast.agents.claude.transcripts.part import ClaudeTranscripts

if TYPE_CHECKING:
    from holdfast.store import Store


class ClaudeSettings:
    """Claude Code's settings files. What reads them is imported when they are asked for."""

    def config_directory(self, env: Mapping[str, str]) -> Path:
        """Return where it keeps a user's settings."""
        from holdfast.agents.claude.setup import config_directory

        return config_directory(env)

    def hooks_installed(self, project: Path, purpose: str) -> bool:
        """Return whether all of Holdfast's hooks for a purpose are installed."""
        from holdfast.agents.claude.settings import is_installed

        return is_installed(project, purpose)


def resume_command(session_id: str, *, fork: bool = False, config: Path | None = None) -> str:
    """Return the shell command that continues a conversation."""
    setting = "" if config is None else f"CLAUDE_CONFIG_DIR={shlex.quote(str(config))} "
    return f"{setting}claude --resume {session_id}" + (" --fork-session" if fork else "")


def run(home: Path, store: Store) -> RunPart:
    """Return what runs Claude Code; its transcripts are copied to the store."""
    from holdfast.agents.claude.run import ClaudeAgent
    from holdfast.agents.claude.transcripts.store import TranscriptStore

    return ClaudeAgent(home, TranscriptStore(store))


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
    settings=ClaudeSettings(),
    hooks=HOOKS,
    transcripts=ClaudeTranscripts(),
    resume_command=resume_command,
    run=run,
)
