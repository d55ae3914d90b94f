"""Now, with a story as its data: what it shows, what its buttons do, and who can use it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.conftest import Opens, no_reload, serious, sign_in_link
from tests.browser.story import Story, told
from tests.installation import wait_until


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    """The story, told once for the tests of this file."""
    with told() as story:
        yield story


def card(page: Page, kind: str) -> Locator:
    """The card of something that waits."""
    return page.locator(".card").filter(has_text=kind)


def test_the_first_sentence_and_a_row_for_each_project(story: Story, opens: Opens) -> None:
    page = opens(story.holdfast)
    expect(page.get_by_role("heading", level=1)).to_have_text(
        re.compile(r"2 agents at work, \d wait for you, 1 was cut off")
    )
    rows = page.locator(".row[data-key]")
    expect(rows).to_have_count(5)
    storefront = rows.filter(has_text="storefront")
    expect(storefront).to_contain_text(
        "A slow bank still books the refund twice: the retry makes a new key. I mend that."
    )
    expect(storefront).to_contain_text("min: python3 -I tests/test_refund.py")
    expect(storefront).to_contain_text("at work")
    expect(storefront.get_by_role("link", name=re.compile("compacted; was told: "))).to_have_count(1)
    expect(storefront.get_by_role("img", name=re.compile("commit [0-9a-f]{7,8}: Send the order's id"))).to_have_count(1)
    killed = rows.filter(has_text="billing-api").get_by_role("link", name=re.compile("cut off in the middle"))
    killed.focus()
    expect(killed.locator("text")).to_be_visible()
    expect(page.get_by_text(re.compile("^Verified: "))).to_contain_text("just now")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nobody_is_kept_from_using_it(story: Story, opens: Opens, axe: str, theme: str) -> None:
    for path in ("/", "/settings", "/projects/nothing"):
        page = opens(story.holdfast, path, color_scheme=theme)
        assert serious(page, axe) == []


def test_it_can_be_read_without_the_script_and_used(story: Story, opens: Opens) -> None:
    page = opens(story.holdfast, java_script_enabled=False)
    expect(page.get_by_role("heading", level=1)).to_contain_text("1 was cut off")
    failed = card(page, "ask failed")
    failed.get_by_role("button", name="Ask again").click()
    expect(page.get_by_role("status").filter(has_text="storefront was asked again")).to_be_visible()


def test_everything_is_reached_by_keyboard(story: Story, opens: Opens) -> None:
    page = opens(story.holdfast)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.textContent.trim()"))
    assert {"Allow", "Deny", "Resume", "Start fresh", "Retry", "Dismiss", "Sign out"} <= reached


def test_buttons_do_what_they_say(story: Story, opens: Opens) -> None:
    holdfast = story.holdfast
    page = opens(holdfast)
    with no_reload(page):
        permission = card(page, "permission")
        expect(permission).to_contain_text("-f migrations/0042_numbers.sql")
        permission.get_by_role("button", name="Allow").click()
        expect(page.get_by_role("status").filter(has_text="allowed to payments")).to_be_visible()
        expect(permission).to_have_count(0)

        question = card(page, "restarted in the middle")
        question.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("status").filter(has_text="It will resume")).to_be_visible()
        expect(question).to_have_count(0)

        work = card(page, "cut off in the middle of its work")
        expect(work).to_contain_text("claude --resume")
        work.get_by_role("button", name="Dismiss").click()
        expect(work).to_have_count(0)

    def answered() -> bool:
        return "Bash" in holdfast.run("teams", "history", "payments").stdout

    wait_until(answered, "the ask whose permission was given is answered")
    queue = json.loads(holdfast.run("queue", "homelab", "--json").stdout)["targets"]["homelab"]
    assert queue["pending"] == 1, queue


def test_who_may_only_look_sees_no_button(story: Story, opens: Opens) -> None:
    page = opens(story.holdfast, link=sign_in_link(story.holdfast, "--read"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("at work")
    shown = {button.text_content() for button in page.get_by_role("button").all() if button.is_visible()}
    assert shown <= {"Copy", "Turn on notifications", "Sign out"}
