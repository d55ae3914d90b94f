"""The pages of projects: what they show of real sessions, queues and runs, and what their buttons do."""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from tests.contract.briefing_world import Agent, World
from tests.contract.conftest import Place
from tests.contract.dashboard_world import Dashboard, csrf_of, dashboard
from tests.contract.protocol_world import Repository

from holdfast.bridge.model import Outcome, Status
from holdfast.bridge.queue_changes import QueueChanges
from holdfast.bridge.service import Bridge
from holdfast.briefing.hooks import BriefingHooks
from holdfast.briefing.queries import breaks
from holdfast.briefing.service import Briefings
from holdfast.connections.keys import Scope
from holdfast.dashboard.urls import project_id, project_url
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.identity.project import RootSource, locate
from holdfast.protocol.errors import GateUnmet
from holdfast.protocol.service import Protocols
from holdfast.reasoning.queries import projects as project_queries
from holdfast.reasoning.service import Reasoning
from holdfast.teams.service import Teams

pytestmark = pytest.mark.anyio

HOSTILE = "<script>alert(1)</script> \u202etxt \x1b[31m"
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


class Scene:
    """A dashboard, and one project with agents."""

    def __init__(self, made: Dashboard, place: Place) -> None:
        self.dashboard = made
        self.project = place.home / "shop"
        folder = place.home / "claude" / "projects" / "shop"
        for path in (self.project, folder):
            path.mkdir(parents=True)
        briefings, reasoning = made.app.service(Briefings), made.app.service(Reasoning)
        hooks = BriefingHooks(briefings, "this-machine")
        connections = made.app.connections
        self.world = World(place, made.store, connections, reasoning, briefings, hooks, self.project, folder, set())

    @property
    def url(self) -> str:
        root = locate(str(self.project), RootSource.DIRECTORY)
        return project_url(root.key or root.uri)

    async def killed(self, request: str = "Mend the till.") -> Agent:
        """A session that is killed in the middle of its work."""
        agent = self.world.agent()
        await agent.starts()
        agent.asked(request)
        agent.used("Read", file_path=f"{self.project}/notes.md")
        agent.used("Edit", file_path=f"{self.project}/till.py", old_string="a", new_string="b")
        agent.used("TodoWrite", todos=[{"content": "test the till", "status": "pending"}])
        self.world.past(60_000)
        return agent


@pytest.fixture
async def scene(place: Place) -> AsyncIterator[Scene]:
    home = place.home
    teams = {"shop": {"project": str(home / "shop"), "agent": "echo"}}
    (home / "teams.json").write_text(json.dumps({"teams": teams}))
    async with dashboard(place) as made:
        scene = Scene(made, place)
        await made.app.service(Teams).refresh()
        yield scene


async def text_of(browser: httpx2.AsyncClient, url: str) -> str:
    """A page as it is read."""
    answer = await browser.get(url)
    assert answer.status_code == 200, answer.text
    words = re.sub(r"<(script|style|svg)\b.*?</\1>|<[^>]+>", " ", answer.text, flags=re.S)
    return " ".join(html.unescape(words).split())


async def test_every_project_is_listed_with_what_is_open_in_it(scene: Scene) -> None:
    async with scene.dashboard.signed_in() as browser:
        assert "not used yet" in await text_of(browser, "/projects"), "a team's project, before anybody worked there"
        agent = await scene.killed()
        await agent.hook("PreCompact", trigger="auto")
        await scene.dashboard.app.service(Bridge).send("shop", "Also the drawer.")
        told = await text_of(browser, "/projects")
        assert "1 project" in told and str(scene.project) in told
        assert "1 session cut off, 1 message waiting" in told
        for page in ("0", "999999", "x", "-1"):
            assert (await browser.get(f"/projects?page={page}")).status_code == 200


