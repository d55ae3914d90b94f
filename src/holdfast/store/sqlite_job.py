"""A closure that a thread of the SQLite store runs, and the future that receives its outcome."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx


@dataclass(slots=True)
class Job:
    """One read or write."""

    fn: Callable[[Tx], Any]
    done: asyncio.Future[Any]
    value: Any = None
    error: BaseException | None = None


def deliver(jobs: Sequence[Job]) -> None:
    """Resolve the futures, with one wake-up per event loop."""
    for loop, ended in groupby(jobs, lambda job: job.done.get_loop()):
        with contextlib.suppress(RuntimeError):  # that loop has ended: nobody is waiting any more
            loop.call_soon_threadsafe(_resolve, list(ended))


def _resolve(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.done.cancelled():
            continue
        if job.error is not None:
            job.done.set_exception(job.error)
        else:
            job.done.set_result(job.value)
