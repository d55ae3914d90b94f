"""Reading a project's files beside the event loop, for no longer than an agent's hook can wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from holdfast.errors import HoldfastError

LIMIT_S = 4.0
"""Less than the five seconds for which a hook waits, so that it is told why."""

Result = TypeVar("Result")


class ProjectTooSlow(HoldfastError):
    """A project whose files are not read in time."""

    code = "E_PROJECT_TOO_SLOW"


async def in_time(read: Callable[..., Result], *args: object, limit_s: float = LIMIT_S) -> Result:
    """What `read` returns, run in a thread. Raises ProjectTooSlow.

    A thread cannot be ended: it goes on, and what it does is bounded by the sizes of the files and by reading that is
    linear. The limit frees whoever waits, as when a file system stalls.
    """
    try:
        async with asyncio.timeout(limit_s):
            return await asyncio.to_thread(read, *args)
    except TimeoutError:
        raise ProjectTooSlow(
            f"The project's files were not read within {limit_s:g} s.",
            recovery="Check that its file system answers, then try again.",
        ) from None