async def test_a_project_shows_what_an_agent_would_be_told_and_the_way_back(scene: Scene) -> None:
    agent = await scene.killed()
    async with scene.dashboard.signed_in() as browser:
        page = await text_of(browser, scene.url)
        assert 'The user asked last: "Mend the till."' in page
        assert f"cd {scene.project} && claude --resume {agent.id}" in page
        answer = await browser.get(scene.url)
        fields = dict(re.findall(r'name="(root|session)" value="([^"]+)"', answer.text))
        dismissed = await browser.post("/work/dismiss", data={"csrf": await csrf_of(browser), **fields})
        assert dismissed.status_code == 303
        assert "claude --resume" not in re.sub("`claude.*?`", "", await text_of(browser, scene.url))
    past = (await scene.world.briefings.recently(10**9)).sessions
    assert not any(one.cut_off for one in past)


async def test_a_kill_is_one_picture_with_what_was_known_told_and_done_since(scene: Scene) -> None:
    first = await scene.killed()
    second = scene.world.agent()
    told = await second.starts()
    second.asked("Go on.")
    second.used("Edit", file_path=f"{scene.project}/till.py", old_string="b", new_string="c")
    second.said("Done.")
    await second.hook("PreCompact", trigger="auto")
    for session in (first, second):
        async with scene.dashboard.signed_in() as browser:
            url = f"{scene.url}/sessions/{session.id}"
            page = await text_of(browser, url)
            assert "Killed, and the work went on" in page and "It went on with 1 file of these." in page
            assert " ".join(told.split()) in page, "word for word as the agent was told it"
            assert "till.py changed again" in page and "notes.md" in page and "test the till" in page
            lost = page[page.index("What was lost") : page.index("How it went on")]
            assert "Request 1 1 none Changed file 1 1 none File it had only read 1 1 none Open step 1 1 none" in lost
            went_on = page[page.index("How it went on") :]
            assert re.search("at once asked Go on. at once changed till.py .* said Done.", went_on)
            drawing = (await browser.get(url)).text
            assert drawing.count('<svg class="survival') == 2 and "wire-used" in drawing and "wire-lost" in drawing
            listed = await text_of(browser, scene.url)
            assert "Started after work was cut off , was told of the task" in listed


async def test_a_compaction_is_a_picture_too_and_stays_as_it_was(scene: Scene) -> None:
    agent = await scene.killed()
    told = await agent.starts("compact")
    scene.world.past(60_000)
    agent.asked("Now the drawer.")
    agent.used("Edit", file_path=f"{scene.project}/drawer.py", old_string="b", new_string="c")
    await agent.hook("PreCompact", trigger="auto")
    async with scene.dashboard.signed_in() as browser:
        (at,) = await scene.world.briefings.sessions.breaks(agent.id)
        page = await text_of(browser, f"{scene.url}/sessions/{agent.id}?break={at.row_id}")
        assert "Compacted, and it went on" in page and " ".join(told.split()) in page
        knew = page[page.index("What it knew") : page.index("What was lost")]
        assert "Mend the till." in knew and "drawer" not in knew


async def test_a_compaction_tells_in_tokens_and_things_what_it_took(scene: Scene) -> None:
    agent = await scene.killed("Find the leak.")
    for number in range(120):
        agent.used("Read", file_path=f"{scene.project}/a/long/way/down/to/this/source/file_{number:03}.py")
    agent.said("I looked at everything.", context=150_000)
    agent.asked("Then mend it.")
    agent.compacted(167_316)
    await agent.starts("compact")
    scene.world.past(12_000)
    agent.said("I go on with the till.", stop_reason="tool_use", context=9_000)
    agent.used("Bash", command="pytest tests/till.py")
    agent.used("Edit", file_path=f"{scene.project}/till.py", old_string="b", new_string="c")
    (at,) = await scene.world.briefings.sessions.breaks(agent.id)
    async with scene.dashboard.signed_in() as browser:
        page = await text_of(browser, f"{scene.url}/sessions/{agent.id}?break={at.row_id}")
        lost = page[page.index("What was lost") : page.index("How it went on")]
        assert "167,316 tokens" in lost and "Requests 2 2 none" in lost and "Changed file 1 1 none" in lost
        found = re.search(r"Files it had only read 121 (\d+) (\d+)", lost)
        assert found is not None and int(found[1]) + int(found[2]) == 121 and int(found[2]) > 0, lost
        went_on = page[page.index("How it went on") : page.index("What it was told")]
        actions = ["said I go on with the till.", "ran pytest tests/till.py", "changed till.py"]
        places = [went_on.index(f"12 s later {action}") for action in actions]
        assert places == sorted(places), "in order"


