"""The relay's connection to the daemon: finds or starts one, sends the hello, and reconnects when it is gone."""

from __future__ import annotations

import _socket
import errno
import json
import os

from holdfast.relay import place
from holdfast.relay.lines import LineSplitter, Overlong, encode

TYPE_CHECKING = False  # importing typing would double the relay's start-up
if TYPE_CHECKING:
    from typing import Any

    from holdfast.relay.session import RelaySession

SESSION_VARIABLES = ("CLAUDE_CODE_SESSION_ID",)
PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR",)
HELLO_ENV = (
    *SESSION_VARIABLES,
    *PROJECT_VARIABLES,
    "CLAUDE_CODE_ENTRYPOINT",
    "HOLDFAST_BRIEFING",
    "HOLDFAST_MANAGED",
    "HOLDFAST_TEAM",
)
"""Variables that a daemon is told. These three lists are held equal to what the agents say, by a test."""

FIRST_RETRY = 0.02
BUSY_RETRY = 0.05
IDLE_RETRY = 5.0
STEP_DOWN_RETRY = 0.1
REFUSED_RETRY = 2.0
SPAWN_EVERY = 2.0
IDLE_SPAWN = 60.0
GREETING_LIMIT = 30.0
GREETING_EXPECTED = 0.2
"""Seconds after which a daemon that has not sent its greeting must still be starting, or very busy."""
CHUNK = 64 * 1024

STOPPED = "Holdfast was stopped with `holdfast stop`. Start it with `holdfast serve`, or restart the agent."


def hello(relay: str, version: str, toolsets: str) -> bytes:
    """Return the first line that a daemon reads: who connects, from where, for which agent."""
    body: dict[str, Any] = {
        "holdfast": "relay",
        "version": version,
        "relay": relay,
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "cwd": _text(place.working_directory()),
        "toolsets": toolsets,
        "env": {name: _text(os.environ[name]) for name in HELLO_ENV if name in os.environ},
    }
    return encode(body) + b"\n"


