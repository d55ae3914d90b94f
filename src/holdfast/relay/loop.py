"""The relay's poll loop: moves bytes between agent, session and daemon until the agent hangs up."""

from __future__ import annotations

import os
import select
import sys
import time

from holdfast.relay.lines import LineSplitter

TYPE_CHECKING = False  # importing typing would double the relay's start-up
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.relay.answers import Answer, Asked
    from holdfast.relay.link import Link
    from holdfast.relay.session import RelaySession

STDIN, STDOUT = 0, 1
CHUNK = 64 * 1024
MAX_WAITING = 16 * 1024 * 1024
LAST_WORDS = 1.0
KEEP_AFTER = 1.0
"""Seconds after which a daemon's answers are stored for the next relay; first the agent gets its tools."""
GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Loop:
    """Runs the relay over this process's standard input and output.

    Neither is made non-blocking, because the flag would affect every process that shares the terminal. A pipe that
    polls writable takes PIPE_BUF bytes without blocking, so writes are never longer.
    """

    def __init__(
        self,
        session: RelaySession,
        link: Link,
        patience: float,
        keep: Callable[[list[tuple[Asked, Answer]]], None],
    ) -> None:
        """`keep` stores a daemon's answers for the next relay that has to wait for one; raises OSError."""
        self._session = session
        self._link = link
        self._patience = patience
        self._keep = keep
        self._keep_at: float | None = None
        self._lines = LineSplitter()
        self._leave_by: float | None = None
        self._client_gone = False
        self._stdout = select.poll()
        self._stdout.register(STDOUT, select.POLLOUT)

    def run(self) -> None:
        """Serve until the agent has closed its input and got its answers, or stops reading."""
        while not self._finished(now := time.monotonic()):
            self._link.tick(now)
            self._expire(now)
            self._keep_learned(now)
            self._say_notes()
            self._serve(self._wait(now))
        self._keep_learned(None)
        self._say_notes()

    def _keep_learned(self, now: float | None) -> None:
        """Store the daemon's answers a moment after they came; at once if `now` is None."""
        if not self._session.learned:
            return
        if now is not None and self._keep_at is None:
            self._keep_at = now + KEEP_AFTER
        if now is None or now >= (self._keep_at or 0):
            learned, self._session.learned, self._keep_at = self._session.learned, [], None
            try:
                self._keep(learned)
            except OSError as error:
                self._session.notes.append(f"holdfast mcp: cannot keep the list of tools: {error}")

    def _finished(self, now: float) -> bool:
        if self._client_gone:
            return True
        if self._leave_by is None:
            return False
        if now >= self._leave_by and self._session.open_calls:
            self._expire(now)  # if no daemon was reached, that is the reason given
            reason = f"The input ended, and there was no answer within {self._patience:g} s. "
            self._session.give_up(reason + "Repeat the call, and keep the input open until the answer is there.")
            self._leave_by = now + LAST_WORDS
        return now >= self._leave_by or not (self._session.open_calls or self._session.to_client)

    def _expire(self, now: float) -> None:
        expiry = self._session.next_expiry(self._patience)
        if expiry is None or now < expiry:
            return
        why = self._link.why_away()
        reason = f"No Holdfast daemon could be reached within {self._patience:g} s"
        reason += f": {why.rstrip('.')}. " if why else ". "
        reason += "Run `holdfast serve` to see why; the relay goes on trying and this call can be repeated."
        self._session.expire(now, self._patience, reason)

    def _say_notes(self) -> None:
        for note in self._session.notes:
            print(note, file=sys.stderr, flush=True)
        self._session.notes.clear()

    def _wait(self, now: float) -> dict[int, int]:
        """Poll until a descriptor is ready or something is due; returns the ready events by descriptor."""
        poll = select.poll()
        # A descriptor that is not read must not be registered at all: poll reports a hang-up regardless,
        # and the loop would spin on it.
        poll.register(STDOUT, select.POLLOUT if self._session.to_client else 0)
        if self._listens_to_client():
            poll.register(STDIN, select.POLLIN)
        events = select.POLLIN if len(self._session.to_client) < MAX_WAITING else 0
        events |= select.POLLOUT if self._link.wants_to_write else 0
        if self._link.fd is not None and events:
            poll.register(self._link.fd, events)
        due = [self._link.due, self._session.next_expiry(self._patience), self._leave_by, self._keep_at]
        times = [at for at in due if at is not None]
        pause = int(max(0.0, min(times) - now) * 1000) + 1 if times else None
        return dict(poll.poll(pause))

    def _listens_to_client(self) -> bool:
        waiting = max(len(self._session.to_client), len(self._session.to_daemon))
        return self._leave_by is None and waiting < MAX_WAITING

    def _serve(self, ready: dict[int, int]) -> None:
        now = time.monotonic()
        if ready.get(STDOUT, 0) & GONE:
            self._client_gone = True
            return
        daemon = ready.get(self._link.fd, 0) if self._link.fd is not None else 0
        if daemon & ~select.POLLOUT:
            self._link.readable(now)
        if daemon & select.POLLOUT:
            self._link.writable(now)
        if ready.get(STDIN, 0):
            self._from_client(now)
            if self._link.wants_to_write:  # at once, not after another round of the loop
                self._link.writable(now)
        if self._session.to_client and self._stdout.poll(0):
            self._to_client()

    def _from_client(self, now: float) -> None:
        try:
            data = os.read(STDIN, CHUNK)
        except OSError:
            data = b""
        for line in self._lines.feed(data) if data else self._lines.finish():
            self._session.from_client(line, now)
        if not data:
            self._leave_by = now + self._patience
        self._link.hurry(now)

    def _to_client(self) -> None:
        try:
            written = os.write(STDOUT, bytes(self._session.to_client[: select.PIPE_BUF]))
        except OSError:
            self._client_gone = True
            return
        del self._session.to_client[:written]
