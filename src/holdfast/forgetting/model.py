"""Scope of a removal, and its stored form."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from holdfast.identity.project import Root, RootSource, path_of


@dataclass(frozen=True, slots=True)
class Scope:
    """What is to be forgotten; stored before the first row is deleted, because it cannot be determined afterwards."""

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
        found: dict[str, Any] = json.loads(text)
        roots = tuple(Root(uri, key, RootSource.ARGUMENT) for uri, key in found["roots"])
        return Scope(found["what"], found["session"], roots, tuple(found["teams"]))
