"""Verification, manual and daily backups, and the high-water mark of the stored data."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from holdfast.errors import Conflict
from holdfast.lazy_dataclass import dataclass
from holdfast.reasoning.hash_chain_check import chain_check, register_check
from holdfast.records.overview import note_verified
from holdfast.store import Clock, Store
from holdfast.store.backup import backup as backups
from holdfast.store.backup import own_backups
from holdfast.store.backup.backup import BackupReport
from holdfast.store.files import utc_stamp
from holdfast.store.high_water import NAME as HIGH_WATER
from holdfast.store.high_water import HighWater
from holdfast.store.loss_notices import LossNotices
from holdfast.store.salvage.damage import CORRUPT, mark
from holdfast.store.verify import DATABASE, ENGINE_CHECKS, Check, Problem, VerifyReport, verify
from holdfast.store.verify_copy import is_new, opened_copy

Progress = Callable[[float, str], None]

CHECKS: dict[str, Check] = {"register": register_check, "thoughts": chain_check}
DAY_MS = 24 * 3_600_000
DAILY_KEPT = 7
MAX_PROBLEMS_NAMED = 5
"""How many problems an error names; `verify` lists all."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What `holdfast verify` found."""

    report: VerifyReport
    problems: tuple[Problem, ...]
    """The report's problems; an unacknowledged loss counts as new. Damage to be salvaged comes first."""
    losses: tuple[str, ...]
    """Losses that wait to be acknowledged and that the report does not name."""
    is_waiting: bool
    """Whether any loss waits to be acknowledged."""
    salvage: bool = False
    """Whether the next start moves the damaged database aside."""

    @property
    def ok(self) -> bool:
        """Whether nothing was lost or changed that the user has not seen."""
        return self.report.ok and not self.is_waiting and not self.salvage


@dataclass(frozen=True, slots=True)
class BackupMade:
    """A backup, and the losses that wait to be acknowledged."""

    report: BackupReport
    losses: tuple[str, ...]


class Records:
    """Verification and backups of one open store, on either engine."""

    def __init__(self, store: Store, home: Path, clock: Clock) -> None:
        self.mark = HighWater(home, store)
        self._store = store
        self._home = home
        self._clock = clock
        self._losses = LossNotices(home)

    async def verify(self, progress: Progress) -> Verification:
        """Check everything, in place; problems stay recorded until they are acknowledged."""
        checks = {**CHECKS, HIGH_WATER: self.mark.check}
        report = await verify(self._store, checks, progress, self._losses.acknowledged_lines())
        if any(problem.subject == DATABASE for problem in report.new_problems):
            mark(self._home, CORRUPT, report.new_problems[0].text)
        result = _verification(report, self._losses, self._clock())
        await asyncio.to_thread(note_verified, self._home, self._clock(), ok=result.ok)
        return result

    async def backup(self, file: Path, progress: Progress, *, replace: bool, anyway: bool) -> BackupMade:
        """Write a verified backup; if verification fails, only with `anyway`."""
        report = await self._backup(file, progress, replace=replace, anyway=anyway)
        return BackupMade(report, tuple(self._losses.lines(MAX_PROBLEMS_NAMED)))

    async def daily_backup(self) -> None:
        """Make today's backup if there is none yet, and keep the newest seven."""
        folder = self._home / "backups"
        now = self._clock()
        newest = max(folder.glob("daily-*.db"), default=None)
        if newest is not None and newest.name > f"daily-{utc_stamp(now - DAY_MS)}.db":
            return
        folder.mkdir(mode=0o700, exist_ok=True)
        try:
            await self._backup(folder / f"daily-{utc_stamp(now)}.db", lambda share, doing: None)
        except BackupRefused as error:
            # The backups from before the damage are worth more than one that contains it.
            self._losses.record(now, "The store failed verification, so no backup was made.", error.problems)
            return
        for old in sorted(folder.glob("daily-*.db"))[:-DAILY_KEPT]:
            await asyncio.to_thread(old.unlink)

    async def _backup(
        self, file: Path, progress: Progress, *, replace: bool = False, anyway: bool = False
    ) -> BackupReport:
        known = self._losses.acknowledged_lines()

        def accept(report: VerifyReport) -> None:
            note_verified(self._home, self._clock(), ok=not report.new_problems)
            if report.new_problems and not anyway:
                raise BackupRefused(report.new_problems)

        checks = {**ENGINE_CHECKS, **CHECKS}
        checked = backups.Verification(checks, known, accept, partial(own_backups.note, self._home))
        return await backups.backup(self._store, file, progress, checked, replace=replace)


class BackupRefused(Conflict):
    """The store failed verification, so a backup would contain the damage."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = [problem.line for problem in problems]
        named = "; ".join(self.problems[:MAX_PROBLEMS_NAMED])
        more = f"; and {len(problems) - MAX_PROBLEMS_NAMED} more" if len(problems) > MAX_PROBLEMS_NAMED else ""
        super().__init__(
            f"The store failed verification, so no backup was made: {named}{more}.",
            recovery="`holdfast verify` lists every problem; `--anyway` makes the backup including the damage.",
        )


async def verify_unopened(home: Path, clock: Clock, progress: Progress) -> Verification:
    """Check an embedded store that no process has open, without changing it; reports what the next start would lose."""
    losses = LossNotices(home)
    if is_new(home):
        return _verification(VerifyReport([], [], complete=True), losses, clock())
    known = losses.acknowledged_lines()
    async with opened_copy(home, progress) as (store, damage):
        report = await verify(store, CHECKS, lambda share, doing: progress(0.3 + share * 0.7, doing), known)
    result = _verification(report, losses, clock())
    if not damage:
        return result
    with contextlib.suppress(OSError):  # on a read-only disk the next start cannot change anything either
        mark(home, CORRUPT, damage[0])
    return replace(result, problems=(*(Problem(DATABASE, line) for line in damage), *result.problems), salvage=True)


def _verification(report: VerifyReport, losses: LossNotices, now: int) -> Verification:
    """Record the new problems, and return them with the losses that wait."""
    lasting = [problem.line for problem in report.new_problems if problem.subject != DATABASE]
    if lasting:
        with contextlib.suppress(OSError):  # a read-only disk: it is reported anyway, and will be found again
            losses.record(now, "`holdfast verify` found damage.", lasting)
    waiting = [line for notice in losses.open() for line in notice.lost]
    present = {problem.line for problem in report.problems}
    # A loss that a salvage marked in the store is known there, but new to the user until it is acknowledged.
    problems = [replace(problem, known=problem.known and problem.line not in waiting) for problem in report.problems]
    lost = tuple(line for line in waiting if line not in present)
    return Verification(report, tuple(problems), lost, bool(waiting))
