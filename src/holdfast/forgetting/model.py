"""Scope of a removal, its stored form, and what comes of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from holdfast.identity.project import Root, RootSource, path_of
from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """What to forget; stored before the first row is deleted, because it cannot be determined afterwards."""

    what: str
    session: str | None = None
    roots: tuple[Root, ...] = ()
    teams: tuple[str, ...] = ()

    @property
    def uris(self) -> frozenset[str]:
        """The URIs of the roots."""
        return frozenset(root.uri for root in self.roots)

    @property
    def paths(self) -> frozenset[str]:
        """The directories of the roots."""
        return frozenset(str(path) for root in self.roots if (path := path_of(root.uri)) is not None)

    def names(self) -> re.Pattern[str] | None:
        """Return a pattern that finds a root's path or URI in a text, but no path that merely begins the same."""
        spelled = sorted(self.uris | self.paths)
        return re.compile(f"(?:{'|'.join(map(re.escape, spelled))})(?![\\w-]|\\.\\w)") if spelled else None

    def written(self) -> str:
        """Serialize the scope."""
        roots = [[root.uri, root.key] for root in self.roots]
        return json.dumps({"what": self.what, "session": self.session, "roots": roots, "teams": list(self.teams)})

    @staticmethod
    def read(text: str) -> Scope:
        """Parse a serialized scope."""
        fields: dict[str, Any] = json.loads(text)
        roots = tuple(Root(uri, key, RootSource.ARGUMENT) for uri, key in fields["roots"])
        return Scope(fields["what"], fields["session"], roots, tuple(fields["teams"]))


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows of each kind."""

    sessions: int = 0
    thoughts: int = 0
    runs: int = 0
    messages: int = 0
    asks: int = 0
    agent_sessions: int = 0
    history_files: int = 0


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be deleted."""

    what: str
    roots: tuple[str, ...]
    teams: tuple[str, ...]
    counts: Counts
    files: tuple[Path, ...]
    """Copies of the store."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What was deleted."""

    what: str
    counts: Counts
    files: tuple[Path, ...]
    """Copies of the store."""
    left: tuple[str, ...]
    """What could not be erased yet; it is tried again."""
    named_in: tuple[Path, ...]
    """Files that still name the project and that only their owner should change."""
