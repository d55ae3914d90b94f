"""SQL of sessions whose hooks were never heard of."""
# ruff: noqa: S608 - the SQL is built from numbered names only

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store import Tx


def accounted_for(tx: Tx, session_ids: Sequence[str]) -> set[str]:
    """Return those of these sessions that a hook reported, or that Holdfast itself runs."""
    if not session_ids:
        return set()
    names = {f"id{number}": one for number, one in enumerate(session_ids)}
    wanted = ", ".join(f":{name}" for name in names)
    rows = tx.all(
        f"SELECT session_id FROM agent_sessions WHERE session_id IN ({wanted})"
        f" UNION SELECT session_id FROM conversations WHERE session_id IN ({wanted})",
        **names,
    )
    return {str(row["session_id"]) for row in rows}
