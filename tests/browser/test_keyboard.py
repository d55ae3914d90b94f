"""Everything that can be done on a page is done by keyboard alone, with the script and without, and has its effect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, Request, expect
from tests.browser.conftest import Opens
from tests.browser.story import CURRENCIES, Story, told
from tests.dashboard_pages import actions, matches
from tests.installation import Installation, wait_until
from tests.process.agent import Agent

from holdfast.client import Client

MOST_TABS = 250
"""How often Tab is pressed to reach a control of the longest page."""
COMMAND = 'permission Bash {"command": "rm -r build"}'


class Keyboard:
    """Somebody without a mouse at one page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.done: set[str] = set()
        """The actions that were carried out."""
        page.on("request", self._note)

    def reach(self, control: Locator) -> None:
        """Press Tab until a control has the focus."""
        expect(control).to_have_count(1)
        for _ in range(MOST_TABS):
            self.page.keyboard.press("Tab")
            if control.evaluate("(one) => one === document.activeElement"):
                return
        pytest.fail(f"Tab does not reach {control}")

    def press(self, control: Locator) -> None:
        """Use a button, a link or what unfolds something."""
        self.reach(control)
        self.page.keyboard.press("Enter")

    def button(self, name: str, within: Locator | None = None) -> None:
        """Use the button with this name."""
        self.press((within or self.page.locator("body")).get_by_role("button", name=name, exact=True))

    def unfold(self, name: str, within: Locator | None = None) -> None:
        """Unfold what is named so."""
        self.press((within or self.page.locator("body")).locator("summary").filter(has_text=name))

    def write(self, label: str, text: str, within: Locator | None = None) -> None:
        """Put a text in the place of what a field holds."""
        self.reach((within or self.page.locator("body")).get_by_label(label, exact=True))
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.type(text)

    def said(self, text: str) -> None:
        """Wait until the page says what was done."""
        expect(self.page.locator("#said")).to_contain_text(text)

    def _note(self, request: Request) -> None:
        path = urlsplit(request.url).path
        if request.method == "POST":
            self.done.update(pattern for pattern in actions() if matches(pattern, path))


@pytest.fixture(params=[True, False], ids=["with the script", "without the script"])
def keyboard(request: pytest.FixtureRequest, opens: Opens) -> Iterator[tuple[Story, Keyboard]]:
    """A story of its own, because everything in it is changed."""
    with told() as story:
        story.holdfast.run("teams", "ask", "payments", COMMAND, "--thread", "tidy", "--timeout", "1")
        yield story, Keyboard(opens(story.holdfast, java_script_enabled=request.param))


def told_by(holdfast: Installation, *arguments: str) -> Any:
    """What a command says with --json."""
    return json.loads(holdfast.run(*arguments, "--json").stdout)


def test_every_action_of_every_page_works_by_keyboard_alone(keyboard: tuple[Story, Keyboard]) -> None:
    story, hands = keyboard
    _now(story.holdfast, hands)
    _project(story, hands)
    _session(story, hands)
    _teams(story.holdfast, hands)
    _settings(story.holdfast, hands)
    assert set(actions()) - hands.done == set()


def _now(holdfast: Installation, hands: Keyboard) -> None:
    """Answer everything that waits."""

    def card(text: str) -> Locator:
        return hands.page.locator(".card").filter(has_text=text)

    hands.button("Allow", card("psql staging"))
    hands.said("Bash is allowed to payments, this once.")
    hands.button("Deny", card("rm -r build"))
    hands.said("Bash is denied to payments, this once.")
    for thread, decided in (("main", "allowed"), ("tidy", "denied")):
        wait_until(
            lambda thread=thread, decided=decided: (  # type: ignore[misc]
                decided in holdfast.run("teams", "history", "payments", "--thread", thread).stdout
            ),
            f"what waited is {decided}",
        )
    hands.button("Resume", card("restarted in the middle"))
    hands.said("It will resume")
    hands.button("Retry", card("Also renew the certificates"))
    hands.said("queued for homelab again")
    (certificates,) = [one for one in told_by(holdfast, "queue", "homelab")["messages"] if one["id"] == "certs"]
    assert certificates["status"] == "pending"
    hands.button("Ask again", card(CURRENCIES))
    hands.said("storefront was asked again.")
    asks = [one for one in told_by(holdfast, "teams", "history", "storefront")["asks"] if CURRENCIES in str(one)]
    assert len(asks) == 2, asks
    unfinished = holdfast.run().stdout
    hands.button("Dismiss", card("cut off in the middle"))
    hands.said("That work is no longer mentioned.")
    assert "invoice numbers" in unfinished and "invoice numbers" not in holdfast.run().stdout


def _project(story: Story, hands: Keyboard) -> None:
    """Send, edit and cancel a message; pause the recording and resume it."""
    holdfast, page = story.holdfast, hands.page
    hands.press(page.get_by_role("link", name="Projects", exact=True))
    hands.press(page.get_by_role("link", name="homelab", exact=True))

    def messages() -> dict[str, str]:
        return {one["text"]: one["priority"] for one in told_by(holdfast, "queue", "homelab")["messages"]}

    hands.write("Message for its agent", "Reboot the box at night.")
    hands.reach(page.get_by_label("Priority"))
    page.keyboard.type("urgent")
    hands.button("Send")
    hands.said("queued for homelab")
    assert messages()["Reboot the box at night."] == "urgent"
    waiting = page.locator(".messages li").filter(has_text="Reboot")
    hands.unfold("Edit", waiting)
    hands.write("Text of the message", "Reboot it at four.", waiting)
    hands.button("Save", waiting)
    hands.said("The message is changed.")
    assert "Reboot it at four." in messages() and "Reboot the box at night." not in messages()
    hands.button("Cancel", waiting)
    hands.said("The message is cancelled.")
    assert "Reboot it at four." not in messages()
    with Agent(holdfast, story.project("homelab"), session="thinker") as agent:
        hands.button("Pause recording")
        hands.said("Recording is paused")
        assert agent.think("Not to be kept.")["paused"] is True
        hands.button("Resume recording")
        hands.said("Recording is resumed.")
        assert "paused" not in agent.think("To be kept.")


