"""Until when a project was forgotten. Transcripts belong to the agent and stay; what they tell from before then is not
read again."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from holdfast.identity.project import Root
from holdfast.store import Tx


def note(tx: Tx, root: Root) -> None:
    for mark in _marks(root):
        tx.run(
            "INSERT INTO forgotten_projects (mark, at) VALUES (:mark, :now)"
            " ON CONFLICT (mark) DO UPDATE SET at = excluded.at",
            mark=mark,
            now=tx.now(),
        )


def lift(tx: Tx, root: Root) -> None:
    """Remove the mark: the project's past is wanted again."""
    for mark in _marks(root):
        tx.run("DELETE FROM forgotten_projects WHERE mark = :mark", mark=mark)


def until(tx: Tx, root: Root) -> int:
    """Return when a project was last forgotten; 0 if never."""
    by_uri, *by_key = _marks(root)
    sql = "SELECT max(at) AS at FROM forgotten_projects WHERE mark IN (:uri, :key)"
    row = tx.one(sql, uri=by_uri, key=by_key[0] if by_key else by_uri)
    return row["at"] or 0 if row is not None else 0


@lru_cache(1_000)
def _marks(root: Root) -> list[str]:
    """Hash the project's URI and key, so that its name cannot be read here."""
    return [hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest() for name in (root.uri, root.key) if name]
