"""Pages that stay current by themselves, and go on after the daemon was killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Opens, no_reload
from tests.installation import Installation
from tests.process.agent import Agent


@pytest.fixture
def holdfast(embedded: Installation, tmp_path: Path) -> Iterator[Installation]:
    """A daemon that is killed, with one target."""
    project = tmp_path / "homelab"
    project.mkdir()
    embedded.home.mkdir(mode=0o700)
    teams = {"homelab": {"project": str(project), "delivery": "hook"}}
    (embedded.home / "teams.json").write_text(json.dumps({"teams": teams}))
    embedded.settings["HOLDFAST_PORT"] = "0"
    embedded.serve()
    # The same port again: an open page knows no other.
    embedded.settings["HOLDFAST_PORT"] = embedded.address().rpartition(":")[2]
    yield embedded


def make_dead_letter(holdfast: Installation, project: Path, text: str) -> None:
    """A message that an agent takes and gives back until it is a dead letter."""
    assert holdfast.run("send", "homelab", "--id", "m1", text).returncode == 0
    for number in range(5):
        with Agent(holdfast, project, session=f"one-{number}") as agent:
            assert agent.call("take_message")["id"] == "m1"
            agent.call("finish_message", id="m1", outcome="later")


def test_a_card_appears_and_its_button_works_without_a_reload_and_over_a_killed_daemon(
    holdfast: Installation, opens: Opens, tmp_path: Path
) -> None:
    page = opens(holdfast)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Nothing waits for you")
    with no_reload(page):
        make_dead_letter(holdfast, tmp_path / "homelab", "Rotate the <b>certificates</b>")
        card = page.locator(".card").filter(has_text="homelab")
        expect(card).to_contain_text("Rotate the <b>certificates</b>")
        assert page.title() == "(1) Now · Holdfast"
        icon = page.locator("link[rel=icon]")
        expect(icon).to_have_attribute("href", "/icon/1.svg")

        page.locator("#find").fill("half a word")
        began, followed = int(str(page.locator("body").get_attribute("data-seen"))), list[str]()
        page.on("request", lambda one: followed.append(one.headers.get("last-event-id", "")))
        killed = holdfast.kill_daemon()
        expect(page.get_by_role("status").filter(has_text="Connection lost")).to_be_visible()
        holdfast.serve(another_than=killed)
        expect(page.get_by_role("status").filter(has_text="Reconnected")).to_be_visible()
        expect(page.locator("#find")).to_have_value("half a word")
        assert began < max(int(seen) for seen in followed if seen), "it goes on after the last event that it saw"

        card.get_by_role("button", name="Retry").press("Enter")
        expect(page.get_by_role("status").filter(has_text="queued for homelab again")).to_be_visible()
        expect(card).to_have_count(0)
        expect(page.locator("#cards")).to_be_focused()  # not another button, which a second Enter would press
        expect(heading).to_have_text("Nothing waits for you")
        assert page.title() == "Now · Holdfast"
    assert json.loads(holdfast.run("queue", "homelab", "--json").stdout)["targets"]["homelab"]["pending"] == 1


ANSWERED_LATE = """
const own = window.fetch;
window.fetch = async (place, request) => {
  const answer = await own(place, request);
  if (request?.method === "POST") await new Promise((done) => (window.answer = done));
  return answer;
};
"""


def test_the_focus_stays_where_it_was_if_the_card_goes_before_its_button_is_answered(
    holdfast: Installation, opens: Opens, tmp_path: Path
) -> None:
    page = opens(holdfast)
    make_dead_letter(holdfast, tmp_path / "homelab", "Rotate the certificates.")
    card = page.locator(".card").filter(has_text="homelab")
    expect(card).to_be_visible()
    page.evaluate(ANSWERED_LATE)
    card.get_by_role("button", name="Retry").press("Enter")
    expect(card).to_have_count(0)
    page.evaluate("window.answer()")
    expect(page.get_by_role("status").filter(has_text="queued for homelab again")).to_be_visible()
    expect(page.locator("#cards")).to_be_focused()


NOTICED = """
window.away = false;
window.noticed = [];
Object.defineProperty(Document.prototype, "hidden", { get: () => window.away });
window.Notification = class extends Notification {
  constructor(title, options) { super(title, options); window.noticed.push(options.body); }
};
"""
"""Notifications are the browser's own and are also written down; a headless tab is never hidden by another."""


def test_who_wants_it_is_notified_and_the_tab_carries_the_number_that_waits(
    holdfast: Installation, opens: Opens, tmp_path: Path
) -> None:
    page = opens(holdfast, permissions=["notifications"])
    page.add_init_script(NOTICED)
    page.reload()
    icon = page.locator("link[rel=icon]")
    expect(page).to_have_title("Now · Holdfast")
    page.get_by_role("button", name="Turn on notifications").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Turn off notifications")).to_be_focused()
    with no_reload(page):
        page.evaluate("window.away = true")
        make_dead_letter(holdfast, tmp_path / "homelab", "Renew the certificates.")
        expect(page).to_have_title("(1) Now · Holdfast")
        expect(icon).to_have_attribute("href", "/icon/1.svg")
        assert ">1</text>" in page.request.get(f"{holdfast.address()}/icon/1.svg").text()
        assert page.evaluate("window.noticed") == ["1 thing waits for you."]
        page.evaluate("window.away = false")
        page.get_by_role("button", name="Retry").focus()
        page.keyboard.press("Enter")
        expect(page).to_have_title("Now · Holdfast")
        expect(icon).to_have_attribute("href", "/icon/0.svg")
    queue = json.loads(holdfast.run("queue", "homelab", "--json").stdout)["targets"]["homelab"]
    assert queue["pending"] == 1, queue
