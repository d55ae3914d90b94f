"""The faults after which nothing may be missing: what the nemesis does while clients work."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos.damage import Told, check_tracebacks
from tests.chaos.effects import Circumstances
from tests.chaos.lost_answers import LosingProxy
from tests.chaos.proxy import Proxy
from tests.installation import kill_all, wait_until
from tests.process.agent import Agent

if TYPE_CHECKING:
    from tests.chaos.episode import Episode

BOTH = ("sqlite", "postgres")
SQLITE = ("sqlite",)
POSTGRES = ("postgres",)
MINUTE, HOUR = 60_000, 3_600_000
BURST = 40
LOST_ANSWERS = 0.3
"""The share of answers that do not arrive: of what is left, ten in a row, after which a relay gives up, are rare."""


NOTHING_SPECIAL = Circumstances()


class Impossible(Exception):
    """A fault that this machine cannot have; the report says why."""


@contextmanager
def nothing_to_prepare(episode: Episode) -> Iterator[None]:
    """Most faults need nothing before the daemon starts."""
    yield


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of misfortune."""

    name: str
    engines: tuple[str, ...]
    strike: Callable[[Episode, random.Random], None]
    strikes: int = 2
    given: Circumstances = NOTHING_SPECIAL
    around: Callable[[Episode], contextlib.AbstractContextManager[None]] = nothing_to_prepare
    """Entered before anything is started, left when the episode is over."""
    begin: Callable[[Episode], None] = lambda episode: None
    """Done before the clients start, when everything else is there."""
    heal: Callable[[Episode], None] = lambda episode: None
    """Undo it, before clients are waited for."""


def _no_fault(episode: Episode, chance: random.Random) -> None:
    episode.history.note("nothing")


# -- the daemon -----------------------------------------------------------------------------------------------------


def _kill(episode: Episode, chance: random.Random) -> None:
    episode.history.note(f"kill -9 of the daemon {episode.world.signal_daemon(signal.SIGKILL)}")


def _terminate(episode: Episode, chance: random.Random) -> None:
    episode.history.note(f"SIGTERM to the daemon {episode.world.signal_daemon(signal.SIGTERM)}")


def _take_over(episode: Episode, chance: random.Random) -> None:
    if episode.flags.pop("served", False):
        _terminate(episode, chance)  # only a daemon that a relay started makes room
        return
    episode.flags["served"] = True
    before = episode.world.daemon()
    episode.world.take_over()
    episode.history.note(f"`holdfast serve` takes over from {before}")


def _pause(episode: Episode, chance: random.Random) -> None:
    pid = episode.world.signal_daemon(signal.SIGSTOP)
    episode.history.note(f"SIGSTOP to the daemon {pid}")
    time.sleep(0.3 + chance.random())
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    episode.history.note(f"SIGCONT to the daemon {pid}")


def _delete_socket(episode: Episode, chance: random.Random) -> None:
    (episode.world.home / "daemon.sock").unlink(missing_ok=True)
    episode.history.note("the socket is deleted")


def _jump(episode: Episode, chance: random.Random) -> None:
    by = chance.choice((11 * MINUTE, 3 * HOUR, 30 * HOUR, -20 * MINUTE, -2 * HOUR))
    episode.world.later(by)
    episode.history.note(f"the clock jumps by {by / MINUTE:g} minutes")


# -- clients --------------------------------------------------------------------------------------------------------


def _kill_relay(episode: Episode, chance: random.Random) -> None:
    client = chance.choice([client for client in episode.clients if client.role.era != "rest"])
    client.kill(whole_client=False)
    episode.history.note(f"kill -9 of the relay of {client.name}")


def _kill_client(episode: Episode, chance: random.Random) -> None:
    client = chance.choice([client for client in episode.clients if client.role.era != "rest"])
    client.kill(whole_client=True)
    episode.history.note(f"kill -9 of {client.name}")


def _burst(episode: Episode, chance: random.Random) -> None:
    """Forty agents that start at once, think, send and leave."""
    world, history = episode.world, episode.history

    def visit(number: int) -> None:
        name = f"visitor-{number}"
        with Agent(
            world, world.project("beta"), era=("legacy", "modern")[number % 2], session=f"chaos-{name}"
        ) as agent:
            for tool, kind, arguments in (
                ("thought", "think", {"thought": "{} hello", "nextThoughtNeeded": True}),
                ("send_message", "send", {"target": "desk-a", "message": "{} please", "priority": "normal"}),
            ):
                mark = f"{name}#{kind}."
                given = {
                    key: value.format(mark) if isinstance(value, str) else value for key, value in arguments.items()
                }
                episode.call(agent, name, kind, tool, mark, given)

    threads = [threading.Thread(target=visit, args=(number,), daemon=True) for number in range(BURST)]
    history.note(f"{BURST} relays at once")
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


