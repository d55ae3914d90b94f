"""The daemon: opens the store, serves hooks at once and MCP a moment later, and stops in good order.

What an agent's first hook needs is imported first, the rest while hooks are served already.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.config import Settings
from holdfast.daemon.clock_leaps import LeapWatch
from holdfast.daemon.database_file import DatabaseFile, reported_by_last_daemon
from holdfast.daemon.loops import Supervisor
from holdfast.daemon.relays import Relays
from holdfast.daemon.socket import DaemonSocket, peer_pid
from holdfast.errors import HoldfastError, StoreCorrupt
from holdfast.files.private import read_or_make
from holdfast.process.home_lock import HomeLock
from holdfast.relay import place
from holdfast.store.from_settings import clock_of, open_app_store, steady_clock_of
from holdfast.store.loss_notices import LossNotices
from holdfast.wire.mcp.transports import OpenTransports

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.capability import Command, Loop, Step
    from holdfast.daemon.readiness import Readiness
    from holdfast.wire.http.server import Web
    from holdfast.wire.mcp.server import Wire

WATCH_SECONDS = 2.0
STOP_SECONDS = 5.0
FIRST_HOOK_SECONDS = 0.5
"""How long a daemon that a hook started waits for that hook before it imports what agents' tools need."""

SALVAGING = "HOLDFAST_SALVAGING"
"""Tells the re-executed daemon that it was restarted because of damage."""

logger = logging.getLogger(__name__)