def _session(story: Story, hands: Keyboard) -> None:
    """Rename, pin, link and archive a reasoning session, and undo what can be undone."""
    holdfast, page = story.holdfast, hands.page
    with Agent(holdfast, story.project("kiosk"), session="other-thinker") as agent:
        agent.think("The frames are kept by a timer.")
    listed = ("sessions", "list", "--all", "--status", "all")
    (other,) = [one["id"] for one in told_by(holdfast, *listed) if "frames" in one["title"]]
    (session,) = [one["id"] for one in told_by(holdfast, *listed) if "charged twice" in one["title"]]

    def shown() -> dict[str, Any]:
        found: dict[str, Any] = next(one for one in told_by(holdfast, *listed) if one["id"] == session)
        return found

    hands.press(page.get_by_role("link", name="Sessions", exact=True))
    hands.press(page.get_by_role("link", name="Some orders are charged twice"))
    hands.unfold("Rename")
    hands.write("New name", "Charged twice")
    page.keyboard.press("Enter")
    hands.said("Renamed.")
    assert shown()["title"] == "Charged twice"
    for name, said, pinned in (("Pin", "Pinned", True), ("Unpin", "No longer pinned", False)):
        hands.button(name)
        hands.said(said)
        assert shown()["pinned"] is pinned
    hands.unfold("Link")
    hands.write("Id of the other session", other)
    page.keyboard.press("Enter")
    hands.said("Linked")
    with Agent(holdfast, story.project("kiosk"), session="third") as agent:
        assert [one["sessionId"] for one in agent.init("load_context", sessionId=other)["links"]] == [session]
    for name, status in (("Archive", "archived"), ("Restore", "active")):
        hands.button(name)
        hands.said(f"{name}d")
        assert shown()["status"] == status


def _teams(holdfast: Installation, hands: Keyboard) -> None:
    """Ask, cancel, ask in a conversation; compact, fork, reset, archive and restore it."""
    page = hands.page

    def conversation(thread: str = "main") -> dict[str, Any]:
        found: dict[str, Any] = told_by(holdfast, "teams", "history", "storefront", "--thread", thread)
        return found

    hands.press(page.get_by_role("link", name="Teams", exact=True))
    hands.reach(page.get_by_label("Team", exact=True))
    page.keyboard.type("storefront")
    hands.write("Question", "sleep 600")
    hands.button("Ask")
    page.wait_for_url("**/teams/conversations/*")
    hands.button("Cancel")
    hands.said("The ask to storefront is cancelled.")
    assert conversation()["asks"][0]["status"] == "cancelled"
    hands.write("Question", "What changed in the checkout today?")
    hands.button("Ask")
    hands.said("storefront was asked.")
    wait_until(lambda: conversation()["asks"][0]["status"] == "answered", "it is answered")
    before = conversation()["conversation"]
    hands.button("Compact")
    hands.said("The conversation was compacted.")
    expect(page.locator("#session_head")).to_contain_text("Since compaction")
    hands.unfold("Fork")
    hands.write("Name of the new thread", "a fork")
    page.keyboard.press("Enter")
    hands.said("Forked.")
    assert conversation("a fork")["conversation"]["sessionId"] != before["sessionId"]
    page.go_back()
    hands.unfold("Reset")
    hands.button("Reset")
    hands.said("Reset")
    assert conversation()["conversation"]["sessionId"] != before["sessionId"]
    for name, status in (("Archive", "archived"), ("Restore", "active")):
        hands.button(name)
        hands.said(f"{name}d".lower())
        assert conversation()["conversation"]["status"] == status


def _settings(holdfast: Installation, hands: Keyboard) -> None:
    """Revoke a key, a connection and a browser; sign out."""
    page, rest = hands.page, Client(holdfast.address(), holdfast.key())
    hands.press(page.get_by_role("link", name="Settings", exact=True))
    hands.button("Revoke", page.get_by_role("row").filter(has_text="status-screen"))
    hands.said("The key status-screen is revoked.")
    (key,) = [one for one in told_by(holdfast, "key", "list") if one["name"] == "status-screen"]
    assert key["revoked_at"] is not None
    hands.press(page.get_by_role("link", name="Connections", exact=True))
    hands.button("Revoke", page.get_by_role("row").filter(has_text="storefront"))
    hands.said("That connection is revoked")
    states = {str(one.root).rpartition("/")[2]: one.state for one in rest.sessions().sessions}
    assert states["storefront"] == "revoked" and states["kiosk"] != "revoked"
    hands.press(page.get_by_role("link", name="Access", exact=True))
    hands.button("Sign out", page.get_by_role("row").filter(has_text="this one"))
    expect(page.get_by_text("You are not signed in")).to_be_visible()
    assert told_by(holdfast, "audit")[0]["action"] == "sign_out.revoked"
    hands.unfold("Sign in with a key")
    hands.reach(page.get_by_label("Key:"))
    page.keyboard.type(holdfast.key())
    page.keyboard.press("Enter")
    page.wait_for_url(f"{holdfast.address()}/")
    assert told_by(holdfast, "audit")[0]["action"] == "sign_in"
    hands.button("Sign out")
    expect(page.get_by_text("You are not signed in")).to_be_visible()
    assert told_by(holdfast, "audit")[0]["action"] == "sign_out"
