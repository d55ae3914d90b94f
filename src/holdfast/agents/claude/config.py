"""Where Claude Code keeps its user's data: settings, transcripts, the list of its processes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def config_directory(env: Mapping[str, str]) -> Path:
    """Return the directory of a user's Claude Code settings and transcripts."""
    chosen = env.get("CLAUDE_CONFIG_DIR")
    return Path(chosen).absolute() if chosen else user_directory(env) / ".claude"


def user_directory(env: Mapping[str, str]) -> Path:
    """Return the user's home directory."""
    return Path(env["HOME"]) if env.get("HOME") else Path.home()
