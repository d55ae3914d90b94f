"""What holds for every page, whichever there are: nobody is kept from using it, and nothing that is shown breaks it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.dashboard import addresses
from bench.dashboard_store import ASK_TEXT, EXPORT, Address
from playwright.sync_api import Page
from tests.browser.conftest import Opens, serious
from tests.browser.hostile import NAME, TEXTS, THREAD, told_with_hostile_texts
from tests.browser.story import Story, told
from tests.dashboard_pages import find_pages, patterns
from tests.installation import Installation

MOST_BYTES = 150_000


def hidden_width(page: Page) -> int:
    """How much wider the page is than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def unreachable(page: Page) -> list[str]:
    """Controls that Tab does not come to, however often it is pressed."""
    count = page.evaluate(
        """() => {
          const controls = "a[href], button, input:not([type=hidden]), select, textarea, summary";
          const takesFocus = (one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0;
          const open = [...document.querySelectorAll(controls)].filter(takesFocus);
          window.left = new Set(open);
          document.addEventListener("focusin", (event) => window.left.delete(event.target));
          document.activeElement?.blur();
          return open.length;
        }"""
    )
    for _ in range(count + 60):
        page.keyboard.press("Tab")
        if page.evaluate("window.left.size") == 0:
            break
    left: list[str] = page.evaluate("[...window.left].map((one) => one.outerHTML.slice(0, 160))")
    return left


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    """The story, told once for the tests of this file."""
    with told() as story:
        yield story


def test_every_page_is_reached_by_a_link(story: Story, opens: Opens) -> None:
    page = opens(story.holdfast)
    found = find_pages(page, story.holdfast.address())
    files = {pattern for pattern in patterns() if "/export/" in pattern or pattern.endswith((".csv", "/text"))}
    assert set(patterns()) - set(found) - files == set()


def test_the_benchmark_opens_every_page(story: Story, opens: Opens) -> None:
    page = opens(story.holdfast)
    of_its_store = [Address(pattern, "", "") for pattern in (EXPORT, ASK_TEXT)]
    found, missing = addresses(page, story.holdfast.address(), of_its_store)
    assert missing == [] and {one.pattern for one in found} == set(patterns())


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nobody_is_kept_from_using_any_page(story: Story, opens: Opens, axe: str, theme: str) -> None:
    page = opens(story.holdfast, color_scheme=theme)
    problems = {}
    for path in [*find_pages(page, story.holdfast.address()).values(), "/projects/nothing"]:
        page.goto(story.holdfast.address() + path)
        if found := serious(page, axe):
            problems[path] = found
    page.context.clear_cookies()
    page.goto(story.holdfast.address())
    assert (problems, serious(page, axe)) == ({}, [])


def test_every_page_has_the_same_content_without_the_script(story: Story, opens: Opens) -> None:
    scripted, plain = opens(story.holdfast), opens(story.holdfast, java_script_enabled=False)
    for path in find_pages(plain, story.holdfast.address()).values():
        told = []
        for page in (scripted, plain):
            page.goto(story.holdfast.address() + path)
            told.append(set(re.findall(r"[^\W\d_]+", page.inner_text("#content"))))
        assert told[0] - told[1] <= {"Copy"}, f"{path} needs the script"
        assert plain.locator("h1").is_visible(), path


def test_every_page_is_narrow_light_and_used_by_keyboard(story: Story, opens: Opens) -> None:
    page = opens(story.holdfast, viewport={"width": 390, "height": 844})
    address = story.holdfast.address()
    for path in find_pages(page, address).values():
        answer = page.goto(address + path)
        assert answer is not None and answer.status == 200, path
        assert len(answer.body()) <= MOST_BYTES, f"{path} has {len(answer.body())} bytes"
        assert hidden_width(page) <= 0, f"{path} scrolls sideways by {hidden_width(page)} px"
        assert unreachable(page) == [], path


def test_every_page_shows_hostile_texts_as_text(embedded: Installation, opens: Opens, tmp_path: Path) -> None:
    told_with_hostile_texts(embedded, tmp_path)
    page = opens(embedded, viewport={"width": 1024, "height": 900}, user_agent=NAME)
    address = embedded.address()
    shown, named = "", set()
    for path in find_pages(page, address).values():
        answer = page.goto(address + path)
        assert answer is not None and answer.status == 200, path
        assert len(answer.body()) <= MOST_BYTES, f"{path} has {len(answer.body())} bytes"
        assert page.evaluate("window.hacked") is None, path
        assert page.locator("#content img, #content script, #content iframe, #content [onclick]").count() == 0, path
        assert page.locator("footer").count() == 1, f"{path} is broken off"
        assert hidden_width(page) <= 0, f"a long word makes {path} wider than the window"
        shown += page.inner_text("body")
        if NAME in page.inner_text("#content"):
            named.add(path)
    assert {"/settings", "/settings/connections"} <= named
    assert THREAD[:30] in shown
    assert not re.search("[\0\x1b\u202e\ud800-\udfff]", shown)
    assert TEXTS["markup"][:30] in shown
