"""Starts a daemon that belongs to nobody: it outlives the relay or hook that needed it.

Also runs as a plain file, `python -I -S spawn.py HOME`, because the hook client has no package around it.
"""

from __future__ import annotations

import os
import sys

# They name the one session whose relay happened to start the daemon; its other clients are not in it.
SESSION_NAMES = (
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_PID",
    "CLAUDE_PROJECT_DIR",
    "HOLDFAST_BRIEFING",
    "HOLDFAST_MANAGED",
    "HOLDFAST_TEAM",
)


def start_daemon(home: str, host: str | None = None, port: int | None = None) -> None:
    """Start `holdfast serve --detach` for `home` and return at once; raises OSError if it cannot."""
    os.makedirs(home, mode=0o700, exist_ok=True)
    command = [sys.executable, "-P", "-m", "holdfast", "serve", "--detach", "--home", home]
    if host is not None:
        command += ["--host", host]
    if port is not None:
        command += ["--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if name not in SESSION_NAMES}
    log = os.open(os.path.join(home, "daemon.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        between = os.fork()
        if between == 0:
            _detach_and_run(command, environment, log)
        os.waitpid(between, 0)
    finally:
        os.close(log)


def _detach_and_run(command: list[str], environment: dict[str, str], log: int) -> None:
    """Become the daemon's parent for a moment, so that the daemon is nobody's child."""
    try:
        os.setsid()
        if os.fork() == 0:
            os.dup2(log, 2)  # first: in a relay started without standard streams the log may be 0 or 1
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 0)
            os.dup2(nothing, 1)
            os.closerange(3, 256)
            os.chdir("/")
            os.execve(command[0], command, environment)  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(2, f"holdfast: cannot start {command[0]}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(0)


if __name__ == "__main__":
    try:
        start_daemon(sys.argv[1])
    except OSError as error:
        sys.exit(f"holdfast: cannot start a daemon for {sys.argv[1]}: {error}")