class Daemon:
    """One running daemon. `run` returns when it has stopped; True means that it wants to be started again."""

    def __init__(self, settings: Settings, lock: HomeLock, *, by_hand: bool, hook_waits: bool = False) -> None:
        """`lock`: the data directory's; `run` gives it back, or keeps it for the daemon that it becomes.

        `hook_waits`: whether an agent's hook started this daemon, and waits for its answer.
        """
        self.settings = settings
        self.by_hand = by_hand
        self.web: Web | None = None
        self._notices: list[str] = []
        """Findings of the start that are not losses."""
        self._lock = lock
        self.losses = LossNotices(settings.home)
        self._hook_waits = hook_waits
        self._hook_answered = asyncio.Event()
        self._transports = OpenTransports()
        self.supervisor = Supervisor()
        self._stop = asyncio.Event()
        self._restart = False
        self._why = "it was asked to"
        self._salvaging = os.environ.pop(SALVAGING, "") == "1"
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[Wire] = self._loop.create_future()
        self.commands: asyncio.Future[dict[str, Command]] = self._loop.create_future()
        self.started = self._busy_until = time.monotonic()
        self._leaps = LeapWatch(clock_of(settings), steady_clock_of(settings))
        self._socket: DaemonSocket | None = None

    @property
    def is_ready(self) -> bool:
        """Whether MCP is served."""
        return self._ready.done()

    @property
    def notices(self) -> list[str]:
        """Return the notices for users: about this start, and about losses that are not acknowledged yet."""
        return [*self._notices, *self.losses.lines()]

    async def run(self, started: Any = None) -> bool:
        """Serve until asked to stop. `started(daemon)` is called once everything is served."""
        home = self.settings.home
        stopped = place.stopped_marker(str(home))
        try:
            if self.by_hand:
                _remove(stopped)
            elif _exists(stopped):  # it was stopped while it was being started
                self._why = "`holdfast stop` was called"
                return False
            await self._serve(started)
        except StoreCorrupt as error:
            # It was noted, so the next start salvages it. If that one meets damage again, no further start will help.
            if self._salvaging:
                raise StoreCorrupt(
                    f"A salvage did not repair it: {error.message}",
                    recovery=f"Keep a copy of {home}, then put a backup in its place: `holdfast restore FILE`.",
                ) from error
            self._why, self._restart = str(error), True
        finally:
            if self._restart:
                self._lock.hand_down()
            else:
                self._lock.release()
        logger.info("stopped, because %s", self._why)
        if self._restart:
            os.environ[SALVAGING] = "1"
        return self._restart

    async def _serve(self, started: Any) -> None:
        home = self.settings.home
        # Not while the store opens: threads that take turns need a third longer for both.
        from holdfast.app import build

        store, notices = await open_app_store(self.settings, self._salvage_next, self._leaps.now)
        if not self.losses.includes_report(notices):
            self._notices += notices
        self._notices += reported_by_last_daemon(home)
        file = DatabaseFile(store, home)
        machine = read_or_make(home / "machine")
        app = build(store, self.settings, machine, self._transports, self._lock.still_ours)

        @cache
        def readiness() -> Readiness:
            from holdfast.daemon.readiness import Readiness

            return Readiness(store)

        async def hooks(first: dict[str, Any], reader: StreamReader, writer: StreamWriter) -> None:
            await app.hooks.serve(first, reader, writer)
            self._hook_answered.set()

        async def commands(first: dict[str, Any], reader: StreamReader, writer: StreamWriter) -> None:
            from holdfast.daemon.commands import own_commands, serve_command

            own = own_commands(self, app, relays, readiness(), peer_pid(writer.get_extra_info("socket")))
            await serve_command(first, writer, home, own, self.commands)

        relays = Relays(
            self.settings,
            self._transports,
            app.connections,
            self.supervisor,
            self._ready,
            self.stop,
            self._stop.is_set,
        )
        self._socket = socket = DaemonSocket(
            Path(place.socket_place(str(home))),
            {
                "relay": relays.serve,
                "successor": relays.succeed,
                "hook": hooks,
                "command": commands,
            },
        )
        try:
            await app.start()
            await socket.open()
            self._handle_signals()
            if self._hook_waits:  # the imports that follow would keep it waiting for twice as long
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._hook_answered.wait(), FIRST_HOOK_SECONDS)
            for loop in await self._serve_mcp(app, readiness(), relays, lambda: self._watch(app, socket, file)):
                self.supervisor.start(loop)
            _remove(place.last_error(str(home)))
            await asyncio.to_thread(self._refresh_launcher)
            if started is not None:
                started(self)
            await self._stop.wait()
            socket.stop_listening()  # otherwise the disconnected relays would be back at once
            # Nothing comes to its end without the store; the relays repeat it with the next daemon.
            app.stopping()
            await self._finish_work(STOP_SECONDS if await readiness().outage() is None else 0.0)
        finally:
            await self.supervisor.close()
            await app.close()
            if self.web is not None:
                await self.web.stop()
            await socket.close()
            if self._lock.still_ours() and (notice := await file.leave_behind()):
                self.stop(notice, restart=True)
            if store.outage is None:
                with contextlib.suppress(HoldfastError, OSError, TimeoutError):  # then it is just written later
                    await asyncio.wait_for(app.leave(), STOP_SECONDS)
            await store.close()

    def _refresh_launcher(self) -> None:
        """Have agents start this version from now on, unless they start a newer one."""
        from holdfast.setup.launcher import refresh_quietly

        refresh_quietly(str(self.settings.home), create=True)

    async def _serve_mcp(self, app: App, readiness: Readiness, relays: Relays, watch: Step) -> list[Loop]:
        """Import the rest and the SDK off the loop, so that hooks are answered meanwhile; return what to run."""

        def prepare() -> dict[str, Command]:
            app.prepare()
            return app.commands()

        def serving() -> tuple[Wire, Callable[[], Web], list[Loop]]:
            from holdfast.daemon.own_loops import own_loops
            from holdfast.wire.http.server import Web

            wire = app.wire()
            parts = app.keys(), app.routes(), relays.detached, app.webhooks(), readiness.outage, app.pages()
            loops = [*own_loops(app, wire, self._leaps, watch, WATCH_SECONDS), *app.loops()]
            return wire, lambda: Web(self.settings, wire, *parts), loops

        try:
            commands = await self._loop.run_in_executor(None, prepare)
            await app.start_late()
            self.commands.set_result(commands)
            wire, web, loops = await self._loop.run_in_executor(None, serving)
            self.web = web()
            await self.web.start(required=self.by_hand)
        except BaseException as error:
            self.commands.cancel()
            self._ready.set_exception(error)
            self._ready.exception()  # seen: it is raised here as well
            raise
        self._ready.set_result(wire)
        return loops

    async def _watch(self, app: App, socket: DaemonSocket, file: DatabaseFile) -> None:
        """End when the data directory is gone, or when a daemon that was started automatically is no longer needed."""
        if not self._lock.still_ours():
            self.stop("its data directory was removed")
            return
        if socket.is_missing:
            place.socket_place(str(self.settings.home))  # recreates its folder if that is gone too
            await socket.put_back()
            logger.warning("the socket was removed; it was put back")
        if notice := await file.look_after():
            self.stop(notice, restart=True)
        wire = self._ready.result()
        now = time.monotonic()
        if self._transports.clients or wire.in_flight or app.is_busy or wire.recently_used(WATCH_SECONDS * 2):
            self._busy_until = now
        elif not self.by_hand and now - self._busy_until > self.settings.idle_exit_s:
            self.stop("it had no client and no work")

    async def _finish_work(self, seconds: float) -> None:
        """Accept no more calls, and give those that are under way a moment to finish.

        Subscription streams are not ended: behind a relay they continue with the next daemon.
        """
        wire = self._ready.result()
        ends = [wire.exchanges.finish(seconds), *([self.web.stop()] if self.web is not None else [])]
        await asyncio.gather(*ends)

    def stop(self, why: str, *, restart: bool = False) -> None:
        """Stop in good order."""
        if not self._stop.is_set():
            self._why = why
            self._restart = restart
            self._stop.set()

    def _handle_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self.stop, f"it got {number.name}")

    def _salvage_next(self, error: StoreCorrupt) -> None:
        """Start again after damage to the database was noted, because a start salvages it."""

        def stop() -> None:
            self.stop(str(error), restart=True)
            if self._socket is not None:  # at once: callers sent away during a start would be back
                self._socket.stop_listening()

        self._loop.call_soon_threadsafe(stop)


def _exists(path: str) -> bool:
    return Path(path).exists()


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)