class Link:
    """The connection to the daemon of this data directory, maintained for the relay's lifetime."""

    def __init__(self, home: str, session: RelaySession, greeting: bytes, version: str) -> None:
        self._home = home
        self._session = session
        self._greeting = greeting
        self._version = version
        self._socket: _socket.socket | None = None
        self._open = False
        self._useful = False
        self._unsent = b""
        self._lines = LineSplitter()
        self._try_at = 0.0
        self._retry = FIRST_RETRY
        self._greet_by = 0.0
        self._expect_by: float | None = None
        self._spawned_at: float | None = None
        self._spawns = 0
        self._successor: tuple[str | None, int | None] = (None, None)
        self._refusal: str | None = None
        self._known_pid: object = None
        self._trouble: str | None = None

    @property
    def fd(self) -> int | None:
        """The descriptor to poll, or None while there is no connection."""
        return None if self._socket is None else self._socket.fileno()

    @property
    def wants_to_write(self) -> bool:
        """Whether bytes are waiting to be sent to the daemon."""
        return bool(self._unsent) or (self._open and bool(self._session.to_daemon))

    @property
    def due(self) -> float | None:
        """Return when `tick` is due again; None while the daemon is connected."""
        if self._open:
            return None
        if self._socket is None:
            return self._try_at
        return self._greet_by if self._expect_by is None else self._expect_by

    def hurry(self, now: float) -> None:
        """Look for a daemon now instead of at the next idle retry, because a request is waiting."""
        if self._socket is not None or not self._session.impatient:
            return
        if self._refusal is not None and now < self._try_at:
            self._session.give_up(self._refusal)
            return
        if self._try_at > now + BUSY_RETRY:
            self._try_at, self._retry = now, FIRST_RETRY

    def tick(self, now: float) -> None:
        """Do what is due: look for a daemon, or disconnect from one that sends no greeting."""
        if self._open:
            return
        if self._socket is not None:
            if self._expect_by is not None and now >= self._expect_by:
                self._expect_by = None
                self._session.alone()
            if now >= self._greet_by:
                self._trouble = f"A daemon took the connection and said nothing for {GREETING_LIMIT:.0f} s."
                self._hang_up()
                self._look_again(now)
        elif now >= self._try_at:
            self._look(now)

    def readable(self, now: float) -> None:
        """Read and handle what the daemon sent."""
        if self._socket is None:
            return
        try:
            data = self._socket.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost(now)
            return
        for line in self._lines.feed(data):
            if self._open:
                self._useful = True
                self._session.from_daemon(line)
            elif self.fd is not None:  # after a step-down or a refusal nothing more is read
                self._greeted(line, now)

    def writable(self, now: float) -> None:
        """Send as many of the waiting bytes as possible."""
        if self._socket is None:
            return
        try:
            if self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
            elif self._open:
                sent = self._socket.send(bytes(self._session.to_daemon[:CHUNK]))
                del self._session.to_daemon[:sent]
        except BlockingIOError:
            return
        except OSError:
            self._lost(now)

    def why_away(self) -> str:
        """Return the known reason why no daemon answers, as part of a sentence."""
        try:
            with open(place.last_error(self._home), encoding="utf-8", errors="replace") as text:
                log_end = text.read(2000).strip()
        except OSError:
            log_end = ""
        return log_end or self._trouble or ""

    def _look(self, now: float) -> None:
        path = place.socket_path(self._home)
        found = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            if not place.is_ours(path):
                raise PermissionError(errno.EACCES, f"{path} is not a socket of this user")
            found.setblocking(False)
            found.connect(path)
        except BlockingIOError:
            found.close()  # its backlog is full: a daemon is there, but busy
            self._session.alone()
            self._look_again(now)
        except OSError as error:
            found.close()
            self._absent(now, error)
        else:
            self._socket = found
            self._unsent = self._greeting
            self._lines = LineSplitter()
            self._greet_by = now + GREETING_LIMIT
            self._expect_by = now + GREETING_EXPECTED
            self.writable(now)

    def _absent(self, now: float, error: OSError) -> None:
        if os.path.exists(place.stopped_marker(self._home)):
            self._session.give_up(STOPPED)
            self._look_again(now)
            return
        if isinstance(error, FileNotFoundError | ConnectionRefusedError):
            self._start_daemon(now)
        else:
            self._trouble = str(error)
        self._session.alone()
        self._look_again(now)

    def _start_daemon(self, now: float) -> None:
        if "HOLDFAST_MANAGED" in os.environ:
            return  # everything a managed agent starts ends with it, so its relay waits for a daemon that others start
        pause = SPAWN_EVERY if self._session.impatient else min(IDLE_SPAWN, SPAWN_EVERY * 2**self._spawns)
        if self._spawned_at is not None and now < self._spawned_at + pause:
            return
        from holdfast.relay.spawn import start_daemon  # imported late: most relays find a running daemon

        try:
            if not start_daemon(self._home, *self._successor):
                return  # another relay is starting one: if that fails, it is this one's turn
        except OSError as problem:
            self._trouble = f"{problem.strerror}: {problem.filename}" if problem.filename else str(problem)
        self._spawned_at = now
        self._spawns = min(self._spawns + 1, 10)

    def _greeted(self, line: bytes | Overlong, now: float) -> None:
        try:
            answer = json.loads(line) if isinstance(line, bytes) else None
        except ValueError:
            answer = None
        kind = answer.get("holdfast") if isinstance(answer, dict) else None
        if answer is None or kind not in ("welcome", "step-down", "refused"):
            self._trouble = "What answers on the daemon's socket is not a Holdfast daemon."
            self._hang_up()
            self._try_at = now + REFUSED_RETRY
        elif kind == "welcome":
            self._welcomed(answer)
        elif kind == "step-down":
            self._successor = (answer.get("host"), answer.get("port"))
            self._trouble = (
                f"A daemon of holdfast {answer.get('version')} serves, and one of {self._version} did not take over"
                f" yet; {os.path.join(self._home, 'daemon.log')} says why it does not start"
            )
            self._hang_up()
            self._session.alone()
            self._start_daemon(now)  # the older daemon serves until the new one is ready to take over
            self._try_at = now + STEP_DOWN_RETRY
        else:
            self._refusal = str(answer.get("message"))
            self._hang_up()
            self._session.give_up(self._refusal)
            self._try_at = now + REFUSED_RETRY

    def _welcomed(self, answer: dict[str, Any]) -> None:
        version = answer.get("version")
        if version != self._version and answer.get("pid") != self._known_pid:
            self._known_pid = answer.get("pid")
            self._session.notes.append(f"holdfast mcp {self._version} talks to a daemon of version {version}")
        self._open = True
        self._useful = False
        self._spawns = 0
        self._successor, self._refusal, self._trouble = (None, None), None, None
        self._session.connected(ready=answer.get("ready") is not False)

    def _lost(self, now: float) -> None:
        was_open = self._open
        self._hang_up()
        if was_open:
            self._session.lost(now)
        if was_open and self._useful:
            self._try_at, self._retry = now, FIRST_RETRY
        else:
            self._look_again(now)  # do not retry without a pause if the daemon keeps dying

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._open, self._unsent = None, False, b""

    def _look_again(self, now: float) -> None:
        longest = BUSY_RETRY if self._session.impatient else IDLE_RETRY
        self._retry = min(self._retry, longest)
        self._try_at = now + self._retry
        self._retry *= 1.5


def _text(value: str) -> str:
    """Return a path or variable as text that every JSON parser accepts, whatever bytes it contains."""
    return os.fsencode(value).decode("utf-8", "replace")
