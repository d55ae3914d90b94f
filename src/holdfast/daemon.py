"""The daemon: opens the store, serves hooks at once and MCP a moment later, and stops in good order.

What an agent's first hook needs is imported first, the rest while hooks are served already.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast import succession
from holdfast.app_store import clock_of, open_app_store, steady_clock_of
from holdfast.caller import Hello
from holdfast.config import Settings
from holdfast.door import Door, peer_pid
from holdfast.errors import BadInput, HoldfastError, StoreCorrupt, StoreError, StoreRemoved, StoreUnreachable
from holdfast.file_errors import explain
from holdfast.leaps import LeapWatch
from holdfast.lock import HomeLock
from holdfast.managed import runs_under_agent
from holdfast.processes import exists
from holdfast.readiness import ANSWER_SECONDS, Readiness
from holdfast.relay import place
from holdfast.relay.answers import prune
from holdfast.secrets_file import read_or_make
from holdfast.store import Store, events
from holdfast.store.damage import mark, quick_check
from holdfast.store.loss_notices import LossNotices
from holdfast.store.sqlite import SqliteStore
from holdfast.supervise import Supervisor
from holdfast.version import __version__
from holdfast.wire.links import Link, Links

if TYPE_CHECKING:
    from holdfast.app import App, Command, Progress
    from holdfast.web import Web
    from holdfast.wire.rest import RestRoute
    from holdfast.wire.server import Wire

FOR_AGENTS = frozenset(
    (
        *("status", "verify", "resume", "history-find", "saved", "statusline", "bridge-queue", "teams-stats"),
        *("teams-settings",),
        *("trusted", "protocol-validate"),
    )
)
"""Commands that a managed agent's shell may give: they only look. Every other one is its owner's, a new one too."""
VOUCH_SECONDS = 10.0
LEAP_SECONDS = 1.0
SWEEP_SECONDS = 3600.0
INDEX_SECONDS = 10.0
FLUSH_SECONDS = 1.0
TEAM_SECONDS = 2.0
MIRROR_SECONDS = 2.0
BRIDGE_SECONDS = 2.0
LEDGER_SECONDS = 30.0
REST_SECONDS = 15.0
WATCH_SECONDS = 2.0
MARK_SECONDS = 1.0
BACKUP_SECONDS = 60.0
"""When a daemon first looks whether there is a backup of the day."""
ANNOUNCE_SECONDS = 0.05
"""How long news are gathered, so that a busy writer does not pay for a read after each of its thoughts."""
SETTLE_SECONDS = 15.0
"""How long the callers of an earlier life of this daemon have to come back."""
STOP_SECONDS = 5.0
PUT_BACK = "put-back"
"""Where a daemon that put its database back says so to the next."""
FIRST_HOOK_SECONDS = 0.5
"""How long a daemon that a hook started waits for that hook before it goes on with what agents' tools need."""

SALVAGING = "HOLDFAST_SALVAGING"
"""Tells the daemon that this process becomes that it was started again because of damage."""

logger = logging.getLogger(__name__)


