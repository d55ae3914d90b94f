"""A connection that does not wait forever: when the server falls silent, it is asked whether it is still working."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from datetime import datetime
from typing import Any, TypeVar

import psycopg

from holdfast.lazy_dataclass import dataclass
from holdfast.store import Row

SILENCE_SECONDS = 3.0
"""How long a statement may go unanswered before the server is asked whether it is still working on it."""

V = TypeVar("V")


class ServerSilent(psycopg.OperationalError):
    """The server did not answer and is not working on the statement; the connection was closed."""


@dataclass(frozen=True, slots=True)
class Backend:
    """The server process behind a connection; its pid alone may be reused later."""

    pid: int
    started: datetime
    life: str
    """Identifies one run of the whole server, between two crashes."""


class WatchedConnection(psycopg.Connection[Row]):
    """A connection that gives up when the server disappears silently (lost packets, a frozen host).

    TCP only notices what the next hop does not acknowledge; behind a proxy or a firewall it notices nothing. A
    statement may take long, so silence alone does not count: `still_works` asks the server. Without it (on a connection
    for one short query) silence is a failure.
    """

    made: float = 0.0
    """When it was opened, on the monotonic clock."""
    silence: float = SILENCE_SECONDS
    backend: Backend | None = None
    still_works: Callable[[WatchedConnection], bool] | None = None

    def wait(self, gen: Generator[Any, Any, V], *args: Any, **kwargs: Any) -> V:
        """Wait for the server as psycopg does; a caller that sets its own limit keeps it."""
        if kwargs.get("timeout") is not None:
            return super().wait(gen, *args, **kwargs)
        return super().wait(self._watched(gen), *args, **kwargs)

    def _watched(self, gen: Generator[Any, Any, V]) -> Generator[Any, Any, V]:
        # psycopg sends the ready state, or 0 several times a second while nothing is ready.
        look = time.monotonic() + self.silence
        try:
            state = next(gen)
            while True:
                ready = yield state
                if not ready and time.monotonic() > look:
                    self._look()
                    look = time.monotonic() + self.silence
                state = gen.send(ready)
        except StopIteration as end:
            value: V = end.value
            return value

    def _look(self) -> None:
        if self.still_works is None or not self.still_works(self):
            self.close()
            raise ServerSilent("the server does not answer")
