"""The database file while a daemon has it open: put back if it was removed or replaced.

Once it is gone, nothing more is acknowledged. The daemon still has the file open, so nothing is lost: it puts the file
back and starts again, and the next daemon reports it.
"""

from __future__ import annotations

import logging
from pathlib import Path

from holdfast.errors import HoldfastError, StoreRemoved
from holdfast.store import Store
from holdfast.store.salvage.damage import mark
from holdfast.store.sqlite import SqliteStore

PUT_BACK = "put-back"
"""File by which a daemon that put its database back tells the next one."""

logger = logging.getLogger(__name__)


class DatabaseFile:
    """The file of one open store; nothing to do if the store is a server's."""

    def __init__(self, store: Store, home: Path) -> None:
        self._store = store if isinstance(store, SqliteStore) else None
        self._home = home
        self._removed: StoreRemoved | None = None
        self._is_back = False
        if self._store is not None:
            self._store.removed = self._note

    def _note(self, error: StoreRemoved) -> None:
        self._removed = error

    async def look_after(self) -> str | None:
        """Put the file back if it is gone, and return what to tell users; None if it is in place."""
        if self._store is None:
            return None
        await self._store.check_presence()
        if self._removed is None:
            return None
        aside = await self._store.put_back()
        self._is_back = True
        kept = f" What stood in its place is kept as {aside.name}." if aside is not None else ""
        notice = f"{self._removed.message} It was put back, with all that it held.{kept}"
        mark(self._home, PUT_BACK, notice)
        return notice

    async def leave_behind(self) -> str | None:
        """Put the file back before the store closes, if that was not done yet: closing would lose it."""
        if self._is_back:
            return None
        try:
            return await self.look_after()
        except (HoldfastError, OSError):
            logger.exception("the database was removed and could not be put back")
            return None


def reported_by_last_daemon(home: Path) -> list[str]:
    """Return the previous daemon's notice for users, once."""
    try:
        notice = (home / PUT_BACK).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return []
    (home / PUT_BACK).unlink(missing_ok=True)
    return [notice]
