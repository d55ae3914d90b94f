"""Background work on what is stored."""

from __future__ import annotations

from holdfast.capability import HOUR_SECONDS, Loop
from holdfast.records.service import Records
from holdfast.store import Store
from holdfast.store.salvage.damage import quick_check

MARK_SECONDS = 1.0
BACKUP_SECONDS = 60.0
"""When a daemon first looks whether there is a backup of the day."""


def loops(store: Store, records: Records, *, daily_backup: bool) -> list[Loop]:
    """What a daemon supervises."""

    async def check() -> None:
        await quick_check(store)

    backups = daily_backup and store.engine == "sqlite"
    return [
        Loop("check", check),
        Loop("high-water mark", records.mark.note, MARK_SECONDS),
        *([Loop("daily backup", records.daily_backup, HOUR_SECONDS, first=BACKUP_SECONDS)] if backups else []),
    ]
