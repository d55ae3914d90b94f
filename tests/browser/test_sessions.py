"""A reasoning session and Find in a real browser: live, by keyboard, without the script, for everybody."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Opens, no_reload, serious
from tests.installation import Installation
from tests.process.agent import Agent


@dataclass
class World:
    """A daemon, and an agent that thinks: 40 steps, a branch of two from 3, and a revision of 2."""

    holdfast: Installation
    agent: Agent
    session: str

    def think(self, text: str, **fields: object) -> None:
        self.agent.call("thought", thought=text, nextThoughtNeeded=True, thoughtNumber=1, totalThoughts=1, **fields)

    def shown(self) -> dict[str, object]:
        """The session as the command line shows it."""
        told = self.holdfast.run("sessions", "list", "--all", "--status", "all", "--json").stdout
        found: dict[str, object] = next(one for one in json.loads(told) if one["id"] == self.session)
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("sessions")
    holdfast = Installation(place / "holdfast")
    project = place / "storefront"
    project.mkdir()
    try:
        holdfast.serve()
        with Agent(holdfast, project, session="one") as agent:
            made = World(holdfast, agent, "")
            for number in range(1, 41):
                made.think(f"Step {number}: look at the slow orders")
            made.think("What if the bank answers late?", branchId="late-bank", branchFromThought=3)
            made.think("Then the retry books again.", branchId="late-bank")
            made.think("Step 2 was wrong: they are not slow, they are booked twice.", isRevision=True, revisesThought=2)
            told = json.loads(holdfast.run("sessions", "list", "--all", "--json").stdout)
            made.session = told[0]["id"]
            yield made
    finally:
        holdfast.close()


def selected(page: Page) -> str:
    return page.locator(".thoughts [aria-current] .place").inner_text()


def test_the_tree_is_walked_by_keyboard_and_grows_without_a_reload(world: World, opens: Opens) -> None:
    page = opens(world.holdfast, f"/sessions/{world.session}", viewport={"width": 1280, "height": 900})
    text = page.locator("#thought .text")
    expect(text).to_contain_text("booked twice")
    expect(page.locator(".thoughts .fold")).to_have_count(1)
    with no_reload(page):
        world.think("So send the order's id as a key.")
        expect(text).to_contain_text("order's id as a key")
        for key, number in (("k", "43"), ("ArrowUp", "42"), ("ArrowLeft", "3"), ("ArrowRight", "41"), ("j", "42")):
            page.keyboard.press(key)
            expect(page.locator("#thought h2")).to_have_text(f"Thought {number}")
            assert selected(page) == number
        page.keyboard.press("Home")
        expect(text).to_contain_text("Step 1:")
        page.go_back()
        expect(page.locator("#thought h2")).to_have_text("Thought 42")
        page.locator(".thoughts .fold").first.click()
        expect(page.locator(".thoughts li")).to_have_count(44)
        page.keyboard.press("End")
        expect(page.locator("#thought h2")).to_have_text("Thought 44")
        page.keyboard.press("/")
        page.keyboard.type("jk")
        expect(page.locator("#find")).to_have_value("jk")
        expect(page.locator("#thought h2")).to_have_text("Thought 44")


def test_it_is_renamed_pinned_and_archived_in_place(world: World, opens: Opens) -> None:
    page = opens(world.holdfast, f"/sessions/{world.session}")
    with no_reload(page):
        page.get_by_text("Rename", exact=True).first.click()
        page.get_by_label("New name").fill("Orders <b>booked</b> twice")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Orders <b>booked</b> twice")
        page.get_by_role("button", name="Pin", exact=True).click()
        expect(page.locator(".badge").filter(has_text="pinned")).to_be_visible()
        assert (world.shown()["title"], world.shown()["pinned"]) == ("Orders <b>booked</b> twice", True)
        page.get_by_role("button", name="Archive").click()
        expect(page.get_by_role("button", name="Restore")).to_be_visible()
        assert world.shown()["status"] == "archived"
        page.get_by_role("button", name="Restore").click()
        expect(page.get_by_role("button", name="Archive")).to_be_visible()
        assert world.shown()["status"] == "active"
        page.get_by_text("Export", exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("link", name="Markdown").click()
        assert "## Thought 43, revises 2" in Path(download.value.path()).read_text()


def test_results_come_as_one_types(world: World, opens: Opens) -> None:
    page = opens(world.holdfast)
    page.keyboard.press("/")
    page.keyboard.type("retry")
    page.keyboard.press("Enter")
    page.wait_for_url("**/find?q=retry")
    hits = page.locator("#results li")
    expect(hits).to_have_count(1)
    with no_reload(page):
        page.locator("#find").fill("late bank")
        expect(hits.locator("mark").first).to_have_text("bank")
        page.locator("#find").press_sequentially(" nowhere")
        expect(page.get_by_role("status").filter(has_text="No results")).to_be_visible()
        page.locator("#find").fill("retry")
        expect(hits.locator("mark")).to_have_text("retry")
        expect(page).to_have_url(f"{world.holdfast.address()}/find?q=retry")
    hits.get_by_role("link").click()
    expect(page.locator("#thought h2")).to_have_text("Thought 42")


def test_it_can_be_read_and_walked_without_the_script(world: World, opens: Opens) -> None:
    page = opens(world.holdfast, f"/sessions/{world.session}?t=2", java_script_enabled=False)
    page.get_by_role("link", name="Next", exact=True).click()
    expect(page.locator("#thought h2")).to_have_text("Thought 3")
    page.get_by_role("link", name="late-bank").first.click()
    expect(page.locator("#thought .text")).to_contain_text("answers late")
    page.goto(f"{world.holdfast.address()}/find")
    page.locator("#find").fill("booked")
    page.get_by_role("button", name="Find").click()
    expect(page.locator("#results mark").first).to_have_text("booked")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nobody_is_kept_from_using_it(world: World, opens: Opens, axe: str, theme: str) -> None:
    page = opens(world.holdfast, color_scheme=theme, viewport={"width": 390, "height": 800})
    for path in (f"/sessions/{world.session}", f"/sessions/{world.session}?t=3", "/sessions", "/find?q=bank", "/find"):
        page.goto(f"{world.holdfast.address()}{path}")
        assert serious(page, axe) == [], path
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{path} is wider than the window"


def test_a_long_session_is_jumped_through_by_its_map_and_by_number(world: World, opens: Opens, tmp_path: Path) -> None:
    with Agent(world.holdfast, tmp_path, session="long") as agent:
        for number in range(1, 161):
            text = f"Row {number} of the ledger"
            agent.call("thought", thought=text, nextThoughtNeeded=True, thoughtNumber=number, totalThoughts=160)
    told = json.loads(world.holdfast.run("sessions", "list", "--all", "--json").stdout)
    long = next(one["id"] for one in told if one["title"].startswith("Row 1"))
    page = opens(world.holdfast, f"/sessions/{long}")
    heading, here = page.locator("#thought h2"), page.locator(".minimap-here")
    expect(here).to_have_attribute("x", re.compile("^99"))
    with no_reload(page):
        place = page.locator(".minimap").bounding_box()
        assert place is not None
        page.mouse.click(place["x"] + place["width"] * 0.106, place["y"] + 20)
        expect(heading).to_have_text("Thought 17")
        expect(here).to_have_attribute("x", "10.0%")
        page.keyboard.press("j")
        expect(heading).to_have_text("Thought 18")
    page.get_by_label("Go to").focus()
    page.keyboard.type("120")
    page.keyboard.press("Enter")
    expect(heading).to_have_text("Thought 120")
    expect(page.locator("#thought .text")).to_have_text("Row 120 of the ledger")
