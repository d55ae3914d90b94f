"""The MCP servers that a user configured in Claude Code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.files import read_bounded
from holdfast.text import bounded_json

MAX_CONFIG_BYTES = 32 * 1024 * 1024
"""Limit of the configuration file; Claude Code keeps its history in the same one."""


def mcp_servers(worktree: Path, env: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Return the user's servers by name: those for this project, then those for all. Raises ValueError."""
    home = Path(env.get("HOME") or Path.home())
    path = Path(env.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
    try:
        config = bounded_json.loads(read_bounded(path, MAX_CONFIG_BYTES))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from error
    local = _mapping(_mapping(config).get("projects")).get(str(worktree))
    return [_mapping(_mapping(part).get("mcpServers")) for part in (local, config)]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
