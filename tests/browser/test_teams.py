"""Teams, a conversation and figures in a browser, with the story as their data."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Opens, no_reload, serious
from tests.browser.story import Story, told
from tests.installation import wait_until


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    """The story, told once for the tests of this file."""
    with told() as story:
        yield story


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nobody_is_kept_from_using_them(story: Story, opens: Opens, axe: str, theme: str) -> None:
    for path in ("/teams", "/teams/conversations/1", "/figures?period=day"):
        page = opens(story.holdfast, path, color_scheme=theme, viewport={"width": 390, "height": 800})
        assert serious(page, axe) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


def test_a_turn_is_asked_for_followed_and_cancelled_by_keyboard_alone(story: Story, opens: Opens) -> None:
    page = opens(story.holdfast, "/teams")
    page.get_by_label("Team", exact=True).focus()
    page.keyboard.type("storefront")
    page.keyboard.press("Tab")
    page.keyboard.type("sleep 600")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/teams/conversations/"))
    expect(page.get_by_text("at work").first).to_be_visible()
    with no_reload(page):
        cancel = page.get_by_role("button", name="Cancel")
        cancel.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_text("Cancelled.", exact=True)).to_be_visible()
        page.get_by_label("Question").fill("What changed in the checkout today?")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator(".turn").last).to_contain_text("Two commits")
    assert "Two commits" in story.holdfast.run("teams", "history", "storefront").stdout


def test_a_conversation_is_reset_without_the_script(story: Story, opens: Opens) -> None:
    page = opens(story.holdfast, "/teams", java_script_enabled=False)
    page.get_by_role("link", name=re.compile("storefront → payments")).click()
    expect(page.get_by_text("A repeated refund is booked twice.")).to_be_visible()
    page.get_by_text("Reset…").click()
    page.get_by_role("button", name="Reset").click()
    expect(page.get_by_role("status").filter(has_text="starts a new session")).to_be_visible()


def test_a_permission_is_allowed_where_it_is_shown(story: Story, opens: Opens) -> None:
    page = opens(story.holdfast, "/teams")
    with no_reload(page):
        card = page.locator(".card").filter(has_text="psql staging")
        card.get_by_role("button", name="Allow").click()
        expect(card).to_have_count(0)
    wait_until(lambda: "allowed" in story.holdfast.run("teams", "history", "payments").stdout, "it is answered")


def test_every_chart_has_its_table_and_its_file(story: Story, opens: Opens) -> None:
    page = opens(story.holdfast, "/figures?period=day")
    for figure in page.locator(".figure").filter(has=page.locator("svg")).all():
        figure.get_by_text("Table", exact=True).click()
        expect(figure.get_by_role("table")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV of Messages").click()
    assert download.value.path().read_text().startswith("Begins,Sent,Done,Waiting,Failed,Dead letter,Cancelled\n")
