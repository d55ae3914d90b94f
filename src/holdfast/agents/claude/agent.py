"""Claude Code, with all its parts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.agents import Agent
from holdfast.agents.claude.hooks import HOOKS
from holdfast.agents.claude.transcripts.part import ClaudeTranscripts

if TYPE_CHECKING:
    from holdfast.agents.project_settings import ProjectSettings


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

    @property
    def project_names(self) -> tuple[str, ...]:
        """Return what it follows in a project's directory."""
        from holdfast.agents.claude.project_settings import PROJECT_NAMES

        return PROJECT_NAMES

    def of_project(self, worktree: Path) -> ProjectSettings:
        """Read the settings that a project brings along."""
        from holdfast.agents.claude.project_settings import read_project_settings

        return read_project_settings(worktree)

    def mcp_servers(self, worktree: Path, env: Mapping[str, str]) -> list[Mapping[str, Any]]:
        """Return the MCP servers that the user configured."""
        from holdfast.agents.claude.mcp_servers import mcp_servers

        return mcp_servers(worktree, env)


def resume_command(session_id: str, *, fork: bool = False, config: Path | None = None) -> str:
    """Return the shell command that continues a conversation."""
    setting = "" if config is None else f"CLAUDE_CONFIG_DIR={shlex.quote(str(config))} "
    return f"{setting}claude --resume {session_id}" + (" --fork-session" if fork else "")


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
    session_variable="CLAUDE_CODE_SESSION_ID",
    project_variable="CLAUDE_PROJECT_DIR",
    pid_variable="CLAUDE_PID",
    outer_variables=("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR", "CLAUDE_PID", "CLAUDE_ENV_FILE"),
    skills=".claude/skills",
    mcp_tool="mcp__{server}__{tool}",
    call_id_meta="claudecode/toolUseId",
    always_load_meta="anthropic/alwaysLoad",
    search_hint_meta="anthropic/searchHint",
)
