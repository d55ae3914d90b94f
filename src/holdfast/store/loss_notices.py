"""Notices of data loss, kept beside the database until a person acknowledges them.

They are in a file and not in a table: the database may be what is lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from holdfast.errors import StoreError
from holdfast.files import write_private
from holdfast.lazy_dataclass import dataclass
from holdfast.times import iso

FILE = "losses.json"
MAX_NOTICES = 200
MAX_LINES = 1_000
"""Lost items that a notice names; a ruined store has one per row."""
SHOWN_LINES = 12
ACKNOWLEDGE = "`holdfast acknowledge-loss` ends this notice."


@dataclass(frozen=True, slots=True)
class LossNotice:
    """One incident: what happened, and what was lost."""

    at: str
    """ISO 8601."""
    reason: str
    lost: tuple[str, ...]
    """The lost items, one line each."""
    report: str | None = None
    """File name of the full report."""
    backup: str | None = None
    """The newest backup at that time."""
    acknowledged: str | None = None
    """When a person acknowledged it."""

    def lines(self, most: int = MAX_LINES) -> list[str]:
        """Return the notice as text, with at most `most` of the lost items."""
        more = len(self.lost) - most
        offered = [f"The newest backup is {self.backup}; `holdfast restore {self.backup}` puts it back."]
        return [
            f"{self.at}: {self.reason}",
            *(f"Lost: {line}" for line in self.lost[:most]),
            *([f"Lost: {more} more; `holdfast verify` names them."] if more > 0 else []),
            *([f"The whole report is {self.report}."] if self.report else []),
            *(offered if self.backup else []),
        ]


class LossNotices:
    """The notices of one data directory."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    @property
    def exist(self) -> bool:
        """Whether there is any notice, acknowledged or not."""
        return self._path.exists()

    def all(self) -> list[LossNotice]:
        """Return every notice, oldest first."""
        try:
            rows = json.loads(self._path.read_text(encoding="utf-8"))
            return [_notice(row) for row in rows]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StoreError(
                f"The loss notices in {self._path} cannot be read ({error}).",
                recovery="Inspect the file, then remove it.",
            ) from error

    def open(self) -> list[LossNotice]:
        """Return the notices that are not acknowledged."""
        return [notice for notice in self.all() if notice.acknowledged is None]

    def lines(self, most: int = SHOWN_LINES) -> list[str]:
        """Return the open notices as text for people; empty if there are none."""
        try:
            waiting = self.open()
        except StoreError as error:
            return [str(error)]
        return [*(line for notice in waiting for line in notice.lines(most)), *([ACKNOWLEDGE] if waiting else [])]

    def includes_report(self, report: Sequence[str]) -> bool:
        """Return whether an open notice already refers to this salvage report."""
        return any(notice.report in line for notice in self.open() if notice.report for line in report)

    def acknowledged_lines(self) -> set[str]:
        """Return the lost items that a person has acknowledged."""
        return {line for notice in self.all() if notice.acknowledged for line in notice.lost}

    def record(
        self, now_ms: int, reason: str, lost: Sequence[str], *, report: str | None = None, backup: str | None = None
    ) -> None:
        """Record a notice, on disk when this returns. Items that were reported before are left out."""
        notices = self.all()
        reported = {line for notice in notices for line in notice.lost}
        unreported = tuple(line for line in lost if line not in reported)[:MAX_LINES]
        if unreported:
            self._write([*notices, LossNotice(iso(now_ms), reason, unreported, report, backup)][-MAX_NOTICES:])

    def acknowledge(self, seen: Sequence[LossNotice], now_ms: int) -> None:
        """Mark notices as acknowledged."""
        self._write([replace(one, acknowledged=iso(now_ms)) if one in seen else one for one in self.all()])

    def _write(self, notices: Iterable[LossNotice]) -> None:
        write_private(self._path, json.dumps([asdict(notice) for notice in notices], indent=1) + "\n")


def _notice(row: dict[str, Any]) -> LossNotice:
    return LossNotice(**{**row, "lost": tuple(row["lost"])})
