"""Starts a detached daemon, which outlives the relay or hook that needed it.

Imports nothing from its package, because the hook client runs without one. Also runs as a plain file, `python -I -S
spawn.py HOME`, to start a daemon with another environment.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys

TURN = "HOLDFAST_STARTING"
"""Variable with the descriptor of the start lock, for the daemon that is being started."""

FOR_HOOK = "HOLDFAST_STARTED_FOR_HOOK"
"""Variable that tells the daemon being started that a hook is waiting for it."""

# They identify the one session whose relay happened to start the daemon; other clients do not belong to it.
SESSION_NAMES = (
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_PID",
    "CLAUDE_PROJECT_DIR",
    "HOLDFAST_BRIEFING",
    "HOLDFAST_LAUNCHER",
    "HOLDFAST_MANAGED",
    "HOLDFAST_TEAM",
)


def start_daemon(home: str, host: str | None = None, port: int | None = None, *, for_hook: bool = False) -> bool:
    """Start `holdfast serve --detach` for `home` and return at once; raises OSError on failure.

    Returns False if one is already being started: of all the relays that lost their daemon only one starts it,
    otherwise they would take the processor from the one that is to serve them. The start lock passes to the new
    process, which releases it when it is ready; if it dies instead, the lock ends with it.
    """
    os.makedirs(home, mode=0o700, exist_ok=True)
    if os.stat(home).st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "the data directory belongs to another user", home)
    command = [sys.executable, "-P", "-m", "holdfast", "serve", "--detach", "--home", home]
    if host is not None:
        command += ["--host", host]
    if port is not None:
        command += ["--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if name not in SESSION_NAMES}
    if for_hook:
        environment[FOR_HOOK] = "1"
    turn = os.open(os.path.join(home, "starting"), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        log = os.open(os.path.join(home, "daemon.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            between = os.fork()
            if between == 0:
                _detach_and_run(command, environment, log, turn)
            os.waitpid(between, 0)
        finally:
            os.close(log)
    except BlockingIOError:
        return False
    finally:
        os.close(turn)
    return True


def _detach_and_run(command: list[str], environment: dict[str, str], log: int, turn: int) -> None:
    """Act as the daemon's parent for a moment, so that the daemon is orphaned to init."""
    try:
        os.setsid()
        if os.fork() == 0:
            # In a relay started without standard streams these two may be 0, 1 or 2.
            turn = fcntl.fcntl(turn, fcntl.F_DUPFD, 3)
            os.dup2(log, 2)
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 0)
            os.dup2(nothing, 1)
            os.closerange(3, turn)
            os.closerange(turn + 1, 256)
            os.chdir("/")
            os.execve(command[0], command, {**environment, TURN: str(turn)})  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(2, f"holdfast: cannot start {command[0]}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(0)


if __name__ == "__main__":
    try:
        start_daemon(sys.argv[1])
    except OSError as error:
        sys.exit(f"holdfast: cannot start a daemon for {sys.argv[1]}: {error}")
