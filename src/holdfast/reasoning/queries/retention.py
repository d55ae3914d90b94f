"""The SQL of retention: archives old sessions, and removes deleted and forgotten ones."""

from __future__ import annotations

from holdfast.identity.project import Root
from holdfast.reasoning.model import FORGETTING, KEEP_DELETED_MS
from holdfast.store import Tx, register

AT_ONCE = 200
ROWS_AT_ONCE = 2000
"""How much one transaction removes, so that no caller waits long behind it."""


def archive_untouched(tx: Tx, archive_after_ms: int) -> int:
    """Archive some of the sessions that were not used for that long; a pinned one stays."""
    rows = tx.all(
        "SELECT id FROM sessions WHERE status = 'active' AND updated_at < :before AND pinned = 0"
        " ORDER BY updated_at LIMIT :limit",
        before=tx.now() - archive_after_ms,
        limit=AT_ONCE,
    )
    archived = 0
    for row in rows:
        sql = (
            "UPDATE sessions SET status = 'archived', archived_at = :now"
            " WHERE id = :id AND status = 'active' AND updated_at < :before AND pinned = 0"
        )
        changed = tx.run(sql, now=tx.now(), id=row["id"], before=tx.now() - archive_after_ms)
        if changed:
            tx.emit("reasoning.session_archived", row["id"], {"untouched": True})
            archived += 1
    return archived


def past_restoring(tx: Tx) -> list[str]:
    """Return some of the sessions that were deleted too long ago to be restored."""
    sql = "SELECT id FROM sessions WHERE status = 'deleted' AND deleted_at < :before ORDER BY deleted_at LIMIT :limit"
    rows = tx.all(sql, before=tx.now() - KEEP_DELETED_MS, limit=AT_ONCE)
    return [row["id"] for row in rows]


def sessions_of_project(tx: Tx, root: Root) -> list[str]:
    """Return some sessions of a project in any state, under every root it is known by."""
    sql = "SELECT id FROM sessions WHERE root_uri = :root OR project_key = :key ORDER BY id LIMIT :limit"
    rows = tx.all(sql, root=root.uri, key=root.key, limit=AT_ONCE)
    return [row["id"] for row in rows]


def condemn(tx: Tx, session_id: str) -> int | None:
    """Mark a session as being forgotten, so that an interrupted removal is finished by the next sweep.

    Returns how many thoughts it had, or None if there is no such session.
    """
    tx.lock(f"session:{session_id}")
    row = tx.one("SELECT thought_count FROM sessions WHERE id = :id", id=session_id)
    if row is None:
        return None
    sql = "UPDATE sessions SET status = 'deleted', deleted_at = 0, pinned = 0, damage = :damage WHERE id = :id"
    tx.run(sql, damage=FORGETTING, id=session_id)
    return int(row["thought_count"])


def remove_some(tx: Tx, session_id: str) -> bool:
    """Remove a part of a condemned session and of what mentions it; says whether that was the last of it."""
    removed = tx.run(
        "DELETE FROM thoughts WHERE session_id = :id AND number IN"
        " (SELECT number FROM thoughts WHERE session_id = :id ORDER BY number LIMIT :limit)",
        id=session_id,
        limit=ROWS_AT_ONCE,
    )
    # The log has no gaps, which is how a lost event is noticed, so an erased event leaves an empty row.
    removed += tx.run(
        "UPDATE events SET kind = 'reasoning.erased', subject = 'erased', data = '{}' WHERE seq IN"
        " (SELECT seq FROM events WHERE subject = :id AND kind LIKE 'reasoning.%' ORDER BY seq LIMIT :limit)",
        id=session_id,
        limit=ROWS_AT_ONCE,
    )
    if removed:
        return False
    # A stored result may contain the session's title, which is the first line of a thought.
    tx.run("DELETE FROM calls WHERE replace(result, :id, '') <> result", id=session_id)
    tx.run("DELETE FROM session_links WHERE session_id = :id OR linked_id = :id", id=session_id)
    tx.run("DELETE FROM session_roots WHERE session_id = :id", id=session_id)
    tx.run("DELETE FROM branches WHERE session_id = :id", id=session_id)
    row = tx.one("SELECT head_hash FROM sessions WHERE id = :id", id=session_id)
    if row is not None:
        register.leave(tx, session_id, row["head_hash"])
    tx.run("DELETE FROM sessions WHERE id = :id", id=session_id)
    return True


def remove_project(tx: Tx, root: Root) -> None:
    for table in ("projects", "session_roots"):
        tx.run(f"DELETE FROM {table} WHERE root_uri = :root OR project_key = :key", root=root.uri, key=root.key)  # noqa: S608
