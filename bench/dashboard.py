"""The dashboard on a large store: how long each page takes in the daemon and in Chromium, what it weighs, and what
three open dashboards cost agents and the daemon.

10,000 sessions of 50 thoughts, one of 100,000, and 10,000 messages. Pages are found by following links."""

from __future__ import annotations

import asyncio
import http.client
import json
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright
from tests.browser.chromium import FLAGS, MISSING, find
from tests.browser.test_every_page import find_pages

from bench.memory import MEGABYTE, resident
from bench.prefill import BATCH, PROJECT, _fingerprint, _record, copy_into, store_with
from bench.report import Effort, Progress, Row, milliseconds
from bench.served import HOLDFAST, RELAY, Served
from bench.stdio import StdioServer
from bench.thoughts import thought
from bench.workshop import WORKSHOP, scratch
from holdfast.bridge.service import Bridge
from holdfast.identity.project import RootSource, locate
from holdfast.store.sqlite import SqliteStore
from holdfast.teams.team import Team

SERVER_MS, CHROMIUM_MS, BYTES = 50.0, 300.0, 150_000
TOOLS_TARGET, MEMORY_MB = 1.1, 30.0
DASHBOARDS = 3
SETTLED_MS = 1_500
"""How long a browser takes to start and draw: a dashboard is opened once, and measured while it is open."""
TARGET = "bench"
THOUGHTS_PER_SESSION = 50
TEXT = "Please look at the retry path: the lock is taken twice. " * 5


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """Every page, then tool calls with and without open dashboards."""
    program = find()
    if program is None:
        return [Row(f"dashboard: {MISSING}", holdfast="")]
    prefilled = _large_store(effort, progress)
    with scratch() as place, sync_playwright() as playwright:
        home = place / "home"
        copy_into(home, prefilled)
        teams = {TARGET: {"project": str(PROJECT), "delivery": "hook"}}
        (home / "teams.json").write_text(json.dumps({"teams": teams}))
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        with Served(home) as daemon:
            rows = _open_dashboards(daemon, browser, effort, progress)
            rows += _pages(daemon, browser, effort, progress)
        browser.close()
    return rows


def _pages(daemon: Served, browser: Browser, effort: Effort, progress: Progress) -> list[Row]:
    address = f"http://127.0.0.1:{daemon.port}"
    rounds = max(20, effort.loads)
    rows = []
    with _dashboard(daemon, browser) as page:
        (cookie,) = page.context.cookies()
        connection = http.client.HTTPConnection("127.0.0.1", daemon.port)
        for pattern, path in sorted(find_pages(page, address).items()):
            times, size = [], 0
            for number in range(rounds):
                began = time.perf_counter()
                connection.request("GET", path, headers={"Cookie": f"{cookie['name']}={cookie['value']}"})
                size = len(connection.getresponse().read())
                times.append(time.perf_counter() - began)
                progress(f"{urlsplit(path).path} in the daemon", number + 1, rounds)
            usable = []
            for _ in range(max(5, rounds // 10)):
                page.goto(address + path, wait_until="load")
                usable.append(page.evaluate("performance.getEntriesByType('navigation')[0].domInteractive"))
            p95 = _p95(times)
            in_chromium = statistics.median(usable)
            rows += [
                Row(f"{pattern}: p95 in the daemon", milliseconds(p95), "", p95 * 1000, SERVER_MS, "ms", {"s": times}),
                Row(f"{pattern}: usable in Chromium", f"{in_chromium:.0f} ms", "", in_chromium, CHROMIUM_MS, "ms"),
                Row(f"{pattern}: bytes", f"{size:,}", "", float(size), BYTES, "B"),
            ]
        connection.close()
    return rows


def _open_dashboards(daemon: Served, browser: Browser, effort: Effort, progress: Progress) -> list[Row]:
    """The same thoughts with no dashboard open and with three, in turn, so that a slow moment meets both."""
    alone: list[float] = []
    watched: list[float] = []
    with StdioServer(RELAY, daemon.env, PROJECT) as relay:
        relay.initialize()
        with _dashboard(daemon, browser):
            pass  # what the first page imports is not what a page costs
        for number in range(1, 21):
            relay.call("thought", thought(number, effort.calls))
        before = resident(_pid(daemon))
        for part in range(4):
            with ExitStack() as open_ones:
                if part % 2:
                    for _ in range(DASHBOARDS):
                        open_ones.enter_context(_dashboard(daemon, browser)).wait_for_timeout(SETTLED_MS)
                for number in range(1, effort.calls // 4 + 1):
                    (watched if part % 2 else alone).append(relay.timed_call("thought", thought(number, effort.calls)))
                    progress("thoughts, with three dashboards and without", number, effort.calls // 4)
                after = resident(_pid(daemon))
    ours, theirs = statistics.median(watched), statistics.median(alone)
    more = max(0.0, (after - before) / MEGABYTE)
    return [
        Row(
            f"thoughts while {DASHBOARDS} dashboards are open",
            milliseconds(ours),
            f"{milliseconds(theirs)} (none open)",
            ours / theirs,
            TOOLS_TARGET,
            samples={"open": watched, "none": alone},
        ),
        Row(f"memory of the daemon for {DASHBOARDS} dashboards", f"{more:.1f} MB", "", more, MEMORY_MB, "MB"),
    ]


@contextmanager
def _dashboard(daemon: Served, browser: Browser) -> Iterator[Page]:
    """A browser of its own that looks at the first page, signed in."""
    made = subprocess.run([HOLDFAST, "open", "--print"], env=daemon.env, capture_output=True, text=True, check=True)
    context = browser.new_context()
    page = context.new_page()
    page.goto(made.stdout.strip())
    page.wait_for_url(f"http://127.0.0.1:{daemon.port}/")
    try:
        yield page
    finally:
        context.close()


def _pid(daemon: Served) -> int:
    return daemon._process.pid


def _p95(times: list[float]) -> float:
    return sorted(times)[max(0, -(-len(times) * 95 // 100) - 1)]


def _large_store(effort: Effort, progress: Progress) -> Path:
    """The large store with a long session and messages in it, kept like the others."""
    base = store_with(effort.sessions, THOUGHTS_PER_SESSION, progress)
    root = locate(str(PROJECT), RootSource.DIRECTORY)
    database = WORKSHOP / f"dashboard-{effort.sessions}-{effort.length}-{_fingerprint(root)}.db"
    if not database.exists() or database.stat().st_mtime < base.stat().st_mtime:
        with scratch() as place:
            copy_into(place / "home", base)
            unfinished = place / "home" / "holdfast.db"
            asyncio.run(_fill(unfinished, effort, progress))
            unfinished.rename(database)
    return database


async def _fill(path: Path, effort: Effort, progress: Progress) -> None:
    root = locate(str(PROJECT), RootSource.DIRECTORY)
    store = SqliteStore.open(path)
    bridge = Bridge(store, lambda: {TARGET: Team(TARGET, PROJECT)})
    try:
        session = None
        for first in range(0, effort.length, BATCH):
            numbers = range(first, min(first + BATCH, effort.length))
            fill = partial(_record, root=root, session=session, numbers=numbers, per=effort.length)
            session = await store.write(fill)
            progress("filling a long session", numbers.stop, effort.length)
        for first in range(0, effort.sessions, 100):
            sends = (bridge.send(TARGET, TEXT, message_id=f"m-{one}") for one in range(first, first + 100))
            await asyncio.gather(*sends)
            progress("sending messages", first + 100, effort.sessions)
    finally:
        await store.close()
