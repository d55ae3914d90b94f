"""Callbacks that are woken when events are committed."""

from __future__ import annotations

import logging
from collections.abc import Callable

Wake = Callable[[], None]

_log = logging.getLogger(__name__)


class Listeners:
    """Wake-up callbacks, called from the thread that saw the commit."""

    def __init__(self) -> None:
        self._wakes: dict[object, Wake] = {}

    def add(self, wake: Wake) -> Callable[[], None]:
        """Call `wake` from now on; returns a function that stops it."""
        token = object()
        self._wakes[token] = wake

        def stop() -> None:
            self._wakes.pop(token, None)

        return stop

    def wake(self) -> None:
        """Call every listener. One that fails is dropped: the calling thread must outlive every listener."""
        for token, wake in list(self._wakes.items()):
            try:
                wake()
            except Exception:  # noqa: BLE001 - it is logged, and the committing thread continues
                _log.exception("A store listener failed and was removed.")
                self._wakes.pop(token, None)
