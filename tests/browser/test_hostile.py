"""Texts that agents and others wrote are data: shown as text, whatever is in them."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import expect
from tests.browser.conftest import Opens
from tests.browser.hostile import SCRIPT, TEXTS, told_with_hostile_texts
from tests.installation import Installation


def test_hostile_texts_are_shown_as_text(embedded: Installation, opens: Opens, tmp_path: Path) -> None:
    told_with_hostile_texts(embedded, tmp_path)
    page = opens(embedded, viewport={"width": 1024, "height": 900})
    expect(page.locator(".card").filter(has_text="cut off").filter(has_text=SCRIPT)).to_have_count(1)
    expect(page.locator(".card").filter(has_text="dead letter").filter(has_text=SCRIPT)).to_have_count(1)
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


def test_hostile_texts_in_a_break_and_in_what_an_agent_does_now_are_shown_as_text(
    embedded: Installation, opens: Opens, tmp_path: Path
) -> None:
    told_with_hostile_texts(embedded, tmp_path)
    page = opens(embedded, viewport={"width": 390, "height": 900})
    doing = page.locator(".row-action")
    expect(doing).to_have_count(len(TEXTS))
    expect(doing.filter(has_text="window.hacked")).to_have_count(1)
    marks = page.locator("a.mark-resumed, a.mark-compacted")
    paths = sorted({str(mark.get_attribute("href")) for mark in marks.all()})
    assert len(paths) == 2 * len(TEXTS)
    for path in paths:
        page.goto(f"{embedded.address()}{path}")
        expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("resumed with its|Compacted, and"))
        assert page.locator(".first-actions li").count() >= 3, path
        assert page.evaluate("window.hacked") is None, path
        assert page.locator("#content img, #content script").count() == 0, path
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        boxes = [text.bounding_box() for text in page.locator(".survival:visible text").all()]
        assert all(box and box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes), path
        assert len(page.content()) < 150_000, path
        assert not re.search("[\0\x1b\u202e\ud800-\udfff]", page.inner_text("body")), path
