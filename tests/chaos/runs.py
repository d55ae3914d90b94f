"""A run: every wanted fault on every wanted engine, one episode each."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.damages import DAMAGES
from tests.chaos.episode import Episode
from tests.chaos.faults import FAULTS, Impossible
from tests.chaos.plan import make_plan
from tests.chaos.plants import PLANTS, SOURCES, product
from tests.chaos.report import HEAD, Result, line
from tests.chaos.server import Postgres, postgres
from tests.chaos.world import World

ENGINES = ("sqlite", "postgres")
SECONDS = 3.0
"""How long clients work in one episode, besides the time that a fault keeps them from it."""
BEFORE_DAMAGE = 0.5
"""The part of it after which there is enough to be damaged."""


SHORT = {"sqlite": ("lost-answer", "kill"), "postgres": ("lost-answer",)}
"""What `make test` tries, with a second of work each."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run is to do."""

    seed: int
    engines: tuple[str, ...]
    faults: tuple[str, ...]
    seconds: float
    plant: str | None = None
    keep: bool = False
    """Whether histories and logs of a clean run are kept."""
    compiler: bool = True
    """Whether a C compiler may be used where there is one."""
    sources: Path = SOURCES
    """The product to run: the directory that holds the package."""


def episodes(wanted: Wanted, engine: str) -> list[str]:
    """The faults of an engine that are wanted, in order."""
    possible = {name: fault.engines for name, fault in FAULTS.items()}
    possible |= {name: damage.engines for name, damage in DAMAGES.items()}
    return [name for name in wanted.faults if engine in possible[name]]


def run_one(wanted: Wanted, engine: str, fault: str, folder: Path, sources: Path, server: Postgres | None) -> Result:
    """One episode."""
    if fault in FAULTS:
        plan = make_plan(wanted.seed, engine, fault, wanted.seconds, FAULTS[fault].strikes)
    else:
        plan = make_plan(wanted.seed, engine, fault, wanted.seconds * BEFORE_DAMAGE, 1)
    place = folder / f"{engine}-{fault}"
    began = time.monotonic()
    world = World(place, database_url=server.database() if server else None, sources=sources)
    episode = Episode(plan, world, server, compiler=wanted.compiler)
    result = Result(engine, fault, 0.0, episode.history, episode.violations, place)
    try:
        episode.run()
    except Impossible as error:
        result.impossible = str(error)
    except Exception as error:  # noqa: BLE001 - it is reported as what it is: an episode that was not carried out
        result.broken = f"{type(error).__name__}: {str(error)[:300]}"
    result.seconds = time.monotonic() - began
    return result


def run(wanted: Wanted, folder: Path) -> list[Result]:
    """Every wanted episode, the engines side by side."""
    sources = product(folder, wanted.sources, PLANTS[wanted.plant] if wanted.plant else None)
    results: list[Result] = []
    lock, stopped = threading.Lock(), threading.Event()

    def on_engine(engine: str) -> None:
        faults = episodes(wanted, engine)
        if not faults:
            return
        with ExitStack() as stack:
            server = stack.enter_context(postgres()) if engine == "postgres" else None
            for fault in faults:
                if stopped.is_set():
                    return
                result = run_one(wanted, engine, fault, folder, sources, server)
                with lock:
                    results.append(result)
                    print(line(result), flush=True)

    threads = [threading.Thread(target=on_engine, args=(engine,)) for engine in wanted.engines]
    print(HEAD, flush=True)
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        stopped.set()  # after Ctrl-C the episodes under way come to their end, and clean up after themselves
        for thread in threads:
            thread.join()
    return results
