"""The real Claude Code comes back, by every way there is, and is told; it never calls a tool of Holdfast's."""

from __future__ import annotations

import asyncio
import signal
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient
from tests.agents.claude_code import ClaudeRun, claude_in, environment, kill_claude, play_claude, written_down
from tests.agents.scripted_model import Reply, Request, Script, ScriptedModel, steps, text, tool_use
from tests.installation import PATIENCE, Installation
from tests.process.agent import Agent
from tests.shared_daemon import Guest

from holdfast.agents.claude.settings import PURPOSES, installed
from holdfast.briefing.model import tokens
from holdfast.cli.control import ask_daemon
from holdfast.config import read_settings

BRIEFING = "Holdfast briefing"
TOOLS = ["Bash", "Read", "Write", "Edit", "Agent"]


class Workshop:
    """A project in which Claude Code works with Holdfast's session hooks, and nothing else of Holdfast."""

    def __init__(self, holdfast: Installation, place: Path, *, hooks: bool = True) -> None:
        self.holdfast = holdfast
        self.project = place / "fence"
        self.claude_home = place / "claude"
        self.project.mkdir()
        (self.project / "plan.md").write_text("Posts first, then boards.\n")
        if hooks:
            self.install()

    def install(self) -> None:
        """Install Holdfast's hooks here."""
        installed(self.project, PURPOSES["briefing"], home=str(self.holdfast.home)).write()

    def unfinished(self) -> list[dict[str, Any]]:
        """What the command line is told of unfinished work here."""
        args = {"project": str(self.project), "config": str(self.claude_home / ".claude")}
        settings = read_settings({}, home=str(self.holdfast.home))
        work: list[dict[str, Any]] = ask_daemon(settings, "unfinished", args)["work"]
        return work

    def work(
        self, script: Script, prompt: str, *, session: str | None = None, resume: str | None = None
    ) -> tuple[ClaudeRun, list[Request]]:
        """Claude Code is given a prompt here, and works to its end."""
        options = {"home": self.claude_home, "session_id": session, "resume": resume, "allowed_tools": TOOLS}
        return play_claude(script, self.project, prompt, **options)

    def plan(self) -> Reply:
        return tool_use("Read", {"file_path": str(self.project / "plan.md")})

    def post(self, name: str) -> Reply:
        return tool_use("Write", {"file_path": str(self.project / name), "content": "a post\n"})

    def kill_agent(self) -> None:
        """End Claude Code as a crash does: no hook is called any more."""
        kill_claude(self.project)

    def dying(self, _request: Request) -> Reply:
        written_down(self.claude_home / ".claude", "KeyError: 'nails'")
        self.kill_agent()
        return text("Nobody hears this.")


@pytest.fixture
def workshop(shared_embedded: Guest, tmp_path: Path) -> Workshop:
    return Workshop(shared_embedded, tmp_path)


def new_id() -> str:
    return str(uuid.uuid4())


def failing() -> Reply:
    code = "raise KeyError('nails')"
    return tool_use("Bash", {"command": f'python3 -c "{code}"', "description": "count"})


def test_an_agent_that_was_killed_is_told_of_at_the_next_plain_start(workshop: Workshop) -> None:
    old = new_id()
    script = steps(workshop.plan(), workshop.post("north.txt"), failing(), workshop.dying)
    run, _ = workshop.work(script, "Mend the fence, north side first.", session=old)
    assert run.exit_code == -signal.SIGKILL

    again, (first, *_) = workshop.work(steps(text("Shall I go on?")), "Hello.")
    assert not again.is_error, (again.ending, again.stderr)
    told = first.text
    assert BRIEFING in told and "was cut off" in told and "only if asked" in told
    assert "Mend the fence, north side first." in told
    assert "north.txt" in told and "plan.md" in told and "KeyError" in told
    assert f"claude --resume {old}" in told


def test_what_was_killed_before_holdfast_was_installed_is_found_and_continued(
    shared_embedded: Guest, tmp_path: Path
) -> None:
    place = tmp_path / "before"
    place.mkdir()
    workshop = Workshop(shared_embedded, place, hooks=False)
    old = new_id()
    while_at_work: list[dict[str, Any]] = []

    def dying(request: Request) -> Reply:
        written_down(workshop.claude_home / ".claude", "KeyError: 'nails'")
        while_at_work.extend(workshop.unfinished())
        return workshop.dying(request)

    script = steps(workshop.post("north.txt"), failing(), dying)
    run, _ = workshop.work(script, "Mend the fence, north side first.", session=old)
    assert run.exit_code == -signal.SIGKILL
    assert while_at_work == []

    (found,) = workshop.unfinished()
    assert (found["asked"], found["cut_off"], found["resumable"]) == ("Mend the fence, north side first.", True, True)
    assert found["resume"] == ["claude", "--resume", old] and found["directory"] == str(workshop.project)
    assert "Mend the fence" in shared_embedded.run("resume", str(workshop.project)).stdout

    workshop.install()
    _, (first, *_) = workshop.work(steps(text("Shall I go on?")), "Hello.")
    assert "was cut off" in first.text and f"claude --resume {old}" in first.text
    again, (request, *_) = workshop.work(steps(text("It is mended.")), "Go on.", resume=found["resume"][-1])
    assert not again.is_error and "Mend the fence, north side first." in request.text
    assert [one["session"] for one in workshop.unfinished()] == []


