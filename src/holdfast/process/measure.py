"""What a process uses, if the system tells."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.lazy_dataclass import dataclass
from holdfast.process.alive import stat_of


@dataclass(frozen=True, slots=True)
class Measured:
    """The memory of a process, and how long it has been running."""

    resident_bytes: int
    age_ms: int


def measure(pid: int) -> Measured | None:
    """Return what a process uses; None if there is none, or the system has no /proc."""
    fields = stat_of(pid)
    try:
        uptime = float(Path("/proc/uptime").read_text().split()[0])
        began = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return Measured(int(fields[21]) * os.sysconf("SC_PAGE_SIZE"), max(0, int((uptime - began) * 1000)))
    except (OSError, IndexError, ValueError):
        return None
