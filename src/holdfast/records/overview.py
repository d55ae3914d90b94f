"""When the store was last verified and backed up, and how large it is."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from holdfast.files import read_bounded, write_private
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store
from holdfast.store.backup import own_backups
from holdfast.store.size import size

NAME = "last-verify"
"""File in the data directory with the time of the last verification, and whether all was well."""
MAX_BYTES = 100


@dataclass(frozen=True, slots=True)
class Overview:
    """The state of the records."""

    verified_at: int | None
    verified_ok: bool
    backed_up_at: int | None
    size: int


def note_verified(home: Path, at: int, *, ok: bool) -> None:
    """Write down that the store was verified."""
    with contextlib.suppress(OSError):  # a read-only disk: it is only not known later
        write_private(home / NAME, f"{at} {'ok' if ok else 'problems'}\n")


async def overview(store: Store, home: Path) -> Overview:
    """Return the state of the records."""
    verified, backed_up_at = await asyncio.to_thread(_files, home)
    return Overview(*verified, backed_up_at, await store.read(size))


def _files(home: Path) -> tuple[tuple[int | None, bool], int | None]:
    verified: tuple[int | None, bool] = None, False
    backed_up_at = None
    with contextlib.suppress(OSError, ValueError):
        at, outcome = read_bounded(home / NAME, MAX_BYTES).decode("ascii").split()
        verified = int(at), outcome == "ok"
    with contextlib.suppress(OSError):
        backed_up_at = (home / own_backups.NAME).stat().st_mtime_ns // 1_000_000
    return verified, backed_up_at