async def test_a_kill_that_is_resumed_is_a_picture_from_the_project_and_from_its_mark(scene: Scene) -> None:
    agent = await scene.killed()
    agent.calls("Bash", command="pytest tests/till.py")
    scene.world.past(240_000)
    assert await agent.starts("resume") == "", "it has its whole conversation"
    agent.asked("Go on.")
    agent.used("Edit", file_path=f"{scene.project}/till.py", old_string="b", new_string="c")
    agent.said("Done.")
    await agent.hook("SessionEnd", reason="prompt_input_exit")
    await agent.starts("resume")
    (at,) = await scene.world.briefings.sessions.breaks(agent.id)
    url = f"{scene.url}/sessions/{agent.id}?break={at.row_id}"
    async with scene.dashboard.signed_in() as browser:
        now = (await browser.get("/")).text
        marks = re.findall(rf'href="{re.escape(url)}" class="mark mark-(\w+)" aria-label="([^"]+)"', now)
        assert [kind for kind, _ in marks] == ["killed", "resumed"], "the kill, and how it went on; the end is neither"
        assert "resumed with its whole conversation" in marks[1][1]
        assert "Killed and resumed" in await text_of(browser, scene.url) and url in (await browser.get(scene.url)).text
        page = await text_of(browser, url)
        assert "Killed, and resumed with its whole conversation" in page and "resumed after 4 min" in page
        lost = page[page.index("What was lost") : page.index("How it went on")]
        assert "Nothing of its conversation" in lost and "got no answer: Bash: pytest tests/till.py" in lost
        assert re.search("asked Go on. .*changed till.py .*said Done.", page[page.index("How it went on") :])
        drawing = (await browser.get(url)).text
        assert "wire-used" in drawing and drawing.count('class="wire wire-lost"') == 2, "once in each drawing: the call"
        assert "No break in this time has both what was known and what was told" in await text_of(
            browser, "/figures?over=day"
        )


async def test_a_session_that_is_open_twice_or_was_copied_was_not_killed(scene: Scene) -> None:
    running = scene.world.living()
    await running.starts()
    running.asked("Mend the till.")
    await scene.world.agent(id=running.id).starts("resume")
    copied = scene.world.agent()
    copied.asked("Mend the till.")
    await copied.starts("resume")
    for one in (running, copied):
        assert await scene.world.briefings.sessions.breaks(one.id) == []


async def test_now_says_what_an_agent_is_doing_although_no_hook_told(scene: Scene) -> None:
    agent = scene.world.living()
    await agent.starts()
    async with scene.dashboard.signed_in() as browser:

        async def row() -> str:
            page = await text_of(browser, "/")
            return page[page.index("6 h ago now") : page.index("Verified:")]

        agent.asked("Mend the till.")
        assert "Mend the till." in (told := await row()) and "at work" in told
        agent.said("I run its tests first.", stop_reason="tool_use")
        call = agent.calls("Bash", command="pytest tests/till.py")
        scene.world.past(65_000)
        assert "I run its tests first. runs for 1 min: pytest tests/till.py" in await row()
        agent.answers(call)
        agent.used("Edit", file_path=f"{scene.project}/till.py", old_string="b", new_string="c")
        assert "I run its tests first. changed: till.py" in await row()
        agent.said("It is mended.")
        assert "It is mended." in (told := await row()) and "idle" in told and "changed: till.py" not in told
        agent.asked("And the drawer?")
        assert "And the drawer?" in (told := await row()) and "changed: till.py" not in told


