"""The settings that a project brings along for an agent: hooks, MCP servers, commands, skills."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field

from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The settings of a worktree that an agent would follow, read once."""

    files: Mapping[str, bytes] = field(default_factory=dict, hash=False)
    """By path in the worktree: the content of those in `shown`, the hash of all others."""
    shown: tuple[str, ...] = ()
    """Paths whose content the owner is shown before trusting it."""
    not_compared: tuple[str, ...] = ()
    """Paths that are too large or lead out of the worktree: a change there goes unnoticed and is run."""
    problem: str | None = None
    """Why the settings cannot be trusted."""

    @property
    def digest(self) -> str:
        """Hash of the content; empty, and never trusted, if a part could not be read."""
        if self.problem is not None:
            return ""
        whole = hashlib.sha256(b"holdfast agent settings 2")
        parts = {**self.files, **dict.fromkeys(self.not_compared, b"not compared")}
        for path, content in sorted(parts.items()):
            for part in (path.encode("utf-8", "surrogateescape"), content):
                whole.update(len(part).to_bytes(8, "big") + part)
        return whole.hexdigest()