def test_a_first_start_in_a_project_is_told_nothing(workshop: Workshop) -> None:
    run, (first, *_) = workshop.work(steps(text("Hello.")), "Hello.")
    assert not run.is_error
    assert "Holdfast" not in first.text


def test_an_orderly_end_makes_an_offer_of_four_hundred_tokens(workshop: Workshop) -> None:
    workshop.work(steps(workshop.plan(), text("Read it.")), "Read the plan. " + "It is long. " * 400)
    _, (first, *_) = workshop.work(steps(text("Hello.")), "Hello.")
    assert "earlier work in this project" in first.text and "was cut off" not in first.text
    begin = first.text.index("[Holdfast briefing")
    told = first.text[begin:].partition("\n\n")[0].partition("</system-reminder>")[0]
    assert 50 < tokens(told) <= 400, told


@pytest.mark.parametrize("resumes", [pytest.param(3, id="small"), pytest.param(10, id="whole", marks=pytest.mark.long)])
def test_resumes_with_nothing_new_add_at_most_one_briefing(workshop: Workshop, resumes: int) -> None:
    session = new_id()
    workshop.work(steps(workshop.plan(), text("Read it.")), "Read the plan.", session=session)
    for _ in range(resumes):
        run, requests = workshop.work(steps(text("Yes.")), "Still there?", resume=session)
        assert not run.is_error, (run.ending, run.stderr)
    assert requests[-1].text.count(BRIEFING) <= 1


def test_a_resume_is_told_what_changed_meanwhile(workshop: Workshop) -> None:
    session = new_id()
    workshop.work(steps(text("Done.")), "Mend the fence, north side first.", session=session)
    with Agent(workshop.holdfast, workshop.project, session="somebody-else") as other:
        other.think("The posts on the south side are rotten.")
    _, requests = workshop.work(steps(text("I see.")), "Still there?", resume=session)
    assert "what changed" in requests[-1].text and "The posts on the south side are rotten." in requests[-1].text


def test_a_cleared_conversation_is_told_one_line(workshop: Workshop) -> None:
    async def converse(model: ScriptedModel) -> None:
        options = ClaudeAgentOptions(
            cwd=workshop.project,
            env=environment(model, workshop.claude_home),
            setting_sources=["user", "project", "local"],
            system_prompt={"type": "preset", "preset": "claude_code"},
        )
        async with ClaudeSDKClient(options) as client:
            for prompt in ("Mend the fence, north side first.", "/clear", "Hello."):
                await client.query(prompt)
                async for _ in client.receive_response():
                    pass

    with ScriptedModel(lambda _request: text("Very well.")) as model:
        asyncio.run(converse(model))
    told = model.requests[-1].text
    assert "Mend the fence" not in told and BRIEFING not in told
    assert told.count("what was done here before is kept") == 1


def test_after_a_compaction_the_session_is_told_what_it_did(workshop: Workshop) -> None:
    session = new_id()
    script = steps(workshop.plan(), workshop.post("north.txt"), failing(), text("Half done."))
    workshop.work(script, "Mend the fence, north side first.", session=session)
    workshop.work(lambda _request: text("They worked on something."), "/compact", resume=session)
    run, requests = workshop.work(steps(text("Going on.")), "Go on.", resume=session)
    assert not run.is_error, (run.ending, run.stderr)
    told = requests[-1].text
    assert "before the compaction" in told
    for fact in ("Mend the fence, north side first.", "north.txt", "plan.md", "KeyError"):
        assert fact in told, fact
    assert told.count(BRIEFING) == 1


def test_two_agents_at_work_in_one_project_are_not_offered_each_others_work(workshop: Workshop) -> None:
    first_session = new_id()
    started, over = threading.Event(), threading.Event()

    def at_work(_request: Request) -> Reply:
        started.set()
        assert over.wait(PATIENCE)
        return text("Done.")

    first = threading.Thread(
        target=workshop.work,
        args=(steps(workshop.plan(), at_work), "Mend the fence, north side first."),
        kwargs={"session": first_session},
    )
    first.start()
    try:
        assert started.wait(PATIENCE)
        run, (request, *_) = workshop.work(steps(text("Hello.")), "Hello.")
        assert not run.is_error, (run.ending, run.stderr)
        assert "north side first" not in request.text and f"--resume {first_session}" not in request.text
        assert "At work here now" in request.text and first_session in request.text
    finally:
        over.set()
        first.join()


def test_a_subagent_is_told_nothing(workshop: Workshop) -> None:
    workshop.work(steps(text("Done.")), "Mend the fence, north side first.")
    errand = {"description": "Look", "prompt": "Look at the boards.", "run_in_background": False}
    run, requests = workshop.work(steps(tool_use("Agent", errand), text("Rotten."), text("They rot.")), "Look around.")
    assert not run.is_error, (run.ending, run.stderr)
    assert BRIEFING in requests[0].text
    assert "Look at the boards." in requests[1].user_turns[-1]
    assert BRIEFING not in requests[1].text


def test_a_user_who_wants_no_briefing_gets_none(workshop: Workshop) -> None:
    workshop.work(steps(text("Done.")), "Mend the fence, north side first.")
    (workshop.project / ".holdfast").mkdir()
    (workshop.project / ".holdfast" / "briefing.toml").write_text('mode = "off"\n')
    _, (first, *_) = workshop.work(steps(text("Hello.")), "Hello.")
    assert "Holdfast" not in first.text


@pytest.fixture(autouse=True)
def _nothing_left(workshop: Workshop) -> Iterator[None]:
    yield
    assert claude_in(workshop.project) == []