async def test_a_session_that_waits_shows_what_the_next_agent_is_told(scene: Scene) -> None:
    agent = await scene.killed()
    await agent.hook("PreCompact", trigger="auto")
    async with scene.dashboard.signed_in() as browser:
        now = (await browser.get("/")).text
        assert f'href="{scene.url}/sessions/{agent.id}"' in now, "from its card and from its mark"
        page = await text_of(browser, f"{scene.url}/sessions/{agent.id}")
        assert "Cut off, and nothing is lost yet" in page and f"claude --resume {agent.id}" in page


async def test_the_text_is_kept_for_the_latest_breaks_of_a_project_alone(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaks, "KEPT", 2)
    agent = await scene.killed()
    for _ in range(4):
        scene.world.past(1_000)
        await agent.starts("compact")
    sessions = scene.world.briefings.sessions
    found = [await sessions.whole(one.row_id) for one in await sessions.breaks(agent.id)]
    assert [one is not None and one.told is not None for one in found] == [True, True, False, False]
    async with scene.dashboard.signed_in() as browser:
        oldest = (await sessions.breaks(agent.id))[-1].row_id
        page = await text_of(browser, f"{scene.url}/sessions/{agent.id}?break={oldest}")
        assert "no longer kept" in page


async def test_hostile_texts_and_secrets_are_shown_as_text_or_not_at_all(scene: Scene) -> None:
    agent = await scene.killed(f"{HOSTILE} use {SECRET}")
    await scene.dashboard.app.service(Bridge).send("shop", f"{HOSTILE} {SECRET}")
    second = scene.world.agent()
    await second.starts()
    stored = await scene.dashboard.store.read(lambda tx: tx.all("SELECT content FROM recoveries"))
    assert SECRET not in str(stored)
    key = await scene.dashboard.app.keys().create("phone", Scope.READ)
    async with scene.dashboard.browser() as reader, scene.dashboard.signed_in() as owner:
        await reader.post("/sign-in", data={"key": key})
        for url in ("/projects", scene.url, f"{scene.url}/sessions/{agent.id}"):
            for browser in (reader, owner):
                page = (await browser.get(url)).text
                assert "<script>alert" not in page and "\u202e" not in page and "\x1b" not in page
                assert not re.search(r"\sstyle=|\son\w+=", page)
            seen = (await reader.get(url)).text
            assert SECRET not in seen
            assert re.findall(r'<form[^>]*action="(/[^"]+)"', seen) == ["/find", "/sign-out"]
        for path in (f"{scene.url}/pause", "/messages/send", "/messages/cancel", "/messages/edit"):
            form = {"csrf": await csrf_of(reader), "target": "shop", "text": "x", "id": "x"}
            assert (await reader.post(path, data=form)).status_code == 403


async def test_messages_are_sent_edited_cancelled_and_sent_again(scene: Scene) -> None:
    bridge = scene.dashboard.app.service(Bridge)
    queue = QueueChanges(scene.dashboard.store, scene.dashboard.app.service(Teams).targets)
    async with scene.dashboard.signed_in() as browser:
        form = {"csrf": await csrf_of(browser), "target": "shop", "back": scene.url}
        sent = await browser.post("/messages/send", data=form | {"text": "Count the drawer.", "priority": "urgent"})
        assert sent.headers["location"] == scene.url
        (message,) = await queue.unfinished("shop", 10)
        assert (message.text, message.priority, message.sender) == ("Count the drawer.", 1, "the owner")
        assert "urgent" in await text_of(browser, scene.url)

        form |= {"id": message.id}
        await browser.post("/messages/edit", data=form | {"text": "Count it twice."})
        assert [one.text for one in await queue.unfinished("shop", 10)] == ["Count it twice."]
        await browser.post("/messages/cancel", data=form)
        assert await queue.unfinished("shop", 10) == []
        again = await browser.post("/messages/edit", data=form | {"text": "Too late."})
        assert again.status_code == 400 and "cancelled already" in again.text

        await bridge.send("shop", "Doomed.", message_id="doomed")
        caller = Caller(Transport.HTTP, Era.MODERN, None, principal="owner")
        for _ in range(5):
            await bridge.take(caller, "shop")
            await bridge.finish(caller, "doomed", Outcome.LATER, None)
        assert "dead letter" in await text_of(browser, scene.url)
        await browser.post("/messages/retry", data=form | {"id": "doomed"})
        (message,) = await queue.unfinished("shop", 10)
        assert message.status == Status.PENDING.value
        bad = await browser.post("/messages/send", data=form | {"text": "x", "priority": HOSTILE})
        assert bad.status_code == 422 and "<script>" not in bad.text


