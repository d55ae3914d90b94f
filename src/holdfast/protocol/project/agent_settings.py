"""What a project brings for the agent itself: settings with hooks, MCP servers, commands, skills and agents.

Managed agents start without it until the owner trusts exactly this content.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.protocol.inside import UnreadableInside, read_inside, real_path
from holdfast.protocol.project.trust_digest import MAX_BYTES, MCP_SERVERS
from holdfast.protocol.worktree import worktree_of

CLAUDE = ".claude"
FILES = (f"{CLAUDE}/settings.json", f"{CLAUDE}/settings.local.json", MCP_SERVERS)
FOLDERS = (f"{CLAUDE}/agents", f"{CLAUDE}/commands", f"{CLAUDE}/skills")
"""Their markdown files can name tools and hooks."""
MOST_FILES = 500


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What of a worktree an agent would follow, read once."""

    files: Mapping[str, bytes] = field(default_factory=dict, hash=False)
    """By the path in the worktree."""
    problem: str | None = None
    """Why it cannot be trusted."""

    @property
    def digest(self) -> str:
        """The same for the same content; empty, and never trusted, where a part could not be read."""
        if self.problem is not None:
            return ""
        whole = hashlib.sha256(b"holdfast agent settings 1")
        for path, content in sorted(self.files.items()):
            for part in (path.encode("utf-8", "surrogateescape"), content):
                whole.update(len(part).to_bytes(8, "big") + part)
        return whole.hexdigest()


def read_agent_settings(worktree: Path) -> AgentSettings:
    """Read what a worktree brings for its agent. Runs nothing, reads nothing outside, and never raises."""
    found: dict[str, bytes] = {}
    try:
        for path in (*FILES, *_documents(worktree)):
            content = read_inside(worktree, path, MAX_BYTES)
            if content is not None:
                found[path] = content
            if len(found) > MOST_FILES:
                return AgentSettings(problem=f"{CLAUDE} holds more than {MOST_FILES} files for an agent.")
    except UnreadableInside as error:
        return AgentSettings(problem=str(error))
    except OSError as error:
        return AgentSettings(problem=f"{CLAUDE} cannot be read: {error.strerror}.")
    return AgentSettings(found)


def brings_nothing(directory: Path) -> bool:
    """Whether nothing from a directory up to the top of its worktree would make an agent run something."""
    worktree = worktree_of(directory)
    if worktree is None:
        return False
    here = Path(os.path.realpath(directory))
    between = [here, *(folder for folder in here.parents if folder.is_relative_to(worktree.path))]
    return not any(os.path.lexists(folder / name) for folder in between for name in (CLAUDE, MCP_SERVERS))


def _documents(worktree: Path) -> Iterator[str]:
    for folder in FOLDERS:
        top = real_path(worktree, folder)
        for place, _, names in os.walk(top):
            inside = Path(folder, Path(place).relative_to(top))
            yield from (str(inside / name) for name in sorted(names) if name.endswith(".md"))
