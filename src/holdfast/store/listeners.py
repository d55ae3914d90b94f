"""Who wants to be woken when events were committed."""

from __future__ import annotations

import logging
from collections.abc import Callable

Wake = Callable[[], None]

_log = logging.getLogger(__name__)


class Listeners:
    """Wake-up calls, made from the thread that saw the commit."""

    def __init__(self) -> None:
        self._wakes: dict[object, Wake] = {}

    def add(self, wake: Wake) -> Callable[[], None]:
        """Call `wake` from now on; returns how to stop that."""
        token = object()
        self._wakes[token] = wake

        def stop() -> None:
            self._wakes.pop(token, None)

        return stop

    def wake(self) -> None:
        """Wake everybody. One that fails is dropped: the thread that calls this must outlive every listener."""
        for token, wake in list(self._wakes.items()):
            try:
                wake()
            except Exception:  # noqa: BLE001 - it is logged, and the committing thread goes on
                _log.exception("A listener failed and is no longer woken.")
                self._wakes.pop(token, None)
