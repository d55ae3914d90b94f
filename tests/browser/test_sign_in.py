"""Signing in and out, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.conftest import Opens, no_reload, sign_in_link
from tests.installation import Installation


@pytest.fixture(scope="module")
def holdfast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A daemon for the tests of this file: who is signed in is visible to all of them."""
    installation = Installation(tmp_path_factory.mktemp("sign-in") / "holdfast")
    try:
        installation.serve()
        yield installation
    finally:
        installation.close()


def test_a_link_signs_one_browser_in_and_the_second_is_refused(
    holdfast: Installation, opens: Opens, chromium: Browser
) -> None:
    link = sign_in_link(holdfast)
    page = opens(holdfast, link=link)
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing waits for you")
    assert page.evaluate("document.cookie") == "", "a script can read the cookie"
    second = chromium.new_context()
    stranger = second.new_page()
    stranger.goto(link)
    expect(stranger.get_by_role("alert")).to_contain_text("was used, or is too old")
    stranger.goto(holdfast.address())
    expect(stranger.get_by_text("You are not signed in")).to_be_visible()
    second.close()


def test_a_link_in_another_sites_page_signs_in_too(holdfast: Installation, chromium: Browser, tmp_path: Path) -> None:
    """A strict cookie is not sent with a redirect that another site began."""
    context = chromium.new_context()
    page = context.new_page()
    (tmp_path / "mail.html").write_text(f'<a href="{sign_in_link(holdfast)}">open</a>')
    page.goto((tmp_path / "mail.html").as_uri())
    page.get_by_text("open").click()
    page.wait_for_url(f"{holdfast.address()}/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing waits for you")
    context.close()


def test_who_signs_out_is_out(holdfast: Installation, opens: Opens) -> None:
    page = opens(holdfast)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are not signed in")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("You are not signed in")).to_be_visible()


def test_a_revoked_browser_sees_nothing_more_at_once(holdfast: Installation, opens: Opens) -> None:
    mine, other = opens(holdfast, "/settings"), opens(holdfast, "/settings", user_agent="The other browser")
    expect(mine.get_by_role("row").filter(has_text="this one")).to_have_count(1)
    row = mine.get_by_role("row").filter(has_text="The other browser")
    with no_reload(mine):
        row.get_by_role("button", name="Sign out").click()
        expect(mine.get_by_role("status").filter(has_text="signed out")).to_be_visible()
        expect(row).to_have_count(0)
    expect(other.get_by_text("You are not signed in")).to_be_visible()
    expect(mine.get_by_role("heading", name="Settings", exact=True)).to_be_visible()


def test_a_key_that_may_only_look_signs_in_and_finds_no_button(holdfast: Installation, chromium: Browser) -> None:
    key = holdfast.run("key", "create", "phone").stdout.strip()
    context = chromium.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(holdfast.address())
    page.get_by_text("No terminal here?").click()
    page.get_by_label("A key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{holdfast.address()}/")
    page.goto(f"{holdfast.address()}/settings")
    expect(page.get_by_text("to look only").first).to_be_visible()
    expect(page.get_by_role("button", name="Sign out")).to_have_count(1)
    context.close()


def test_sign_ins_are_in_the_audit(holdfast: Installation, opens: Opens) -> None:
    opens(holdfast)
    assert json.loads(holdfast.run("audit", "--json").stdout)[0]["action"] == "sign_in"
