"""The part of the port that people open in a browser: it has a sign-in of its own instead of a key."""

from __future__ import annotations

from starlette.types import ASGIApp

from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages, and by what their paths begin. They check by themselves who is asking."""

    first: frozenset[str]
    """The first names of their paths; the empty one is `/` itself."""
    app: ASGIApp

    def owns(self, path: str) -> bool:
        """Return whether a path is one of theirs."""
        return path.removeprefix("/").partition("/")[0] in self.first
