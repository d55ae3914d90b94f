"""Until when a project was forgotten. Transcripts belong to the agent and stay; what they tell from before then is not
read again."""

from __future__ import annotations

import hashlib

from holdfast.identity.project import Root
from holdfast.store import Tx


def note(tx: Tx, root: Root) -> None:
    """A project is forgotten now."""
    for mark in _marks(root):
        tx.run(
            "INSERT INTO forgotten_projects (mark, at) VALUES (:mark, :now)"
            " ON CONFLICT (mark) DO UPDATE SET at = excluded.at",
            mark=mark,
            now=tx.now(),
        )


def lift(tx: Tx, root: Root) -> None:
    """Its past is wanted again."""
    for mark in _marks(root):
        tx.run("DELETE FROM forgotten_projects WHERE mark = :mark", mark=mark)


def until(tx: Tx, root: Root) -> int:
    """When a project was forgotten last; 0 where it never was."""
    sql = "SELECT at FROM forgotten_projects WHERE mark = :mark"
    return max((row["at"] for mark in _marks(root) for row in tx.all(sql, mark=mark)), default=0)


def _marks(root: Root) -> list[str]:
    """What a project is known by here: nobody reads its name from it."""
    return [hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest() for name in (root.uri, root.key) if name]
