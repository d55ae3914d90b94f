"""The SQL of projects: which roots are known, and where recording is paused."""

from __future__ import annotations

from holdfast.identity.project import Root
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
    sql = "UPDATE projects SET paused_at = :at WHERE root_uri = :root OR project_key = :key"
    tx.run(sql, at=paused_at, root=root.uri, key=root.key)


def is_paused(tx: Tx, root: Root | None, target: Session | None) -> bool:
    """Return whether recording is paused for the caller's project or for that of the session it would write to.

    A directory of a checkout is paused with the checkout.
    """
    paused = tx.all("SELECT root_uri, project_key FROM projects WHERE paused_at IS NOT NULL")
    if not paused:
        return False
    top = root.top if root else None
    uris = {root.uri if root else None, top.uri if top else None, target.root_uri if target else None}
    keys = {root.key if root else None, top.key if top else None, target.project_key if target else None} - {None}
    return any(row["root_uri"] in uris or row["project_key"] in keys for row in paused)


def set_first_commit(tx: Tx, root: Root, commit: str) -> None:
    know(tx, root)
    tx.run("UPDATE projects SET first_commit = :commit WHERE root_uri = :root", commit=commit, root=root.uri)


def first_commit(tx: Tx, root: Root) -> str | None:
    """Return the known first commit of a root; None if git was not asked yet."""
    row = tx.one("SELECT first_commit FROM projects WHERE root_uri = :root", root=root.uri)
    return None if row is None else row["first_commit"]


def roots_with_first_commit(tx: Tx, root: Root, commit: str) -> list[str]:
    """Return other roots with this first commit that have sessions or ledgers."""
    rows = tx.all(
        "SELECT root_uri FROM projects WHERE first_commit = :commit AND root_uri <> :root"
        " AND (EXISTS (SELECT 1 FROM agent_sessions WHERE agent_sessions.root = projects.root_uri)"
        " OR EXISTS (SELECT 1 FROM ledgers WHERE ledgers.root = projects.root_uri)"
        " OR EXISTS (SELECT 1 FROM sessions WHERE sessions.root_uri = projects.root_uri)) LIMIT 20",
        commit=commit,
        root=root.uri,
    )
    return [str(row["root_uri"]) for row in rows]
