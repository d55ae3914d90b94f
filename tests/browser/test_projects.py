"""Projects and how their work survived, in a browser: read, live, by keyboard, and with the effect read back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Opens, no_reload, serious
from tests.browser.story import Story, told


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    """The story, told once for the tests of this file."""
    with told() as story:
        yield story


def project(page: Page, name: str) -> None:
    """Go to a project, as one does."""
    page.get_by_role("link", name="Projects").click()
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def test_a_kill_is_understood_and_used_by_everybody(story: Story, opens: Opens, axe: str) -> None:
    for theme, width in (("light", 1440), ("dark", 390)):
        page = opens(story.holdfast, color_scheme=theme, viewport={"width": width, "height": 900})
        mark = page.locator(".row").filter(has_text="kiosk").get_by_role("link", name=re.compile("cut off in the mid"))
        mark.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Killed, and the work went on")
        figure = page.get_by_role("group", name=re.compile("It went on with 4 files of these"))
        expect(figure.locator("svg:visible")).to_have_count(1)
        expect(figure.locator("svg:visible .wire-used").first).to_be_visible()
        assert serious(page, axe) == []
        for name in ("storefront", "homelab"):
            project(page, name)
            assert serious(page, axe) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width, "it scrolls sideways"


def test_a_kill_that_was_resumed_is_reached_from_its_mark_and_from_its_project(
    story: Story, opens: Opens, axe: str
) -> None:
    page = opens(story.holdfast, viewport={"width": 1024, "height": 900})
    mark = page.locator(".row").filter(has_text="docs-site").get_by_role("link", name=re.compile("cut off in the mid"))
    mark.focus()
    page.keyboard.press("Enter")
    title = "Killed, and resumed with its whole conversation"
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page.locator(".first-actions li").first).to_contain_text("Your terminal was closed. Go on.")
    expect(page.get_by_text("Only what it was doing got no answer: Bash: npx linkinator")).to_be_visible()
    assert serious(page, axe) == []
    page.goto(story.holdfast.address())
    project(page, "docs-site")
    page.get_by_role("link", name="Killed and resumed").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(title)


def test_a_compaction_says_what_it_took_and_what_the_agent_did_first(story: Story, opens: Opens, axe: str) -> None:
    for theme, width in (("light", 390), ("dark", 1440)):
        page = opens(story.holdfast, color_scheme=theme, viewport={"width": width, "height": 900})
        row = page.locator(".row").filter(has_text="storefront")
        row.get_by_role("link", name=re.compile("compacted; was told")).locator(".mark-place").click()
        lost = page.get_by_role("table", name="What it knew, and how much of it was told")
        read = lost.get_by_role("row").filter(has_text="Files it had only read").get_by_role("cell")
        had, told, gone = (int(cell.inner_text()) for cell in read.all())
        assert had == told + gone and gone > 0
        expect(page.get_by_text(re.compile("^Its conversation until then"))).to_contain_text(
            re.compile(r"\d{3},\d{3} tokens")
        )
        kinds = page.locator(".first-actions .action-kind").all_inner_texts()
        assert kinds[:3] == ["said", "read", "read"] and len(kinds) == 6
        labels = page.locator(".survival:visible text").all()
        boxes = [box for label in labels if (box := label.bounding_box()) is not None]
        assert min(box["x"] for box in boxes) >= 0 and max(box["x"] + box["width"] for box in boxes) <= width
        assert serious(page, axe) == []


def test_a_message_is_sent_edited_and_cancelled_while_the_page_stays(story: Story, opens: Opens) -> None:
    holdfast = story.holdfast
    page = opens(holdfast)
    project(page, "homelab")
    waiting = page.locator(".messages li").filter(has_text="waiting")

    def queued() -> int:
        return int(json.loads(holdfast.run("queue", "homelab", "--json").stdout)["targets"]["homelab"]["pending"])

    with no_reload(page):
        page.get_by_label("Message for its agent").fill("Reboot the box at night.")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(waiting).to_contain_text("Reboot the box at night.")
        assert queued() == 1
        waiting.get_by_text("Edit").click()
        waiting.get_by_label("Text of the message").fill("Reboot it at four.")
        waiting.get_by_role("button", name="Save").click()
        expect(waiting.locator("p").last).to_have_text("Reboot it at four.")
        holdfast.run("send", "homelab", "From the terminal.")
        expect(waiting.filter(has_text="From the terminal.")).to_have_count(1)
        waiting.filter(has_text="Reboot").get_by_role("button", name="Cancel").click()
        expect(waiting).to_have_count(1)
        assert queued() == 1
        page.get_by_role("button", name="Pause recording").click()
        expect(page.get_by_text("Recording is paused: nothing is stored for this project, and")).to_be_visible()
        page.get_by_role("button", name="Resume recording").click()
        expect(page.get_by_text("Recording is paused: nothing is stored for this project, and")).to_have_count(0)
