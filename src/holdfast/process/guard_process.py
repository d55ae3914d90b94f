"""The process between Holdfast and an agent: it holds the session's lock and ends everything the agent started.

Run as `python -I -S guard_process.py COMMAND…` with the agent's stdin and stdout; standard library only, and of that
little: every start of an agent waits for what is imported here, and `pathlib` and `contextlib` would add a third to
it. It reports its own pid and the agent's in one line on stderr and exits with the agent's exit code, when

- the agent ends,
- the parent is gone, however it died (stdin hangs up, the parent pid changes), or
- a signal asks it to.

An agent starts shells in their own sessions, which a group kill does not reach. On Linux the guard is therefore the
subreaper of all of the agent's descendants and ends each one; elsewhere it ends the agent's process group.

The guard itself may be killed. It is therefore two processes: the keeper, whose pid is the one reported, and the guard
under it. Each ends everything when the other is gone, and both hold the session's lock until then.
"""

# ruff: noqa: PTH108, PTH116, PTH123, SIM105 - without pathlib and contextlib
from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOCK_VARIABLE = "HOLDFAST_SESSION_LOCK"
"""Variable with the path of the session's lock file."""
OUTER_AGENT_VARIABLES = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR", "CLAUDE_PID", "CLAUDE_ENV_FILE")
"""Variables of an outer agent, in case one started Holdfast; held equal to what the agents say, by a test."""
REPORT = "holdfast-guard"
LOCKED_OUT = 75
"""Exit code if another process holds the session."""

LOCK_SECONDS = 1.0
"""How long the guard waits for the session's lock; its starter has made sure that it is free."""
HANGUP_SECONDS = 2.0
"""How long an agent may take to exit by itself after its stdin was closed."""
GRACE_SECONDS = 2.0
"""How long it may take after SIGTERM, which lets it finish writing its transcript."""
SWEEP_SECONDS = 5.0
TICK_MS = 1000

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def hold_lock(path: str | Path, seconds: float) -> int | None:
    """Lock a file, waiting up to `seconds`; returns the descriptor, or None if another process holds the lock."""
    limit = time.monotonic() + seconds
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The last holder may have removed the file between our open and lock; others could then create it again.
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except BlockingIOError:
            if time.monotonic() >= limit:
                os.close(descriptor)
                return None
            time.sleep(0.05)
        except FileNotFoundError:
            pass  # removed by its last holder: create a new one
        os.close(descriptor)


def release_lock(path: str | Path, descriptor: int) -> None:
    """Remove the file and release the lock."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    os.close(descriptor)


class Guard:
    """One agent under guard, from its start to the end of everything it started."""

    def __init__(self, command: list[str], keeper: int, tell_agent: int) -> None:
        """`keeper`: the pid of the parent process; `tell_agent`: the pipe for reporting the agent's pid to it."""
        self._command = command
        self._keeper, self._own = keeper, os.getpid()
        self._tell_agent = tell_agent
        self._agent = 0
        self._asked_to_end = False
        self._woken = -1

    def run(self) -> int:
        """Start the agent, wait until none of its processes is left, and return its exit code."""
        self._woken = _catch_signals(self._ask_to_end)
        control = _process_control()
        if control:
            control(PR_SET_CHILD_SUBREAPER, 1)
            # Sent when the keeper dies; elsewhere the watch notices that a moment later.
            control(PR_SET_PDEATHSIG, signal.SIGTERM)
        self._agent = os.fork()
        if self._agent == 0:
            self._become_agent(control)
        _tell(self._tell_agent, str(self._agent))
        _tell(2, f"{REPORT} {self._keeper} {self._agent}\n")
        return self._sweep(self._watch())

    def _ask_to_end(self, number: int, frame: object) -> None:
        self._asked_to_end = True

    def _become_agent(self, control: ProcessControl | None) -> None:
        try:
            os.setpgid(0, 0)
            # Python ignores these two signals, and the agent would inherit that.
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            if control:
                control(PR_SET_PDEATHSIG, signal.SIGKILL)  # it may ignore every other signal
                if os.getppid() != self._own:
                    os._exit(LOCKED_OUT)
            os.execvp(self._command[0], self._command)  # noqa: S606 - the command is the guard's own argument
        except OSError as error:
            os.write(2, f"{self._command[0]}: {error}\n".encode())
        finally:
            os._exit(127)

    def _watch(self) -> int | None:
        """Wait for the agent to exit, asking it to when due; returns its status, or None if it would not exit."""
        poller = select.poll()
        poller.register(0, 0)
        poller.register(self._woken, select.POLLIN)
        hung_up_at: float | None = None
        asked_at: float | None = None
        while True:
            status = self._reap()
            if status is not None:
                return status
            now = time.monotonic()
            overdue = hung_up_at is not None and now >= hung_up_at + HANGUP_SECONDS
            if asked_at is None and (self._asked_to_end or overdue or os.getppid() != self._keeper):
                asked_at = now
                _signal(self._agent, signal.SIGTERM)
            if asked_at is not None and now >= asked_at + GRACE_SECONDS:
                return None
            for descriptor, event in poller.poll(TICK_MS if asked_at is None else 50):
                if descriptor == self._woken:
                    _drain(self._woken)
                elif event:
                    hung_up_at = now
                    poller.unregister(0)

    def _reap(self) -> int | None:
        """Reap exited children, including adopted ones; returns the agent's status once it has exited."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == 0:
                return None
            if pid == self._agent:
                return status

    def _sweep(self, status: int | None) -> int:
        """Kill the agent and everything it started; returns the exit code, 0 if it was asked to end."""
        status = sweep(self._agent).get(self._agent, status)
        if self._asked_to_end:
            return 0
        if status is None:
            return 128 + signal.SIGKILL
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code


class Keeper:
    """The parent of the guard: it forwards signals, and ends everything if the guard is killed."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._parent, self._own = os.getppid(), os.getpid()
        self._asked_to_end = False

    def run(self) -> int:
        """Start the guard, wait until nothing of its agent is left, and return the exit code."""
        agent_told, tell_agent = os.pipe()
        os.set_blocking(agent_told, False)
        control = _process_control()
        if control:
            control(PR_SET_CHILD_SUBREAPER, 1)
        guard = os.fork()
        if guard == 0:
            self._become_guard(tell_agent)
        status = self._watch(guard)
        if os.WIFEXITED(status):
            return os.waitstatus_to_exitcode(status)
        try:
            agent = int(os.read(agent_told, 32))
        except (BlockingIOError, ValueError):  # the guard was killed before it had started an agent
            agent = None
        sweep(agent)
        return 0 if self._asked_to_end else 128 + signal.SIGKILL

    def _become_guard(self, tell_agent: int) -> None:
        code = 70
        try:
            os.setpgid(0, 0)  # a kill of the keeper's group spares the guard
            code = Guard(self._command, self._own, tell_agent).run()
        except OSError as error:
            os.write(2, f"{REPORT}: {error}\n".encode())
        finally:
            os._exit(code)  # the lock is the keeper's to release

    def _ask_to_end(self, number: int, frame: object) -> None:
        self._asked_to_end = True

    def _watch(self, guard: int) -> int:
        """Wait for the guard to exit, asking it to when due; returns its status."""
        woken = _catch_signals(self._ask_to_end)
        while True:
            ended, status = os.waitpid(guard, os.WNOHANG)
            if ended:
                return status
            due = self._asked_to_end or os.getppid() != self._parent
            if due:  # repeatedly: its signal handler may not be installed yet
                _signal(guard, signal.SIGTERM)
            select.select([woken], [], [], 0.05 if due else TICK_MS / 1000)
            _drain(woken)


