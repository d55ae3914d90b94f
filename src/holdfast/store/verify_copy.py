"""Verification of an embedded store that no daemon has open: on a copy, so that the original does not change.

The copy is opened as a daemon would open the original: damage is salvaged there, so that everything a start would lose
is named, and the schema is brought up to date.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from holdfast.errors import StoreError
from holdfast.store import Store
from holdfast.store.copying import Progress
from holdfast.store.files import beside
from holdfast.store.high_water import mark_path
from holdfast.store.loss_notices import LossNotices
from holdfast.store.opening import DATABASE, VERIFYING, open_store
from holdfast.store.salvage.damage import CORRUPT, CREATED, mark

CHUNK = 4 * 1024 * 1024


@asynccontextmanager
async def opened_copy(home: Path, progress: Progress) -> AsyncIterator[tuple[Store, list[str]]]:
    """Open a copy of the store of `home` as a start would; yields it with the damage and what a start would lose."""
    with _folder(home) as folder:
        names = [DATABASE, DATABASE + "-wal", CREATED, mark_path(home, "sqlite", "").name]
        _copy([(home / name, folder / name) for name in names if (home / name).exists()], progress)
        mark(folder, CORRUPT, "check every page")
        store, salvaged = await open_store(folder)
        try:
            yield store, [*salvaged[:1], *(line for notice in LossNotices(folder).all() for line in notice.lost)]
        finally:
            await store.close()


def is_new(home: Path) -> bool:
    """Return whether there was never a store here."""
    path = home / DATABASE
    return not (path.exists() or beside(path, "-wal").exists() or (home / CREATED).exists())


@contextmanager
def _folder(home: Path) -> Iterator[Path]:
    """Create a private folder beside the store, or in the temporary directory if the store's folder is read-only."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=VERIFYING, dir=home))
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES):
            raise
        folder = Path(tempfile.mkdtemp(prefix="holdfast" + VERIFYING))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy(files: list[tuple[Path, Path]], progress: Progress) -> None:
    whole = sum(source.stat().st_size for source, _ in files) or 1
    done = 0
    try:
        for source, target in files:
            with source.open("rb") as original, target.open("wb") as copy:
                while data := original.read(CHUNK):
                    copy.write(data)
                    done += len(data)
                    progress(done / whole * 0.3, "copying")
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise StoreError(
            f"There is not enough disk space to verify a copy of the store ({whole / 1e6:.0f} MB).",
            recovery="Free disk space, or start the daemon: it verifies in place.",
        ) from error