async def test_recording_is_paused_and_goes_on(scene: Scene) -> None:
    root = locate(str(scene.project), RootSource.DIRECTORY)
    async with scene.dashboard.signed_in() as browser:
        form = {"csrf": await csrf_of(browser)}
        for path, paused in (("pause", True), ("unpause", False)):
            assert (await browser.post(f"{scene.url}/{path}", data=form)).status_code == 303
            assert await scene.dashboard.store.read(lambda tx: project_queries.is_paused(tx, root, None)) is paused
            page = await text_of(browser, scene.url)
            assert ("Recording is paused" in page) is paused and ("Pause recording" in page) is not paused


async def test_a_run_shows_its_phases_and_what_blocks_it(scene: Scene) -> None:
    protocols = scene.dashboard.app.service(Protocols)
    repository, _ = Repository.begun(scene.project.parent / "governed", ("README.md", "hello\n"))
    root = locate(str(repository.path), RootSource.DIRECTORY)
    await protocols.start(root, "Tidy up.")
    with pytest.raises(GateUnmet):
        await protocols.advance(root, "WORKING")
    async with scene.dashboard.signed_in() as browser:
        page = await text_of(browser, project_url(root.key or root.uri))
        assert "Tidy up." in page and "WORKING : later" in page
        (held,) = await protocols.held()
        assert "here, and blocked" in page and "This gate blocks." in page and str(held.run.held_by) in page
        of_run = f"{project_url(root.key or root.uri)}/runs/{held.run.row_id}"
        assert f'href="{of_run}"' in (await browser.get(project_url(root.key or root.uri))).text
        page = await text_of(browser, of_run)
        assert "Tidy up." in page and "This gate blocks." in page and held.run.id in page and "governed" in page
        assert (await browser.get(f"{of_run}0")).status_code == 404


async def test_every_region_can_be_fetched_by_itself(scene: Scene) -> None:
    agent = await scene.killed()
    await agent.hook("PreCompact", trigger="auto")
    await scene.dashboard.app.service(Bridge).send("shop", "Also the drawer.")
    async with scene.dashboard.signed_in() as browser:
        for url in ("/projects", scene.url, f"{scene.url}/sessions/{agent.id}"):
            page = (await browser.get(url)).text
            regions = re.findall(r'id="(\w+)"[^>]* data-live', page)
            assert "head" in regions and len(regions) > 1
            part = await browser.get(url, headers={"Holdfast-Parts": " ".join(regions)})
            assert part.status_code == 200, part.text
            assert set(re.findall(r'id="(\w+)"[^>]* data-live', part.text)) == set(regions)


async def test_nothing_else_answers_to_a_projects_address(scene: Scene, tmp_path: Path) -> None:
    agent = await scene.killed()
    await agent.hook("PreCompact", trigger="auto")
    async with scene.dashboard.signed_in() as browser:
        root = locate(str(scene.project), RootSource.DIRECTORY).uri
        assert (await browser.get(f"/projects/{project_id(root)}")).status_code == 200
        for path in ("/projects/nothing", f"{scene.url}/sessions/nobody", f"{scene.url}/sessions/%3Cx%3E"):
            assert (await browser.get(path)).status_code == 404