def sweep(agent: int | None) -> dict[int, int]:
    """Kill the agent's process group and every child of this process, adopted ones included; returns their statuses."""
    if agent is not None:
        _signal(-agent, signal.SIGKILL)
    ended: dict[int, int] = {}
    limit = time.monotonic() + SWEEP_SECONDS
    while time.monotonic() < limit:
        for pid in _children():
            _signal(pid, signal.SIGKILL)
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == 0:
            time.sleep(0.01)
        else:
            ended[pid] = status
    return ended


def _catch_signals(ask_to_end: Callable[[int, object], None]) -> int:
    """Call `ask_to_end` on termination signals; returns a descriptor that becomes readable on any signal."""
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ask_to_end)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)  # so that it writes to the wakeup descriptor
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return woken


def _drain(woken: int) -> None:
    try:
        os.read(woken, 512)
    except BlockingIOError:
        pass


def _tell(descriptor: int, text: str) -> None:
    try:
        os.write(descriptor, text.encode())
    except OSError:  # its reader is gone already: the watch ends the agent
        pass


class ProcessControl:
    """Linux's prctl, which Python does not expose."""

    def __init__(self) -> None:
        import ctypes

        self._call = ctypes.CDLL(None, use_errno=True).prctl
        self._errno = ctypes.get_errno

    def __call__(self, option: int, value: int) -> None:
        if self._call(option, value, 0, 0, 0) != 0:
            raise OSError(self._errno(), f"prctl({option}) failed")


def _process_control() -> ProcessControl | None:
    return ProcessControl() if sys.platform == "linux" else None


def _children() -> list[int]:
    """Return this process's children; its other descendants become children when they are orphaned."""
    own = os.getpid()
    try:
        with open(f"/proc/{own}/task/{own}/children", encoding="ascii") as children:
            return [int(pid) for pid in children.read().split()]
    except OSError:
        return []


def _signal(pid: int, number: int) -> None:
    """Send a signal to a process, or to the group of `-pid`."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def main() -> int:
    """Guard the command given as arguments."""
    try:
        os.setsid()
    except PermissionError:  # it already leads a group
        pass
    path = os.environ.pop(LOCK_VARIABLE)
    for name in OUTER_AGENT_VARIABLES:
        os.environ.pop(name, None)
    held = hold_lock(path, LOCK_SECONDS)
    if held is None:
        sys.stderr.write(f"{REPORT}: another process has this session open\n")
        return LOCKED_OUT
    try:
        return Keeper(sys.argv[1:]).run()
    finally:
        release_lock(path, held)


if __name__ == "__main__":
    sys.exit(main())
