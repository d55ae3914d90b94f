"""The dashboard on a large store: how long each page takes in the daemon and in Chromium, what it weighs, and what
three open dashboards cost agents and the daemon.

Every page that the site knows is opened, at the address that its links lead to and at those of what is large in the
store. An agent records a thought before each request, as in a real day: nothing is answered from what was kept, except
how many things wait for a person, which no thought changes.
"""

from __future__ import annotations

import http.client
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright
from tests.agents.echo import offered
from tests.browser.chromium import FLAGS, MISSING, find
from tests.dashboard_pages import find_pages, patterns

from bench.dashboard_store import Address, large_store
from bench.memory import MEGABYTE, resident
from bench.prefill import PROJECT
from bench.report import Effort, Progress, Row, milliseconds
from bench.served import HOLDFAST, RELAY, Served
from bench.stdio import ServerFailed, StdioServer
from bench.thoughts import thought
from bench.workshop import scratch
from holdfast.dashboard.figures import PERIODS

SERVER_MS, CHROMIUM_MS, BYTES = 50.0, 300.0, 150_000
TOOLS_TARGET, MEMORY_MB = 1.1, 30.0
DASHBOARDS = 3
SETTLED_MS = 1_500
"""How long a browser takes to start and draw: a dashboard is opened once, and measured while it is open."""
ROUNDS, IN_CHROMIUM = 40, 5
SEARCHES = {
    "a word of every thought": "lock",
    "the beginning of that word": "loc",
    "two words": "reader disk",
    "a word of few": "99999",
    "a word of none": "zebra",
    "a word of every thought and one of none": "lock zebra",
    "a phrase": '"taken twice when"',
}
VARIANTS = [
    *(Address("/find", what, f"/find?{urlencode({'q': words})}") for what, words in SEARCHES.items()),
    *(Address("/figures", f"a {period}", f"/figures?period={period}") for period in PERIODS),
    *(Address("/sessions", f"{status} ones", f"/sessions?status={status}") for status in ("archived", "all")),
    Address("/projects", "second page", "/projects?page=2"),
    Address("/teams", "one pair", "/teams?from=storefront&to=payments"),
]
"""Addresses of pages that show more or less by their query."""


@dataclass(frozen=True, slots=True)
class Opened:
    """One address, opened often: seconds in the daemon, bytes, and milliseconds in Chromium until it was usable."""

    address: Address
    seconds: Sequence[float]
    size: int
    usable: Sequence[float]

    def rows(self) -> list[Row]:
        """Return what was measured; files that a browser keeps are not drawn and may be large."""
        what = f"{self.address.pattern}{self.address.of and f' ({self.address.of})'}"
        p95 = _p95(self.seconds)
        taken = {"s": self.seconds}
        rows = [Row(f"{what}: p95 in the daemon", milliseconds(p95), "", p95 * 1000, SERVER_MS, "ms", taken)]
        if self.usable:
            shown = statistics.median(self.usable)
            rows += [
                Row(f"{what}: usable in Chromium", f"{shown:.0f} ms", "", shown, CHROMIUM_MS, "ms"),
                Row(f"{what}: bytes", f"{self.size:,}", "", float(self.size), BYTES, "B"),
            ]
        return rows


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """The first pages after a start, tool calls with and without open dashboards, then every page."""
    program = find()
    if program is None:
        return [Row(f"dashboard: {MISSING}", holdfast="")]
    large = large_store(effort, progress)
    with scratch() as place, sync_playwright() as playwright:
        home = place / "home"
        shutil.copytree(large.home, home, ignore=shutil.ignore_patterns("*sock*", "*.pid", "key-*"))
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        with _served(home) as daemon:
            rows = first_pages(daemon)
            rows += _open_dashboards(daemon, browser, effort, progress)
            with _dashboard(daemon, browser) as page, StdioServer(RELAY, daemon.env, PROJECT) as relay:
                relay.initialize()
                found, missing = addresses(page, _site(daemon), large.addresses)
                rows += [Row(f"{pattern}: no address is known to the benchmark", "") for pattern in missing]
                for number, address in enumerate(found):
                    progress("every page", number, len(found))
                    rows += _open(daemon, page, relay, address, max(5, min(ROUNDS, effort.loads))).rows()
        browser.close()
    return rows


def addresses(page: Page, site: str, large: Sequence[Address]) -> tuple[list[Address], list[str]]:
    """Return an address of every page that the site knows, all that are large, and the pages of which none is known."""
    linked = find_pages(page, site, files=True)
    found = [*(Address(pattern, "", path) for pattern, path in linked.items()), *VARIANTS, *large]
    found.sort(key=lambda one: one.pattern)
    return found, sorted(set(patterns()) - {one.pattern for one in found})


def first_pages(daemon: Served) -> list[Row]:
    """The first two pages that a daemon shows: the one that signs in, and the first screen.

    They are asked for when a browser has started, by when the daemon has prepared them."""
    link = _link(daemon)
    time.sleep(SETTLED_MS / 1000)  # until its browser is there
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port)
    began = time.perf_counter()
    connection.request("GET", link.removeprefix(_site(daemon)))
    answer = connection.getresponse()
    answer.read()
    signed_in = time.perf_counter() - began
    cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]
    seconds, _ = _get(connection, "/", cookie)
    connection.close()
    return [
        Row(f"the first page after a start: {what}", milliseconds(taken), "", taken * 1000, SERVER_MS, "ms")
        for what, taken in (("signing in", signed_in), ("/", seconds))
    ]


def _open(daemon: Served, page: Page, relay: StdioServer, address: Address, rounds: int) -> Opened:
    (cookie,) = page.context.cookies()
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port)
    page.goto("about:blank")  # an open page would load itself anew at every thought
    seconds, size, usable = [], 0, []
    for number in range(rounds):
        relay.call("thought", thought(number + 1, rounds))
        taken, answer = _get(connection, address.path, f"{cookie['name']}={cookie['value']}")
        seconds.append(taken)
        size = len(answer)
    connection.close()
    if answer.lstrip().startswith(b"<!"):
        for _ in range(IN_CHROMIUM):
            page.goto(_site(daemon) + address.path, wait_until="load")
            usable.append(page.evaluate("performance.getEntriesByType('navigation')[0].domInteractive"))
    return Opened(address, seconds, size, usable)


def _get(connection: http.client.HTTPConnection, path: str, cookie: str) -> tuple[float, bytes]:
    began = time.perf_counter()
    connection.request("GET", path, headers={"Cookie": cookie})
    answer = connection.getresponse()
    body = answer.read()
    taken = time.perf_counter() - began
    if answer.status != 200:
        raise ServerFailed(f"{path} was answered with status {answer.status}")
    return taken, body


@contextmanager
def _served(home: Path) -> Iterator[Served]:
    """A daemon that knows the agents of the story."""
    daemon = Served(home)
    daemon.env |= offered()
    with daemon:
        yield daemon


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
    context = browser.new_context()
    page = context.new_page()
    page.goto(_link(daemon))
    page.wait_for_url(f"{_site(daemon)}/")
    try:
        yield page
    finally:
        context.close()


def _link(daemon: Served) -> str:
    made = subprocess.run([HOLDFAST, "open", "--print"], env=daemon.env, capture_output=True, text=True, check=True)
    return made.stdout.strip()


def _site(daemon: Served) -> str:
    return f"http://127.0.0.1:{daemon.port}"


def _pid(daemon: Served) -> int:
    return daemon._process.pid


def _p95(times: Sequence[float]) -> float:
    return sorted(times)[max(0, -(-len(times) * 95 // 100) - 1)]
