"""The hook client: passes a hook's input to the daemon and prints what comes back. It fails open.

It runs at every tool call of an agent, so it needs nothing but `_socket`, `select`, `os`, `sys` and `time`,
knows no package, and all logic is in the daemon. When the daemon cannot be reached, the agent continues as if
there were no hook, and one line on standard error says so.
"""

import _socket
import os
import select
import sys
import time

MAX_INPUT = 16 * 1024 * 1024
MAX_SOCKET_PATH = 100
CHUNK = 64 * 1024
OVERALL_LIMIT = 5.0
MAX_OVERALL_LIMIT = 600.0
START_LIMIT = 2.0
RETRY = 0.005

PID_VARIABLES = ("CLAUDE_PID",)
SETTING_VARIABLES = ("HOLDFAST_HOME", "HOLDFAST_LAUNCHER", "CLAUDE_PLUGIN_ROOT")
"""What tells apart the settings that name this hook: an agent that has two of them calls both at each event."""
START_EVENTS = ("SessionStart",)
"""Hooks at which a session begins: they start a daemon if none is running."""
NOTICE = '{"systemMessage": "%s"}\n'
"""Output that the agent shows to its user, unlike standard error. These four are held equal to what the agents say."""

USAGE = """\
usage: holdfast hook EVENT [AGENT] < payload.json

Passes a Claude Code hook's input to the Holdfast daemon and prints its answer. EVENT is the hook's name.
Hooks of another agent than Claude Code name it as AGENT.
When no daemon answers within 5 s (environment: HOLDFAST_HOOK_TIMEOUT) the agent goes on without it.

example:
  echo '{"session_id":"s","cwd":"/tmp","source":"startup"}' | holdfast hook SessionStart
"""


class FailOpen(Exception):
    """The daemon could not be reached; the agent continues without it."""


class Stopped(FailOpen):
    """The user stopped the daemon, and need not be reminded at every start."""


def main(argv: list[str]) -> int:
    """Run one hook; returns the exit status that the daemon asked for, or 0 if it could not be reached."""
    if "-h" in argv or "--help" in argv:
        sys.stdout.write(USAGE)
        return 0
    try:
        status, output = _ask(_word(argv[:1]), _word(argv[1:2]) if argv[1:] else "")
        _write(output)
    except FailOpen as reason:
        message = f"holdfast hook: {reason} The agent goes on without it. See `holdfast doctor`."
        sys.stderr.write("".join(char if char.isprintable() else "?" for char in message) + "\n")
        if argv and argv[0] in START_EVENTS and not isinstance(reason, Stopped):
            plain = "".join(char if " " <= char <= "~" and char not in '"\\' else "?" for char in message)
            sys.stdout.write(NOTICE % plain)
        return 0
    except KeyboardInterrupt:
        return 0
    return status


def _word(argv: list[str]) -> str:
    word = argv[0] if argv else ""
    if not (0 < len(word) <= 40 and word.isascii() and word.replace("-", "a").isalpha()):
        raise FailOpen("EVENT must be a hook's name: 1 to 40 letters, like SessionStart.")
    return word


def _ask(event: str, agent: str) -> tuple[int, bytes]:
    deadline = time.monotonic() + _limit()
    payload = _payload(deadline)
    pid = next((os.environ[name] for name in PID_VARIABLES if name in os.environ), "")
    if not (pid.isascii() and pid.isdigit() and len(pid) <= 20):
        pid = ""
    managed = ',"managed":"1"' if os.environ.get("HOLDFAST_MANAGED") else ""
    wanted = os.environ.get("HOLDFAST_BRIEFING", "")
    briefing = f',"briefing":"{wanted}"' if 0 < len(wanted) <= 10 and wanted.isascii() and wanted.isalpha() else ""
    named = f',"agent":"{agent}"' if agent else ""
    setting = "\0".join((__package__ or "", __file__, *(os.environ.get(name, "") for name in SETTING_VARIABLES)))
    by = f',"by":"{os.fsencode(setting).hex()}"'
    header = f'{{"holdfast":"hook","event":"{event}","pid":"{pid}"{managed}{briefing}{named}{by}}}\n'.encode()
    connection = _connection(event, deadline)
    try:
        _send(connection, header + payload, deadline)
        connection.shutdown(_socket.SHUT_WR)
        return _answer(_receive(connection, deadline))
    except TimeoutError:
        raise FailOpen("the daemon did not answer in time.") from None
    except OSError as error:
        raise FailOpen(f"the connection to the daemon broke ({error.strerror}).") from None
    finally:
        connection.close()


