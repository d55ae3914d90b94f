"""What the indexes of a damaged file still reveal about reasoning sessions whose own rows are lost."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.lazy_dataclass import dataclass
from holdfast.store.salvage.damaged_file import DamagedFile

SESSION_IDS = "sqlite_autoindex_sessions_1"
SESSIONS_BY_ROOT = "sessions_by_root"
SESSIONS_BY_PROJECT = "sessions_by_project"
THOUGHT_NUMBERS = "sqlite_autoindex_thoughts_1"


@dataclass(frozen=True, slots=True)
class SessionClue:
    """What is known about one session."""

    root_uri: str | None = None
    status: str | None = None
    project_key: str | None = None
    newest_thought: int = 0


@dataclass(frozen=True, slots=True)
class SessionClues:
    """Looks things up in the indexes; each lookup reads the index once."""

    source: DamagedFile

    def known_ids(self) -> set[str]:
        """Return every session id in the index of sessions."""
        return {entry[0] for entry in self.source.index_entries(SESSION_IDS) if isinstance(entry[0], str)}

    def thought_keys(self, rowids: Collection[int]) -> dict[int, tuple[str, int]]:
        """Return the session and the thought number of these thought rows."""
        return {
            rowid: (session_id, number)
            for session_id, number, rowid in self.source.index_entries(THOUGHT_NUMBERS)
            if rowid in rowids and isinstance(session_id, str) and isinstance(number, int)
        }

    def of(self, session_ids: Collection[str]) -> dict[str, SessionClue]:
        """Return what is known about these sessions."""
        rows = {entry[1]: entry[0] for entry in self.source.index_entries(SESSION_IDS) if entry[0] in session_ids}
        roots: dict[str, tuple[str | None, str | None]] = {}
        for root, status, _, rowid in self.source.index_entries(SESSIONS_BY_ROOT):
            if rowid in rows:
                roots[rows[rowid]] = (_text(root), _text(status))
        keys = {
            rows[entry[-1]]: _text(entry[0])
            for entry in self.source.index_entries(SESSIONS_BY_PROJECT)
            if entry[-1] in rows
        }
        newest: dict[str, int] = {}
        for session_id, number, _ in self.source.index_entries(THOUGHT_NUMBERS):
            if session_id in session_ids and isinstance(number, int):
                newest[session_id] = max(newest.get(session_id, 0), number)
        return {
            session_id: SessionClue(
                *roots.get(session_id, (None, None)), keys.get(session_id), newest.get(session_id, 0)
            )
            for session_id in session_ids
        }


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