class Daemon:
    """One running daemon. `run` returns when it has stopped; True means that it wants to be started again."""

    def __init__(self, settings: Settings, lock: HomeLock, *, by_hand: bool, hook_waits: bool = False) -> None:
        """`lock`: the data directory's; `run` gives it back, or keeps it for the daemon that it becomes.

        `hook_waits`: whether an agent's hook started this daemon, and waits for its answer.
        """
        self.settings = settings
        self.by_hand = by_hand
        self._notices: list[str] = []
        """What was found at the start and is no loss."""
        self.web: Web | None = None
        self._lock = lock
        self._losses = LossNotices(settings.home)
        self._hook_waits = hook_waits
        self._hook_answered = asyncio.Event()
        self._links = Links()
        self._supervisor = Supervisor()
        self._stop = asyncio.Event()
        self._restart = False
        self._removed: StoreRemoved | None = None
        self._file_is_back = False
        self._why = "it was asked to"
        self._newer_relay: str | None = None
        self._salvaging = os.environ.pop(SALVAGING, "") == "1"
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[Wire] = self._loop.create_future()
        self._started = time.monotonic()
        self._leaps = LeapWatch(clock_of(settings), steady_clock_of(settings))
        self._busy_until = time.monotonic()
        self._app: App | None = None
        self._door: Door | None = None
        self._readiness: Readiness | None = None
        self._commands: asyncio.Future[dict[str, Command]] = self._loop.create_future()

    @property
    def notices(self) -> list[str]:
        """What users must be told: of this start, and of losses that nobody acknowledged yet."""
        return [*self._notices, *self._losses.lines()]

    # -- life ---------------------------------------------------------------------------------------------------------

    async def run(self, started: Any = None) -> bool:
        """Serve until asked to stop. `started(daemon)` is called once everything is served."""
        home = self.settings.home
        try:
            if self.by_hand:
                _remove(place.stopped_marker(str(home)))
            elif _exists(place.stopped_marker(str(home))):  # it was stopped while it was being started
                self._why = "`holdfast stop` was called"
                return False
            await self._serve(started)
        except StoreCorrupt as error:
            # It was noted, so the next start salvages it. If that one meets damage again, no further start will help.
            if self._salvaging:
                raise StoreCorrupt(
                    f"A salvage did not mend it: {error.message}",
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
        if not self._losses.tell_of(notices):
            self._notices += notices
        self._notices += _told_by_the_last(home)
        if isinstance(store, SqliteStore):
            store.removed = self._file_removed
        self._app = app = build(store, self.settings, read_or_make(home / "machine"), self._is_alive)
        self._readiness = readiness = Readiness(store)
        self._door = door = Door(
            Path(place.socket_place(str(home))),
            {
                "relay": self._relay,
                "successor": self._successor,
                "hook": self._hook,
                "command": self._command,
            },
        )
        try:
            await app.connections.start()
            await app.teams.start()
            await door.open()
            self._handle_signals()
            if self._hook_waits:  # the imports that follow would keep it waiting for twice as long
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._hook_answered.wait(), FIRST_HOOK_SECONDS)
            await self._serve_mcp(app, readiness)
            self._start_loops(app)
            _remove(place.last_error(str(home)))
            if started is not None:
                started(self)
            await self._stop.wait()
            door.stop_listening()  # else the relays that are sent away would be back at once
            # Nothing comes to its end without the store; the relays repeat it with the next daemon.
            await self._finish_work(STOP_SECONDS if await readiness.outage() is None else 0.0)
        finally:
            await self._supervisor.close()
            await app.close()
            if self.web is not None:
                await self.web.stop()
            await door.close()
            await self._leave_file_behind(store)
            if store.outage is None:
                with contextlib.suppress(HoldfastError, OSError, TimeoutError):  # it is only written later then
                    await asyncio.wait_for(self._last_words(app), STOP_SECONDS)
            await store.close()

    async def _last_words(self, app: App) -> None:
        """Write down that this daemon's callers are gone, and what it last saw in the store."""
        await app.connections.stop()
        if self._lock.still_ours():
            await app.records.mark.note()

    async def _serve_mcp(self, app: App, readiness: Readiness) -> None:
        """Import the rest and the SDK off the loop, so that hooks are answered meanwhile."""
        from holdfast.app import build_rest, build_wire

        def imported() -> tuple[Wire, list[RestRoute], type[Web]]:
            from holdfast.web import Web

            return build_wire(app, self._links), build_rest(app), Web

        loop = asyncio.get_running_loop()
        try:
            self._commands.set_result(await loop.run_in_executor(None, app.complete))
            wire, rest, web = await loop.run_in_executor(None, imported)
            webhook, outage = app.chats.webhook, readiness.outage
            self.web = web(self.settings, wire, app.keys, rest, self._detached, webhook, outage)
            await self.web.start(required=self.by_hand)
        except BaseException as error:
            self._commands.cancel()
            self._ready.set_exception(error)
            self._ready.exception()  # seen: it is raised here as well
            raise
        self._ready.set_result(wire)

    def _start_loops(self, app: App) -> None:
        from holdfast.teams.model import RENEW_S

        wire = self._ready.result()

        async def announce() -> None:
            since = await app.store.read(events.head)
            async for batch in events.follow(app.store, since):
                await wire.announce(batch)
                if app.store.engine == "postgres" and any(event.kind == "teams.asked" for event in batch):
                    app.teams.runner.wake()  # somebody may have asked through another daemon
                await asyncio.sleep(ANNOUNCE_SECONDS)

        async def check() -> None:
            await quick_check(app.store)

        async def look_for_leap() -> None:
            await self._leaps.carry_over(app.store)

        async def settle() -> None:
            await asyncio.sleep(SETTLE_SECONDS)
            await app.connections.settle(self._links.attached())

        async def dispatch() -> None:
            await asyncio.sleep(SETTLE_SECONDS)  # else an agent that is about to come back would not be seen
            await app.dispatcher.run()

        self._supervisor.start("settle", settle)
        self._supervisor.start("announce", announce)
        self._supervisor.start("check", check)
        self._supervisor.every("clock", LEAP_SECONDS, look_for_leap)
        self._supervisor.every("vouch", VOUCH_SECONDS, app.connections.vouch, first=VOUCH_SECONDS)
        self._supervisor.every("flush", FLUSH_SECONDS, app.connections.flush, first=FLUSH_SECONDS)
        self._supervisor.every("connections", REST_SECONDS, app.connections.sweep, first=REST_SECONDS)
        self._supervisor.start("teams", app.teams.runner.run)
        self._supervisor.start("teams: discovery", app.teams.discover)
        self._supervisor.every("teams: leases", RENEW_S, app.teams.runner.renew, first=RENEW_S)
        self._supervisor.start("teams: processes", app.teams.runner.watch_processes)
        self._supervisor.every("teams: teams.json", TEAM_SECONDS, app.teams.refresh)
        self._supervisor.every("teams: maintenance", SWEEP_SECONDS, app.teams.runner.upkeep.maintain, first=120.0)
        self._supervisor.every("protocol: mirror", MIRROR_SECONDS, app.mirror.step, first=MIRROR_SECONDS)
        self._supervisor.every("bridge: queue", REST_SECONDS, app.bridge.sweep, first=REST_SECONDS)
        self._supervisor.every("briefing: ledgers", LEDGER_SECONDS, app.briefings.catch_up, first=SETTLE_SECONDS)
        self._supervisor.start("briefing: git", app.briefings.look_at_git)
        self._supervisor.every("bridge: hooks", BRIDGE_SECONDS, app.bridge_hooks.keep, first=BRIDGE_SECONDS)
        self._supervisor.every("bridge: files", BRIDGE_SECONDS, app.watch.step)
        self._supervisor.start("bridge: turns", dispatch)
        for name, loop in app.chats.loops().items():
            self._supervisor.start(name, loop)
        self._supervisor.every("index", INDEX_SECONDS, app.index, first=INDEX_SECONDS)
        self._supervisor.every("sweep", SWEEP_SECONDS, app.sweep, first=60.0)
        self._supervisor.every("high-water mark", MARK_SECONDS, app.records.mark.note)
        if self.settings.daily_backup and app.store.engine == "sqlite":
            self._supervisor.every("daily backup", SWEEP_SECONDS, app.records.daily_backup, first=BACKUP_SECONDS)
        self._supervisor.every("forgetting", SWEEP_SECONDS, app.forgetting.finish)
        self._supervisor.every("answers", SWEEP_SECONDS, self._prune_answers, first=120.0)
        self._supervisor.every("watch", WATCH_SECONDS, self._watch)

    async def _prune_answers(self) -> None:
        """Remove what relays kept for callers that have not come for long."""
        await asyncio.to_thread(prune, str(self.settings.home), __version__, time.time())

    async def _watch(self) -> None:
        """End when the data directory is gone, or (if nobody started this daemon by hand) when nobody needs it."""
        if not self._lock.still_ours():
            self.stop("its data directory was removed")
            return
        await self._look_after_files()
        wire = self._ready.result()
        now = time.monotonic()
        if (
            self._links.clients
            or wire.in_flight
            or (self._app and self._app.busy)
            or wire.recently_used(WATCH_SECONDS * 2)
        ):
            self._busy_until = now
        elif not self.by_hand and now - self._busy_until > self.settings.idle_exit_s:
            self.stop("it had no client and no work")

    async def _look_after_files(self) -> None:
        """Put back the socket and the database where somebody removed them."""
        if self._door is not None and self._door.is_missing:
            place.socket_place(str(self.settings.home))  # makes its folder again where that is gone too
            await self._door.put_back()
            logger.warning("the socket was removed; it was put back")
        if self._app is not None and isinstance(self._app.store, SqliteStore):
            await self._app.store.look_for_file()
            if self._removed is not None:
                await self._put_file_back(self._app.store, self._removed)

    async def _finish_work(self, seconds: float) -> None:
        """Take no more calls, and let those that are under way come to their end, for a moment.

        Subscription streams are not ended: behind a relay they go on with the next daemon.
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
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop, f"it got {number.name}")

    def _salvage_next(self, error: StoreCorrupt) -> None:
        """The database turned out to be damaged, which was noted: start again, because that salvages it."""

        def stop() -> None:
            self.stop(str(error), restart=True)
            if self._door is not None:  # at once: who is sent away while the rest is still starting would be back
                self._door.stop_listening()

        self._loop.call_soon_threadsafe(stop)

    def _file_removed(self, error: StoreRemoved) -> None:
        """The database file was removed or replaced: nothing more is acknowledged, and the watch puts it back."""
        self._removed = error

    async def _leave_file_behind(self, store: Store) -> None:
        """Put back at the last moment a file whose removal the watch had no time to mend: closing it would lose it."""
        if isinstance(store, SqliteStore) and not self._file_is_back and self._lock.still_ours():
            try:
                await store.look_for_file()
                if self._removed is not None:
                    await self._put_file_back(store, self._removed)
            except (HoldfastError, OSError):
                logger.exception("the database was removed and could not be put back")

    async def _put_file_back(self, store: SqliteStore, removed: StoreRemoved) -> None:
        aside = await store.put_back()
        self._file_is_back = True
        kept = f" What stood in its place is kept as {aside.name}." if aside is not None else ""
        told = f"{removed.message} It was put back, with all that it held.{kept}"
        mark(self.settings.home, PUT_BACK, told)
        self.stop(told, restart=True)

    # -- visitors -----------------------------------------------------------------------------------------------------

    async def _relay(self, first: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            hello = Hello.of(first)
        except BadInput as error:
            return await _say(writer, {"holdfast": "refused", "message": str(error)})
        # A managed agent's relay starts no daemon: it would end with the agent.
        if succession.is_newer(hello.version, __version__) and "HOLDFAST_MANAGED" not in hello.env:
            if self._newer_relay != hello.version:
                self._newer_relay = hello.version
                logger.info("a relay of holdfast %s was told to start a daemon of its version", hello.version)
            address = {"host": self.settings.host, "port": self.settings.port}
            return await _say(writer, {"holdfast": "step-down", "version": __version__, **address})
        welcome = {"holdfast": "welcome", "version": __version__, "pid": os.getpid(), "ready": self._ready.done()}
        await _say(writer, welcome)
        link = self._links.open_relay(hello)
        try:
            if self._app is not None and link.identity is not None:
                with contextlib.suppress(StoreUnreachable):  # its first call does it as well, and tells of the outage
                    await self._app.connections.attach(link.identity, hello.pid)
            wire = await asyncio.shield(self._ready)
            # Only now: two threads that import the SDK at once can deadlock in it.
            from holdfast.wire.relayed import serve_relay

            await serve_relay(wire, link, reader, writer)
        finally:
            await self._closed(link)
        return None

    async def _successor(
        self, first: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Make room for a newer daemon as soon as no call is under way, provided it still waits then."""
        version = first.get("version")
        if not isinstance(version, str) or not succession.is_newer(version[:64], __version__):
            message = f"holdfast {__version__}, which serves here, is not older than {str(version)[:64]}."
            return await _say(writer, {"holdfast": "refused", "message": message})
        await _say(writer, {"holdfast": "making-room"})
        wire = await asyncio.shield(self._ready)
        idle, gone = asyncio.ensure_future(wire.idle()), asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({idle, gone}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                logger.warning("holdfast %s asked for this daemon's place and went away", version[:64])
            else:
                self.stop(f"holdfast {version[:64]} takes over")
                await gone  # hung up on now, it would ask again while the socket is still there
        finally:
            idle.cancel()
            gone.cancel()
        return None

    def _is_alive(self, session: str) -> bool:
        """Whether an agent of this session is connected now. One that was killed is not, before its relay notices."""
        return any(link.open and link.agent_session == session and _has_parent(link) for link in self._links)

    async def _closed(self, link: Link) -> None:
        self._links.close_relay(link)
        if link.identity is not None and not self._stop.is_set():
            await self._detached(link.identity)

    async def _detached(self, identity: str) -> None:
        """A caller's transport is gone, unless another one still speaks for it."""

        async def detach() -> None:
            if self._app is not None and identity not in self._links.attached():
                await self._app.connections.detach(identity)

        try:
            await detach()
        except StoreUnreachable:
            self._supervisor.start("detach", detach)  # until the store is back

    async def _hook(self, first: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from holdfast.hooks import MAX_PAYLOAD, Told

        payload = bytearray()
        while data := await reader.read(64 * 1024):
            payload += data
            if len(payload) > MAX_PAYLOAD:
                return
        if self._app is None:
            return
        told = Told(str(first.get("pid", "")), bool(first.get("managed")), first.get("briefing"))
        reply = await self._app.hooks(self._links).handle(str(first.get("event", "")), told, bytes(payload))
        writer.write(reply.encode())
        await writer.drain()
        self._hook_answered.set()

    async def _command(self, first: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name, args = first.get("name"), first.get("args") or {}
        caller = peer_pid(writer.get_extra_info("socket"))
        if name not in FOR_AGENTS and caller is not None and runs_under_agent(caller, self.settings.home):
            text = f"The command {name!r} is not for managed agents. Its owner gives it in a terminal."
            return await _say(writer, {"ok": False, "code": "E_NOT_YOURS", "message": text})
        if name == "stop":
            await _say(writer, {"ok": True, "result": {"pid": os.getpid()}})
            return self.stop(str(args.get("why") or "it was asked to"))
        commands = await asyncio.shield(self._commands)
        command = self._status if name == "status" else commands.get(str(name))
        if command is None:
            return await _say(writer, {"ok": False, "code": "E_NOT_FOUND", "message": f"There is no command {name!r}."})
        loop = asyncio.get_running_loop()

        def progress(share: float, message: str) -> None:
            line = json.dumps({"progress": share, "message": message}).encode() + b"\n"
            loop.call_soon_threadsafe(writer.write, line)

        try:
            result = await command(args, progress)
        except HoldfastError as error:
            return await _say(writer, {"ok": False, "code": error.code, "message": str(error)})
        except OSError as error:
            trouble = explain(error)
            return await _say(writer, {"ok": False, "code": trouble.code, "message": str(trouble)})
        except Exception as error:
            # Else the connection would close without a word, which says that the daemon ended.
            logger.exception("the command %r failed", name)
            text = f"The command failed unexpectedly ({type(error).__name__}); the daemon's log says more."
            return await _say(writer, {"ok": False, "code": "E_INTERNAL", "message": text})
        return await _say(writer, {"ok": True, "result": result})

    async def _status(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {**self.status(), **await self._health()}

    async def _health(self) -> dict[str, Any]:
        """The worktrees whose memories are behind, or had to go to second best; how the chats and the store are."""
        if self._app is None or self._readiness is None:
            return {"mirrors": []}
        if await self._readiness.outage() is None:
            with contextlib.suppress(StoreError, TimeoutError):  # it went away between the two
                async with asyncio.timeout(ANSWER_SECONDS):
                    mirrors = [one for one in await self._app.mirror.health() if one["behind"] or one.get("failure")]
                    return {"mirrors": mirrors, "chats": await self._app.chats.status()}
        outage = await self._readiness.outage()
        return {"mirrors": [], "outage": None if outage is None else asdict(outage)}

    def status(self) -> dict[str, Any]:
        """What `holdfast status` shows."""
        web = self.web
        return {
            "pid": os.getpid(),
            "version": __version__,
            "home": str(self.settings.home),
            "address": web.address if web else None,
            "http": "starting" if web is None else (web.off or "on"),
            "ready": self._ready.done(),
            "uptime": round(time.monotonic() - self._started, 1),
            "clients": self._links.clients,
            "relays": self._links.relays,
            "engine": "postgres" if self.settings.database_url else "sqlite",
            "started_by": "hand" if self.by_hand else "relay",
            "python": sys.version.split()[0],
            "loops": [asdict(loop) for loop in self._supervisor.loops],
            "notices": [*self.notices, *self._newer_notice(), *self._rights_notices()],
            "losses": [asdict(notice) for notice in self._losses.open()],
        }

    def _rights_notices(self) -> list[str]:
        """Teams whose rights wait for a person's word."""
        return [str(fault) for fault in self._app.teams.roster.unconfirmed] if self._app is not None else []

    def _newer_notice(self) -> list[str]:
        if self._newer_relay is None:
            return []
        return [
            f"A relay of holdfast {self._newer_relay} asked for a newer daemon, but none took over from this one "
            f"({__version__}), which goes on serving. {self.settings.home / 'daemon.log'} says why it did not start."
        ]


def _told_by_the_last(home: Path) -> list[str]:
    """What the daemon before this one wants users to know."""
    try:
        told = (home / PUT_BACK).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return []
    _remove(str(home / PUT_BACK))
    return [told]


def _has_parent(link: Link) -> bool:
    """Whether the process that started a relay is still there, as far as it can be seen: it may be in a container."""
    return link.hello is None or not exists(link.hello.pid) or exists(link.hello.ppid)


def _exists(path: str) -> bool:
    return Path(path).exists()


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)


async def _say(writer: asyncio.StreamWriter, line: dict[str, Any]) -> None:
    writer.write(json.dumps(line).encode() + b"\n")
    await writer.drain()
