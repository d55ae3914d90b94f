"""The SQL of projects: which roots are known, and where recording is paused."""

from __future__ import annotations

from holdfast.project import Root
from holdfast.reasoning.model import Session
from holdfast.store import Tx


def know(tx: Tx, root: Root) -> None:
    """Remember a root and the project it stands for."""
    tx.run(
        "INSERT INTO projects (root_uri, project_key) VALUES (:root, :key)"
        " ON CONFLICT (root_uri) DO UPDATE SET project_key = excluded.project_key",
        root=root.uri,
        key=root.key,
    )


def set_paused(tx: Tx, root: Root, paused_at: int | None) -> None:
    """Pause or resume recording for a project, under every root it is known by."""
    know(tx, root)
    tx.run(
        "UPDATE projects SET paused_at = :at WHERE root_uri = :root OR project_key = :key",
        at=paused_at,
        root=root.uri,
        key=root.key,
    )


def is_paused(tx: Tx, root: Root | None, target: Session | None) -> bool:
    """Whether recording is paused for the caller's project or for that of the session it would write to."""
    row = tx.one(
        "SELECT 1 AS paused FROM projects WHERE paused_at IS NOT NULL"
        " AND (root_uri IN (:root, :other_root) OR project_key IN (:key, :other_key)) LIMIT 1",
        root=root.uri if root else None,
        key=root.key if root else None,
        other_root=target.root_uri if target else None,
        other_key=target.project_key if target else None,
    )
    return row is not None
