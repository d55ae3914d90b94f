"""A connection that does not wait for ever: when its server falls silent, somebody asks whether it still works."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import psycopg

from holdfast.store import Row

SILENCE_SECONDS = 3.0
"""How long a statement may go unanswered before the server is asked whether it still works on it."""

V = TypeVar("V")


class ServerSilent(psycopg.OperationalError):
    """The server did not answer, and does not work on the statement; the connection was closed."""


@dataclass(frozen=True, slots=True)
class Backend:
    """The server's process behind a connection; the number alone may be another process's later."""

    pid: int
    started: datetime
    life: str
    """Of the whole server, between two crashes."""


class WatchedConnection(psycopg.Connection[Row]):
    """A connection whose statements are given up when the server is gone without a word (lost packets, a frozen host).

    TCP notices only what the kernel of the next hop does not acknowledge; behind a proxy or a firewall nothing is lost
    for TCP. A statement may take long, so silence alone ends nothing: `still_works` asks the server. Without it (a
    connection that only asks something short) silence is the end.
    """

    made: float = 0.0
    """When it was made, on the monotonic clock."""
    silence: float = SILENCE_SECONDS
    backend: Backend | None = None
    still_works: Callable[[WatchedConnection], bool] | None = None

    def wait(self, gen: Generator[Any, Any, V], *args: Any, **kwargs: Any) -> V:
        """Wait for the server as psycopg does; a caller with a limit of its own is left to that."""
        if kwargs.get("timeout") is not None:
            return super().wait(gen, *args, **kwargs)
        return super().wait(self._watched(gen), *args, **kwargs)

    def _watched(self, gen: Generator[Any, Any, V]) -> Generator[Any, Any, V]:
        # psycopg sends what is ready, or 0 several times a second while nothing is.
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
