"""What of a project could be executed, as one hash: trust is pinned to it, and a change asks again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast import bounded_json

SETTINGS = ".holdfast/protocol.toml"
MCP_SERVERS = ".mcp.json"
SERENA_PROJECT = ".serena/project.yml"
SERENA_LOCAL = ".serena/project.local.yml"
"""What Serena lays over its project settings; a clone may bring one."""
MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Executable:
    """The parts of a project from which something could be run, read once: what is hashed is what is used."""

    settings: bytes | None = None
    serena: Mapping[str, Any] = field(default_factory=dict)
    """The entries of the project's MCP servers that are Serena, by name."""
    serena_project: bytes | None = None
    serena_local: bytes | None = None

    @property
    def digest(self) -> str:
        """The same for the same content, whatever else the project holds."""
        entry = json.dumps(self.serena, sort_keys=True).encode() if self.serena else b""
        whole = hashlib.sha256(b"holdfast trust 1")
        for part in (self.settings or b"", entry, self.serena_project or b"", self.serena_local or b""):
            whole.update(len(part).to_bytes(8, "big") + part)
        return whole.hexdigest()


def serena_entries(servers: bytes | None) -> dict[str, Any]:
    """The entries of an .mcp.json that are Serena; what is no such file names no server."""
    try:
        content = bounded_json.loads(servers or b"{}")
    except ValueError:
        return {}
    named = content.get("mcpServers") if isinstance(content, dict) else None
    if not isinstance(named, dict):
        return {}
    return {name: entry for name, entry in named.items() if "serena" in name.lower()}
