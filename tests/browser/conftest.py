"""A real Chromium before a real daemon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.browser.chromium import FLAGS, MISSING, axe_source, find
from tests.installation import PATIENCE, Installation

expect.set_options(timeout=PATIENCE * 1000)

Opens = Callable[..., Page]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for the tests of a file. Not for all of them: async tests cannot run beside Playwright's loop."""
    program = find()
    if program is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        browser.close()


class Watched:
    """What a page must never do: break its policy, fail in its script, or load anything from elsewhere."""

    def __init__(self, page: Page, address: str) -> None:
        self.problems: list[str] = []
        self._address = address
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        page.on("request", self._request)

    def _console(self, message: Any) -> None:
        # A daemon that is away on purpose is no fault of the page.
        if message.type == "error" and "net::ERR_" not in message.text and "status of" not in message.text:
            self.problems.append(f"console: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self._address, "data:", "about:")):
            self.problems.append(f"loads {request.url}")


@pytest.fixture
def opens(chromium: Browser) -> Iterator[Opens]:
    """Open the dashboard of an installation, signed in, in a window of its own; its page is watched."""
    contexts, watched = [], []

    def open_dashboard(holdfast: Installation, path: str = "/", *, link: str | None = None, **options: Any) -> Page:
        context = chromium.new_context(**options)
        context.set_default_timeout(PATIENCE * 1000)
        contexts.append(context)
        page = context.new_page()
        watched.append(Watched(page, holdfast.address()))
        page.goto(link or sign_in_link(holdfast))
        page.wait_for_url(f"{holdfast.address()}/")
        if path != "/":
            page.goto(f"{holdfast.address()}{path}")
        return page

    yield open_dashboard
    for context in contexts:
        context.close()
    assert [problem for one in watched for problem in one.problems] == []


def sign_in_link(holdfast: Installation, *arguments: str) -> str:
    """The link of `holdfast open`."""
    made = holdfast.run("open", "--print", *arguments)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@contextmanager
def no_reload(page: Page) -> Iterator[None]:
    """The page stays the same document."""
    page.evaluate("window.untouched = true")
    yield
    assert page.evaluate("window.untouched") is True, "the page was loaded again"


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    source = axe_source()
    if source is None:
        pytest.skip("axe-core cannot be fetched from npm: accessibility is NOT tested")
    return source


def serious(page: Page, axe: str) -> list[str]:
    """What axe-core finds on a page that keeps somebody from using it."""
    page.evaluate(axe)  # a script tag would be refused by the policy
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes']]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