def _limit() -> float:
    text = os.environ.get("HOLDFAST_HOOK_TIMEOUT") or str(OVERALL_LIMIT)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_OVERALL_LIMIT:
        raise FailOpen(f"HOLDFAST_HOOK_TIMEOUT must be seconds, over 0 and at most {MAX_OVERALL_LIMIT:.0f}.")
    return seconds


def _payload(deadline: float) -> bytes:
    payload = bytearray()
    poll = select.poll()
    poll.register(0, select.POLLIN)
    while True:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise FailOpen("the input did not end in time.")
        chunk = os.read(0, CHUNK)
        if not chunk:
            return bytes(payload)
        payload += chunk
        if len(payload) > MAX_INPUT:
            raise FailOpen(f"the input has over {MAX_INPUT} bytes.")


def _connection(event: str, deadline: float) -> _socket.socket:
    home = _home()
    if os.path.exists(home) and os.stat(home).st_uid != os.geteuid():
        raise FailOpen(f"{home} belongs to another user; set HOLDFAST_HOME to a directory of your own.")
    try:
        return _connect(home, deadline)
    except (FileNotFoundError, ConnectionRefusedError):
        if event not in START_EVENTS:
            raise FailOpen("no daemon is running.") from None
    except OSError as error:
        raise FailOpen(f"the daemon cannot be reached ({error.strerror}).") from None
    _start_daemon(home)
    return _connect_when_started(home, min(deadline, time.monotonic() + START_LIMIT), deadline)


def _connect_when_started(home: str, until: float, deadline: float) -> _socket.socket:
    while time.monotonic() < until:
        try:
            return _connect(home, deadline)
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(RETRY)
        except OSError as error:
            raise FailOpen(f"the daemon cannot be reached ({error.strerror}).") from None
    raise FailOpen("the daemon is still starting.")


def _connect(home: str, deadline: float) -> _socket.socket:
    path = _socket_path(home)
    if os.stat(path).st_uid != os.getuid():
        raise PermissionError(1, "its socket belongs to another user")
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(_left(deadline))
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def _home() -> str:
    chosen = os.environ.get("HOLDFAST_HOME") or "~/.holdfast"
    return os.path.abspath(os.path.expanduser(chosen))


def _socket_path(home: str) -> str:
    """Follow the same rule as `holdfast.relay.place.socket_path`, which this file cannot import."""
    direct = os.path.join(home, "daemon.sock")
    if len(os.fsencode(direct)) <= MAX_SOCKET_PATH:
        return direct
    with open(os.path.join(home, "daemon.sock.path"), "rb") as pointer:
        return os.fsdecode(pointer.read(4096).strip())


def _start_daemon(home: str) -> None:
    if os.path.exists(os.path.join(home, "stopped")):
        raise Stopped("Holdfast was stopped with `holdfast stop`; start it with `holdfast serve`.")
    # Run as a hook, this file has no package; its neighbours are found in the same directory.
    name = f"{__package__}.spawn" if __package__ else "spawn"
    __import__(name)
    try:
        sys.modules[name].start_daemon(home, for_hook=True)
    except OSError as error:
        raise FailOpen(f"no daemon is running, and none could be started ({error.strerror}).") from None


def _send(connection: _socket.socket, data: bytes, deadline: float) -> None:
    view = memoryview(data)
    while view:
        connection.settimeout(_left(deadline))
        view = view[connection.send(view[:CHUNK]) :]


def _receive(connection: _socket.socket, deadline: float) -> bytes:
    answer = bytearray()
    while True:
        connection.settimeout(_left(deadline))
        chunk = connection.recv(CHUNK)
        if not chunk:
            return bytes(answer)
        answer += chunk
        if len(answer) > MAX_INPUT:
            raise FailOpen(f"the daemon's answer has over {MAX_INPUT} bytes.")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _answer(data: bytes) -> tuple[int, bytes]:
    """Parse `exit N`, a newline and the output into the exit status and the bytes to print."""
    first, newline, output = data.partition(b"\n")
    word, _, number = first.partition(b" ")
    if not newline or word != b"exit" or not number.isdigit() or int(number) > 255:
        raise FailOpen("the daemon's answer was cut off or is not one.")
    return int(number), output


def _write(output: bytes) -> None:
    while output:
        try:
            output = output[os.write(1, output) :]
        except OSError as error:
            raise FailOpen(f"the answer could not be printed ({error.strerror}).") from None
