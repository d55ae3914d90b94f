"""Where the benchmarks keep what they build: `.bench` beside the sources, on the disk that is to be measured."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WORKSHOP = Path(__file__).resolve().parent.parent / ".bench"


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory for one measurement; not under /tmp, which may be memory and forgive every fsync."""
    WORKSHOP.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WORKSHOP, prefix="run-") as place:
        yield Path(place)
