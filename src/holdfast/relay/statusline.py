"""`holdfast statusline`: asks the daemon for one line and prints it; prints nothing if there is no daemon.

Claude Code runs it after every turn and shows its output, so it imports little, waits a moment at most, and never
starts a daemon.
"""

from __future__ import annotations

import json
import socket
import sys

from holdfast.relay import place

LIMIT = 1.0
"""Seconds; a status line that comes later is of no use."""
MAX_INPUT = 1024 * 1024


def main(home: str | None = None) -> int:
    """Print the line; the exit status is always 0, because a missing status line is not worth an error."""
    payload = _input()
    workspace = payload.get("workspace")
    directory = workspace.get("project_dir") if isinstance(workspace, dict) else None
    line = _ask(place.home(home), {"session": payload.get("session_id"), "cwd": directory or payload.get("cwd")})
    if line:
        print("".join(char if char.isprintable() else "?" for char in line))  # without an import: it runs at every turn
    return 0


def _input() -> dict[str, object]:
    try:
        value = json.loads(sys.stdin.buffer.read(MAX_INPUT))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _ask(home: str, args: dict[str, object]) -> str:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(LIMIT)
    try:
        path = place.socket_path(home)
        if not place.is_ours(path):
            return ""
        connection.connect(path)
        connection.sendall(json.dumps({"holdfast": "command", "name": "statusline", "args": args}).encode() + b"\n")
        with connection.makefile("rb") as lines:
            answer = json.loads(lines.readline())
    except (OSError, ValueError):  # no daemon, one that is busy, or one that is being stopped
        return ""
    finally:
        connection.close()
    result = answer.get("result") if isinstance(answer, dict) else None
    return str(result.get("line", "")) if isinstance(result, dict) else ""
