"""Where Claude Code's program is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

INSTALLED = (".local/bin/claude", ".claude/local/claude")
"""Where its installers put it, relative to the user's home directory; a PATH that lacks them is common in scripts."""


def find_claude(env: Mapping[str, str]) -> Path | None:
    """Return the `claude` that the user installed; None if there is none."""
    program = shutil.which("claude", path=env.get("PATH", os.defpath))
    if program is not None:
        return Path(program)
    home = Path(env.get("HOME") or "~").expanduser()
    paths = (home / name for name in INSTALLED)
    return next((path for path in paths if os.access(path, os.X_OK) and path.is_file()), None)


def missing() -> str | None:
    """Return what Holdfast lacks to run Claude Code, with the command that adds it; None if nothing."""
    if find_spec("claude_agent_sdk") is None:
        from holdfast.setup.extras import install_line

        return f"The claude-agent-sdk is not installed here. Add it: `{install_line('claude')}`"
    if bundled_claude() is None and shutil.which("claude") is None:
        return "There is no `claude` on PATH, and the claude-agent-sdk brought none for this platform."
    return None


def bundled_claude() -> Path | None:
    """Return the program that came with the claude-agent-sdk; None if there is none."""
    sdk = find_spec("claude_agent_sdk")
    path = Path(sdk.origin).parent / "_bundled" / "claude" if sdk and sdk.origin else None
    return path if path is not None and path.is_file() else None
