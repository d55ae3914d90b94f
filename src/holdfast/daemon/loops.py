"""Background loops: each is named, restarted when it fails, and visible in `holdfast status`."""

from __future__ import annotations

import asyncio
import logging
import time

from holdfast.capability import Loop
from holdfast.errors import StoreError
from holdfast.lazy_dataclass import dataclass

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
AWAY_PAUSE_S = 5.0
"""The longest pause while the database is down, so that work resumes soon after it is back."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class LoopState:
    """How a background loop is doing."""

    name: str
    failures: int = 0
    last_error: str | None = None
    running: bool = True


class Supervisor:
    """Keeps background loops running until it is closed."""

    def __init__(self) -> None:
        self.loops: list[LoopState] = []
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, loop: Loop) -> None:
        """Run `loop`; when it fails it is logged, counted and started again after a growing pause."""
        state = LoopState(loop.name)
        self.loops.append(state)
        self._tasks.append(asyncio.get_running_loop().create_task(self._keep(state, loop), name=loop.name))

    async def close(self) -> None:
        """End every loop."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep(self, state: LoopState, loop: Loop) -> None:
        pause = FIRST_PAUSE_S
        while True:
            began = time.monotonic()
            try:
                await _run(loop)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                state.failures += 1
                state.last_error = f"{type(error).__name__}: {error}"
                away = isinstance(error, StoreError)  # unreachable, or its disk is full
                if time.monotonic() - began > LONGEST_PAUSE_S:
                    pause = FIRST_PAUSE_S  # it had worked well
                pause = min(pause, AWAY_PAUSE_S) if away else pause
                trace = None if away else error  # a traceback into the store would explain nothing
                logger.error("background loop %r failed; again in %.0f s: %s", state.name, pause, error, exc_info=trace)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_S)
            else:
                state.running = False
                return


async def _run(loop: Loop) -> None:
    await asyncio.sleep(loop.first)
    await loop.run()
    while loop.every is not None:
        await asyncio.sleep(loop.every)
        await loop.run()