@contextmanager
def _losing_answers(episode: Episode) -> Iterator[None]:
    proxy = LosingProxy(episode.world.folder / "front", episode.world.home / "daemon.sock")
    episode.flags["losing"] = proxy
    episode.shared.client_settings["HOLDFAST_HOME"] = str(proxy.home)
    try:
        yield
    finally:
        proxy.close()


def _serve(episode: Episode) -> None:
    episode.world.take_over()
    episode.world.wait_for_daemon()
    episode.flags["losing"].lose(LOST_ANSWERS, random.Random(episode.plan.strikes[0].chance))


def _lose_answers(episode: Episode, chance: random.Random) -> None:
    episode.history.note(f"{episode.flags['losing'].lost} answers were lost")


def _lose_no_more(episode: Episode) -> None:
    episode.flags["losing"].lose(0.0, random.Random())
    episode.history.note(f"{episode.flags['losing'].lost} answers were lost")


# -- the disk -------------------------------------------------------------------------------------------------------

DISK_BYTES = 24 << 20


@contextmanager
def _small_disk(episode: Episode) -> Iterator[None]:
    """A disk of its own for the data directory, where mounting is allowed."""
    home = episode.world.home
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    mounted = _run("mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=700", "tmpfs", str(home))
    episode.flags["mounted"] = mounted
    if episode.fault.name == "read-only" and not mounted:
        raise Impossible("mounting is not allowed here")
    try:
        yield
    finally:
        if mounted:
            _run("umount", "-l", str(home))


def _fill(episode: Episode, chance: random.Random) -> None:
    if not episode.flags["mounted"]:
        _limit_files(episode)
        return
    filler = episode.world.home / "filler"
    episode.history.note("the disk is full")
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    time.sleep(0.4 + chance.random() * 0.6)
    filler.unlink(missing_ok=True)
    episode.history.note("the disk has room again")


def _limit_files(episode: Episode) -> None:
    """No file of the daemon's may grow: the nearest to a full disk without the right to mount one."""
    pid = episode.world.daemon()
    if pid is None:
        return
    limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    episode.history.note("the daemon's files may not grow")
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, limits[1]))
    time.sleep(0.7)
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
    episode.history.note("they may grow again")


def _make_read_only(episode: Episode, chance: random.Random) -> None:
    """Everything ends, and the disk is read-only when clients and daemon come back."""
    world, home = episode.world, str(episode.world.home)
    with _everything_dead(episode):  # not while anybody has a file open for writing
        wait_until(lambda: _without_writers(episode, "mount", "-o", "remount,ro", home), "the disk is read-only", 60)
        episode.history.note("the disk is read-only")
    said = {name: Told.by(world.command(name)) for name in ("verify", "status")}
    episode.violations += check_tracebacks(said)
    wait_until(lambda: _run("mount", "-o", "remount,rw", home), "the disk can be written", 10)
    episode.history.note("the disk can be written again")


def _without_writers(episode: Episode, *command: str) -> bool:
    """Run a command when what was just being started is dead too."""
    kill_all(episode.world.processes())
    return _run(*command)


@contextmanager
def _everything_dead(episode: Episode) -> Iterator[None]:
    """Kill every process of the episode, clients' relays included, and keep clients from starting new ones."""
    episode.shared.power.clear()
    try:
        episode.world.signal_daemon(signal.SIGKILL)  # first, in the middle of whatever it does
        while left := episode.world.processes():
            kill_all(left)
        yield
    finally:
        episode.shared.power.set()


