"""Texts that agents and others wrote are data: shown as text, whatever is in them."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import expect
from tests.browser.conftest import Opens
from tests.browser.hostile import SCRIPT, told_with_hostile_texts
from tests.installation import Installation


def test_hostile_texts_are_shown_as_text(embedded: Installation, opens: Opens, tmp_path: Path) -> None:
    told_with_hostile_texts(embedded, tmp_path)
    page = opens(embedded, viewport={"width": 1024, "height": 900})
    expect(page.locator(".card").filter(has_text="cut off").filter(has_text=SCRIPT)).to_have_count(1)
    expect(page.locator(".card").filter(has_text="not delivered").filter(has_text=SCRIPT)).to_have_count(1)
    expect(page.locator(".card").filter(has_text="{{ 7 * 7 }}{% raw %}")).to_have_count(2)
    expect(page.locator(".card").filter(has_text="\\u202egnp.exe")).to_have_count(2)
    expect(page.locator(".card").filter(has_text="\\u001b[2J")).to_have_count(2)
    expect(page.locator(".card").filter(has_text=re.compile("before.{0,6}after"))).to_have_count(1)
    expect(page.locator(".card").filter(has_text=re.compile("half .{1,6} of it"))).to_have_count(1)
    assert page.evaluate("window.hacked") is None
    assert page.locator("#content img, #content script").count() == 0
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert not wide, "a long word makes the page wider than the window"
    assert len(page.content()) < 150_000
