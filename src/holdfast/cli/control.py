"""Asking the daemon, or doing it here when there is none."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from typing import Any

from holdfast.config import Settings
from holdfast.errors import DaemonRunning, HoldfastError, NoDaemon
from holdfast.lock import HomeLock
from holdfast.relay import place
from holdfast.terminal import say

ANSWER_SECONDS = 10.0

Progress = Callable[[float, str], None]


class CommandFailed(HoldfastError):
    """The daemon refused a command; the message is its own."""

    code = "E_COMMAND_FAILED"


def ask_daemon(
    settings: Settings,
    name: str,
    args: dict[str, Any] | None = None,
    *,
    progress: Progress | None = None,
    timeout: float | None = ANSWER_SECONDS,
) -> dict[str, Any]:
    """Have the running daemon do `name`; raises NoDaemon when none answers."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout)
    try:
        path = place.socket_path(str(settings.home))
        try:
            if not place.is_ours(path):
                raise NoDaemon(f"{path} is not a socket of this user.", recovery="Remove it, or run this as its owner.")
            connection.connect(path)
        except OSError as error:
            raise NoDaemon(
                f"No daemon is running for {settings.home}.", recovery="Start one with `holdfast serve`."
            ) from error
        connection.sendall(json.dumps({"holdfast": "command", "name": name, "args": args or {}}).encode() + b"\n")
        with connection.makefile("rb") as lines:
            return _answer(lines, progress)
    except TimeoutError as error:
        raise NoDaemon(
            f"The daemon for {settings.home} does not answer.", recovery="`holdfast stop` ends it by force."
        ) from error
    except ConnectionError as error:
        raise NoDaemon(f"The daemon for {settings.home} ended meanwhile.", recovery="Repeat the command.") from error
    finally:
        connection.close()


def _answer(lines: Any, progress: Progress | None) -> dict[str, Any]:
    for line in lines:
        answer = json.loads(line)
        if "progress" in answer:
            if progress is not None:
                progress(answer["progress"], answer["message"])
            continue
        if not answer["ok"]:
            raise CommandFailed(answer["message"])
        return dict(answer["result"])
    raise ConnectionResetError("the daemon closed the connection before it answered")


def ask_or_do(settings: Settings, name: str, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Have the daemon do it; where none is running, open the store here, under the same lock."""
    try:
        return ask_daemon(settings, name, args, progress=progress, timeout=None)
    except NoDaemon:
        try:
            lock = HomeLock.take(settings.home, by_hand=True, purpose=name)
        except DaemonRunning:
            # One started between the two attempts.
            return ask_daemon(settings, name, args, progress=progress, timeout=None)
    import asyncio  # most commands find a daemon, and it would cost each of them

    try:
        return asyncio.run(_do(settings, name, args, progress))
    finally:
        lock.release()


async def _do(settings: Settings, name: str, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
    from holdfast.app import build
    from holdfast.app_store import open_app_store
    from holdfast.secrets_file import read_or_make
    from holdfast.store.loss_notices import LossNotices

    store, notices = await open_app_store(settings)
    losses = LossNotices(settings.home)
    for notice in [*([] if losses.tell_of(notices) else notices), *losses.lines()]:
        say(notice, file=sys.stderr)
    try:
        app = build(store, settings, read_or_make(settings.home / "machine"))
        await app.connections.reconnects.start()
        result = await app.commands()[name](args, progress)
        await app.records.mark.note()
        return result
    finally:
        await store.close()