def _run(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


# -- power ----------------------------------------------------------------------------------------------------------


SLOW_COMMIT_SECONDS = 0.008


def _preload(episode: Episode, **settings: str) -> None:
    """Have every process of the episode use a disk that is slow to sync, and does more where it is told to."""
    world, compiler = episode.world, shutil.which("gcc") or shutil.which("cc")
    if not episode.compiler or compiler is None or sys.platform != "linux":
        raise Impossible("needs a C compiler and Linux")
    library = world.folder / "power.so"
    source = Path(__file__).with_name("power.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    slow = str(round(SLOW_COMMIT_SECONDS * 1_000_000))
    world.settings |= {"LD_PRELOAD": str(library), "CHAOS_SLOW_US": slow, **settings}


@contextmanager
def _forgetful_disk(episode: Episode) -> Iterator[None]:
    """Every process of the episode keeps, beside each synced file, what it was when it was synced."""
    synced = episode.world.folder / "synced"
    synced.mkdir()
    _preload(episode, CHAOS_DISK=str(episode.world.home), CHAOS_SYNCED=str(synced))
    yield


@contextmanager
def _slow_commits(episode: Episode) -> Iterator[None]:
    """Commits that take a while, so that a kill often comes after a commit and before its answer."""
    if episode.world.engine == "postgres":
        with _behind_a_proxy(episode):
            episode.flags["proxy"].commit_seconds = SLOW_COMMIT_SECONDS
            yield
        return
    with contextlib.suppress(Impossible):  # kills find less then, and still enough
        _preload(episode)
    yield


def _cut_power(episode: Episode, chance: random.Random) -> None:
    """Everything ends at once, and of the database only what was synced is left."""
    world, synced = episode.world, episode.world.folder / "synced"
    with _everything_dead(episode):
        while True:
            for ending in ("", "-wal", "-shm"):
                world.database.with_name(f"holdfast.db{ending}").unlink(missing_ok=True)
                if (kept := synced / f"holdfast.db{ending}").exists():
                    shutil.copyfile(kept, world.database.with_name(f"holdfast.db{ending}"))
            if not (left := world.processes()):
                break
            kill_all(left)  # just being started, they may have opened the files that were replaced
        episode.history.note("the power is cut")


# -- PostgreSQL -----------------------------------------------------------------------------------------------------


@contextmanager
def _behind_a_proxy(episode: Episode) -> Iterator[None]:
    server_socket, url = episode.postgres_socket()
    proxy = Proxy(server_socket)
    episode.flags["proxy"] = proxy
    episode.world.settings["HOLDFAST_DATABASE_URL"] = url(proxy.port)
    try:
        yield
    finally:
        proxy.close()


def _cut_connections(episode: Episode, chance: random.Random) -> None:
    proxy: Proxy = episode.flags["proxy"]
    if chance.random() < 0.5:
        proxy.cut_answers()
        time.sleep(0.05 + 0.2 * chance.random())
        episode.history.note(f"{proxy.cut()} connections to PostgreSQL are cut while answers are awaited")
        proxy.heal()
    else:
        episode.history.note(f"{proxy.cut()} connections to PostgreSQL are cut")


def _silence_connections(episode: Episode, chance: random.Random) -> None:
    proxy: Proxy = episode.flags["proxy"]
    proxy.go_silent()
    episode.history.note("nothing reaches PostgreSQL, and nothing comes back")
    time.sleep(0.5 + chance.random())
    proxy.heal()
    episode.history.note("PostgreSQL can be reached again")


def _restart_postgres(episode: Episode, chance: random.Random) -> None:
    episode.history.note("PostgreSQL is stopped")
    episode.restart_postgres(0.2 + chance.random())
    episode.history.note("PostgreSQL is back")


ENDED = Circumstances(asks_may_fail=True)

FAULTS = {
    fault.name: fault
    for fault in (
        Fault("none", BOTH, _no_fault, strikes=1),
        Fault("kill", BOTH, _kill, strikes=3, given=ENDED, around=_slow_commits),
        Fault("term", BOTH, _terminate, strikes=2, given=ENDED),
        Fault("take-over", BOTH, _take_over, strikes=2, given=ENDED),
        Fault("pause", BOTH, _pause, strikes=2),
        Fault("kill-relay", BOTH, _kill_relay, strikes=6),
        Fault("kill-client", BOTH, _kill_client, strikes=6),
        Fault(
            "lost-answer",
            BOTH,
            _lose_answers,
            strikes=1,
            around=_losing_answers,
            begin=_serve,
            heal=_lose_no_more,
        ),
        Fault("burst", BOTH, _burst, strikes=1),
        Fault("clock", BOTH, _jump, strikes=3, given=Circumstances(leases_may_end=True)),
        Fault("delete-socket", BOTH, _delete_socket, strikes=1, given=ENDED),
        Fault("disk-full", SQLITE, _fill, strikes=2, given=ENDED, around=_small_disk),
        Fault("read-only", SQLITE, _make_read_only, strikes=1, given=ENDED, around=_small_disk),
        Fault("power-cut", SQLITE, _cut_power, strikes=3, given=ENDED, around=_forgetful_disk),
        Fault("pg-cut", POSTGRES, _cut_connections, strikes=4, given=ENDED, around=_behind_a_proxy),
        Fault("pg-silent", POSTGRES, _silence_connections, strikes=2, given=ENDED, around=_behind_a_proxy),
        Fault("pg-restart", POSTGRES, _restart_postgres, strikes=1, given=ENDED),
    )
}
"""Every fault that leaves the data alone."""
