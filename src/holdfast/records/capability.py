"""What records offer: verification, backups, the high-water mark, and the notice of a loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from holdfast.capability import HOUR_SECONDS, Capability, Command, Hook, Life, Loop
from holdfast.config import Settings
from holdfast.records.hooks import loss_notice
from holdfast.store import Store, events
from holdfast.store.from_settings import clock_of
from holdfast.store.loss_notices import LossNotices

if TYPE_CHECKING:
    from holdfast.records.service import Records

MARK_SECONDS = 1.0
BACKUP_SECONDS = 60.0
"""When a daemon first checks whether there is a backup of the day."""


def capability(store: Store, settings: Settings, owns_home: Callable[[], bool]) -> Capability:
    """Return the records capability of one daemon; `owns_home` checks that the data directory is still its own."""
    losses = LossNotices(settings.home)

    @cache
    def records() -> Records:
        from holdfast.records.service import Records

        return Records(store, settings.home, clock_of(settings))

    def commands() -> list[Command]:
        from holdfast.records.commands import commands

        return commands(records())

    def loops() -> list[Loop]:
        from holdfast.store.salvage.damage import quick_check

        found = [
            Loop("check", lambda: quick_check(store)),
            Loop("high-water mark", records().mark.note, MARK_SECONDS),
        ]
        if settings.daily_backup and store.engine == "sqlite":
            found.append(Loop("daily backup", records().daily_backup, HOUR_SECONDS, first=BACKUP_SECONDS))
        return found

    async def sweep() -> None:
        if keep_ms := settings.keep_ms:
            while await store.write(lambda tx: events.trim(tx, keep_ms)):
                continue

    async def leave() -> None:
        if owns_home():
            await records().mark.note()

    return Capability(
        name="records",
        commands=commands,
        loops=loops,
        hooks=[Hook(lambda call: loss_notice(losses, call.event), order=30)],
        life=Life(prepare=records, sweep=sweep, leave=leave),
    )
