"""The real Claude Code at work, killed, resumed and compacted, as a person sees it in the dashboard."""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.agents.scripted_model import steps, text, tool_use
from tests.agents.test_briefing_claude import Workshop, failing, new_id
from tests.installation import Installation, wait_until


class Dashboard:
    """A browser without a window."""

    def __init__(self, holdfast: Installation) -> None:
        link = holdfast.run("open", "--print").stdout.strip()
        self._http = httpx2.Client(base_url=holdfast.address(), follow_redirects=True)
        assert self._http.get(link).status_code == 200

    def page(self, path: str) -> str:
        """A page as it is read."""
        words = re.sub(r"<(script|style|svg)\b.*?</\1>|<[^>]+>", " ", self.source(path), flags=re.S)
        return " ".join(html.unescape(words).split())

    def source(self, path: str) -> str:
        answer = self._http.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    def marked(self, kind: str) -> str:
        """The page behind the mark of a kind on Now."""
        (path,) = set(re.findall(rf'<a href="([^"]+)" class="mark mark-{kind}"', self.source("/")))
        return self.page(html.unescape(path))

    def close(self) -> None:
        self._http.close()


@pytest.fixture
def workshop(holdfast: Installation, tmp_path: Path) -> Workshop:
    return Workshop(holdfast, tmp_path)


@pytest.fixture
def dashboard(holdfast: Installation) -> Iterator[Dashboard]:
    made = Dashboard(holdfast)
    yield made
    made.close()


def test_now_says_what_it_runs_at_this_moment(workshop: Workshop, dashboard: Dashboard) -> None:
    waits = tool_use("Bash", {"command": "until [ -e go ]; do sleep 0.05; done", "description": "wait"})
    script = steps(workshop.post("north.txt"), waits, text("The north side is done."))
    work = threading.Thread(target=workshop.work, args=(script, "Mend the fence."), kwargs={"session": new_id()})
    work.start()
    try:
        wait_until(lambda: "runs: until [ -e go ]" in dashboard.page("/"), "it is seen at work")
        assert "Mend the fence. runs: until [ -e go ]" in dashboard.page("/")
    finally:
        (workshop.project / "go").touch()
        work.join()
    over = dashboard.page("/")
    assert "The north side is done." in over and "runs: until" not in over


def test_a_kill_that_is_resumed_is_a_picture(workshop: Workshop, dashboard: Dashboard) -> None:
    session = new_id()
    script = steps(workshop.plan(), workshop.post("north.txt"), failing(), workshop.dying)
    workshop.work(script, "Mend the fence, north side first.", session=session)
    resumed = steps(workshop.post("south.txt"), text("Both sides are done."))
    run, _ = workshop.work(resumed, "Go on.", resume=session)
    assert not run.is_error, (run.ending, run.stderr)
    for page in (dashboard.marked("killed"), dashboard.marked("resumed")):
        assert "Killed, and resumed with its whole conversation" in page
        assert "Nothing of its conversation: it went on with all of it" in page
        assert re.search("asked Go on. .*changed south.txt .*said Both sides are done.", page)


def test_a_compaction_says_how_many_tokens_it_took(workshop: Workshop, dashboard: Dashboard) -> None:
    session = new_id()
    script = steps(workshop.plan(), workshop.post("north.txt"), failing(), text("Half done."))
    workshop.work(script, "Mend the fence, north side first.", session=session)
    workshop.work(lambda _request: text("They worked on something."), "/compact", resume=session)
    workshop.work(steps(workshop.plan(), text("Going on.")), "Go on.", resume=session)
    page = dashboard.marked("compacted")
    assert "Compacted, and it went on" in page
    lost = page[page.index("What was lost") : page.index("How it went on")]
    assert re.search(r"[\d,]+ tokens", lost) and "Changed file 1 1 none" in lost, lost
    assert re.search("asked Go on. .*read plan.md .*said Going on.", page)
