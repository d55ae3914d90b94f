"""Texts that agents and others wrote are data: shown as text, whatever is in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import expect
from tests.browser.conftest import Opens
from tests.installation import Installation
from tests.process.agent import Agent
from tests.process.histories import History

SCRIPT = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
TEXTS = {
    "markup": f'{SCRIPT}"><svg onload=window.hacked=1>{{{{ 7 * 7 }}}}{{% raw %}}',
    "word": "w" * 1_000_000,
    "direction": "\u202egnp.exe \u2066hidden\u2069 \u05d0\u05d1\u05d2",
    "terminal": "\x1b[2J\x1b]0;title\x07 red",
    "nul": "before\0after",
    "surrogate": "half \ud83d of it",
}


def test_hostile_texts_are_shown_as_text(embedded: Installation, opens: Opens, tmp_path: Path) -> None:
    place = tmp_path / "<b onclick=x>name&amp;"
    project = place / "<img src=x onerror=alert(1)>"
    project.mkdir(parents=True)
    embedded.home.mkdir(mode=0o700)
    teams = {"target": {"project": str(project), "delivery": "hook"}}
    (embedded.home / "teams.json").write_text(json.dumps({"teams": teams}))
    embedded.serve()
    history = History(embedded, tmp_path / "history")
    for name, text in TEXTS.items():
        folder = tmp_path / name
        folder.mkdir()
        session = history.session(name, folder)
        session.ask(text)
        session.say(text, stop_reason=None)
        session.call("Bash", {"command": text})
        session.hook("PreCompact", trigger="auto")
    with Agent(embedded, project, session="one") as agent:
        for name in ("markup", "direction", "terminal"):
            agent.call("save_task", current_task=TEXTS[name])
            assert embedded.run("send", "target", "--id", name, TEXTS[name]).returncode == 0
            for _ in range(5):
                agent.call("take_message")
                agent.call("finish_message", id=name, outcome="later")

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
