"""Losses that were noticed, kept beside the database until a person acknowledges them.

They are a file and not a table: the database may be what is lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.errors import StoreError
from holdfast.store.files import beside, publish
from holdfast.times import iso

FILE = "losses.json"
NOTICES_MOST = 200
LINES_MOST = 1_000
"""How many lost things a notice names; a ruined store has one per row."""
SHOWN_LINES = 12
ACKNOWLEDGE = "`holdfast acknowledge-loss` ends this notice."


@dataclass(frozen=True, slots=True)
class LossNotice:
    """One incident: what happened, and what was lost by it."""

    at: str
    """ISO 8601."""
    reason: str
    lost: tuple[str, ...]
    """What is gone, by name, a line each."""
    report: str | None = None
    """The file that tells more."""
    backup: str | None = None
    """The newest backup at that time."""
    acknowledged: str | None = None
    """When a person took note of it."""

    def lines(self, most: int = LINES_MOST) -> list[str]:
        """The notice as text, with as many of the lost things as that."""
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

    def all(self) -> list[LossNotice]:
        """Every notice, oldest first."""
        try:
            rows = json.loads(self._path.read_text(encoding="utf-8"))
            return [_notice(row) for row in rows]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StoreError(
                f"The notices of losses in {self._path} cannot be read ({error}).",
                recovery="Look into the file, then remove it.",
            ) from error

    def open(self) -> list[LossNotice]:
        """The notices that nobody acknowledged."""
        return [notice for notice in self.all() if notice.acknowledged is None]

    def lines(self, most: int = SHOWN_LINES) -> list[str]:
        """What a person is shown of the open notices; nothing where there are none."""
        try:
            waiting = self.open()
        except StoreError as error:
            return [str(error)]
        return [*(line for notice in waiting for line in notice.lines(most)), *([ACKNOWLEDGE] if waiting else [])]

    def tell_of(self, report: Sequence[str]) -> bool:
        """Whether the report of a salvage is on record as a loss, and told until it is acknowledged."""
        return any(notice.report in line for notice in self.open() if notice.report for line in report)

    def acknowledged_lines(self) -> set[str]:
        """The lost things that a person has taken note of."""
        return {line for notice in self.all() if notice.acknowledged for line in notice.lost}

    def record(
        self, now_ms: int, reason: str, lost: Sequence[str], *, report: str | None = None, backup: str | None = None
    ) -> None:
        """Keep a notice, on disk when this returns. What was told before is not told twice."""
        known = self.all()
        told = {line for notice in known for line in notice.lost}
        news = tuple(line for line in lost if line not in told)[:LINES_MOST]
        if news:
            self._write([*known, LossNotice(iso(now_ms), reason, news, report, backup)][-NOTICES_MOST:])

    def acknowledge(self, seen: Sequence[LossNotice], now_ms: int) -> None:
        """Take note of the notices that somebody saw."""
        self._write([replace(one, acknowledged=iso(now_ms)) if one in seen else one for one in self.all()])

    def _write(self, notices: Iterable[LossNotice]) -> None:
        draft = beside(self._path, f".{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps([asdict(notice) for notice in notices], indent=1) + "\n", encoding="utf-8")
        publish(draft, self._path)


def _notice(row: dict[str, Any]) -> LossNotice:
    return LossNotice(**{**row, "lost": tuple(row["lost"])})
