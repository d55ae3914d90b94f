"""Hash of everything in a project that could be executed: trust is pinned to it and ends with a change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from holdfast.text import bounded_json

SETTINGS = ".holdfast/protocol.toml"
MCP_SERVERS = ".mcp.json"
SERENA_PROJECT = ".serena/project.yml"
MAX_BYTES = 256 * 1024


def trust_digest(settings: bytes | None, serena: Mapping[str, Any]) -> str:
    """Return the hash of a protocol.toml and of the Serena entries among the project's MCP servers."""
    entry = json.dumps(serena, sort_keys=True).encode() if serena else b""
    whole = hashlib.sha256(b"holdfast trust 1")
    for part in (settings or b"", entry, b"", b""):  # the last two were Serena's own settings, once
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def serena_entries(servers: bytes | None) -> dict[str, Any]:
    """Return the Serena entries of an .mcp.json; none if it cannot be parsed."""
    try:
        content = bounded_json.loads(servers or b"{}")
    except ValueError:
        return {}
    named = content.get("mcpServers") if isinstance(content, dict) else None
    if not isinstance(named, dict):
        return {}
    return {name: entry for name, entry in named.items() if "serena" in name.lower()}
