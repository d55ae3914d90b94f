"""Sends commands to the daemon, or runs them here if none is running."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from typing import Any

from holdfast.config import Settings
from holdfast.errors import DaemonRunning, HoldfastError, NoDaemon
from holdfast.process.home_lock import HomeLock
from holdfast.relay import place
from holdfast.relay.lines import MAX_LINE, too_long
from holdfast.text.terminal import say

ANSWER_SECONDS = 10.0

Progress = Callable[[float, str], None]


class CommandFailed(HoldfastError):
    """The daemon refused a command; the message is the daemon's."""

    code = "E_COMMAND_FAILED"


def ask_daemon(
    settings: Settings,
    name: str,
    args: dict[str, Any] | None = None,
    *,
    progress: Progress | None = None,
    timeout: float | None = ANSWER_SECONDS,
) -> dict[str, Any]:
    """Have the running daemon run the command `name`; raises NoDaemon if none answers."""
    line = json.dumps({"holdfast": "command", "name": name, "args": args or {}}).encode() + b"\n"
    if len(line) > MAX_LINE:
        raise HoldfastError(too_long(len(line)))
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
        connection.sendall(line)
        with connection.makefile("rb") as lines:
            return _answer(lines, progress)
    except TimeoutError as error:
        raise NoDaemon(
            f"The daemon for {settings.home} does not answer.", recovery="Stop it by force with `holdfast stop`."
        ) from error
    except ConnectionError as error:
        raise NoDaemon(f"The daemon for {settings.home} ended before it answered.", recovery="Run it again.") from error
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
    """Have the daemon run it; if none is running, open the store here, under the same lock."""
    try:
        return ask_daemon(settings, name, args, progress=progress, timeout=None)
    except NoDaemon:
        try:
            lock = HomeLock.take(settings.home, by_hand=True, purpose=name)
        except DaemonRunning:
            # A daemon started between the two attempts.
            return ask_daemon(settings, name, args, progress=progress, timeout=None)
    import asyncio  # imported late: most commands find a daemon and do not need it

    try:
        return asyncio.run(_do(settings, name, args, progress))
    finally:
        lock.release()


async def _do(settings: Settings, name: str, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
    from holdfast.app import build
    from holdfast.files.private import read_or_make
    from holdfast.store.from_settings import open_app_store
    from holdfast.store.high_water import HighWater
    from holdfast.store.loss_notices import LossNotices

    store, notices = await open_app_store(settings)
    losses = LossNotices(settings.home)
    for notice in [*([] if losses.includes_report(notices) else notices), *losses.lines()]:
        say(notice, file=sys.stderr)
    try:
        app = build(store, settings, read_or_make(settings.home / "machine"))
        await app.connections.reconnects.start()
        result = await app.commands()[name].run(args, progress)
        await HighWater(settings.home, store).note()
        return result
    finally:
        await store.close()
