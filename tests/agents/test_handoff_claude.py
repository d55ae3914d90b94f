"""The real Claude Code goes on with its work on another machine: other home, other configuration, other path."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tests.agents.claude_code import ClaudeRun, kill_claude, play_claude, written_down
from tests.agents.scripted_model import Reply, Request, Script, seen_so_far, steps, text, tool_use
from tests.installation import PATIENCE, Installation, wait_until
from tests.postgres import fresh_database, postgres_server

from holdfast.claude_settings import PURPOSES, installed

BRIEFING = "Holdfast briefing"


class Machine:
    """A machine with a Holdfast, a Claude Code and a checkout of the project, each at a place of its own."""

    def __init__(self, place: Path, project: str, database_url: str | None) -> None:
        self.holdfast = Installation(place / "holdfast")
        self.claude_home = place / "home"
        self.project = place / project
        self.project.mkdir(parents=True)
        (self.project / ".git").mkdir()
        (self.project / ".git" / "config").write_text('[remote "origin"]\n\turl = git@example.org:dev/fence.git\n')
        self.holdfast.settings["CLAUDE_CONFIG_DIR"] = str(self.claude_home / ".claude")
        if database_url is not None:
            self.holdfast.settings["HOLDFAST_DATABASE_URL"] = database_url
        installed(self.project, PURPOSES["briefing"], home=str(self.holdfast.home)).write()
        self.holdfast.serve()

    def work(
        self, script: Script, prompt: str, *, session: str | None = None, resume: str | None = None
    ) -> tuple[ClaudeRun, list[Request]]:
        """Claude Code is given a prompt here, and works to its end."""
        options = {
            "home": self.claude_home,
            "session_id": session,
            "resume": resume,
            "allowed_tools": ["Bash", "Write"],
        }
        return play_claude(script, self.project, prompt, **options)

    def handoff(self, archive: Path) -> None:
        done = self.holdfast.run("handoff", str(self.project), "-o", str(archive))
        assert done.returncode == 0, done.stderr

    def adopt(self, archive: Path) -> str:
        done = self.holdfast.run("adopt", str(archive), "--project", str(self.project))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def dying(self, _request: Request) -> Reply:
        """The agent ends as in a crash, after its work is on disk."""
        written_down(self.claude_home / ".claude", '"type":"tool_result"')
        kill_claude(self.project)
        return text("Nobody hears this.")


Machines = Callable[..., Machine]


@pytest.fixture
def database() -> Iterator[str]:
    """A store that machines share."""
    with postgres_server() as server:
        yield fresh_database(server)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """Makes machines, and sees that nothing of them is left."""
    made: list[Machine] = []

    def make(name: str, project: str, database_url: str | None = None) -> Machine:
        made.append(Machine(tmp_path / name, project, database_url))
        return made[-1]

    yield make
    for machine in made:
        machine.holdfast.close()


def where_am_i() -> Reply:
    return tool_use("Bash", {"command": "pwd", "description": "say where"})


def told_where(request: Request) -> Reply:
    return text(f"{len(request.user_turns)} turns, at work in {request.tool_results[-1].text}")


def test_a_conversation_goes_on_at_another_path_with_its_whole_context_and_comes_back(
    machines: Machines, tmp_path: Path
) -> None:
    ours, theirs, talk = machines("a", "work/fence"), machines("b", "deep/er/the fence"), str(uuid.uuid4())
    ours.work(seen_so_far, "The gate is green.", session=talk)
    ours.work(seen_so_far, "The post is oak.", resume=talk)
    ours.handoff(tmp_path / "there.handoff")
    assert f"claude --resume {talk}" in theirs.adopt(tmp_path / "there.handoff")

    run, requests = theirs.work(steps(where_am_i(), told_where), "Where are we?", resume=talk)
    assert not run.is_error, (run.ending, run.stderr)
    assert run.session_id == talk
    assert "The gate is green." in requests[0].text and "The post is oak." in requests[0].text
    assert f"at work in {theirs.project}" in run.result

    theirs.handoff(tmp_path / "back.handoff")
    ours.adopt(tmp_path / "back.handoff")
    back, requests = ours.work(seen_so_far, "And now?", resume=talk)
    assert not back.is_error, (back.ending, back.stderr)
    assert all(said in requests[0].text for said in ("The gate is green.", "The post is oak.", "Where are we?"))


def test_a_plain_start_on_the_other_machine_is_told_what_was_cut_off_on_this_one(
    machines: Machines, tmp_path: Path
) -> None:
    ours, theirs, talk = machines("a", "work/fence"), machines("b", "deep/er/fence"), str(uuid.uuid4())
    post = tool_use("Write", {"file_path": str(ours.project / "north.txt"), "content": "a post\n"})
    ours.work(steps(post, ours.dying), "Mend the fence, north side first.", session=talk)
    ours.handoff(tmp_path / "fence.handoff")
    theirs.adopt(tmp_path / "fence.handoff")
    run, (first, *_) = theirs.work(steps(text("Shall I go on?")), "Hello.")
    assert not run.is_error, (run.ending, run.stderr)
    assert BRIEFING in first.text
    assert "Mend the fence, north side first." in first.text and "north.txt" in first.text
    assert f"claude --resume {talk}" in first.text


@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
def test_with_one_postgres_a_plain_start_on_the_other_machine_is_told_without_an_archive(
    database: str, machines: Machines, killed: bool
) -> None:
    ours, theirs = machines("a", "work/fence", database), machines("b", "deep/er/fence", database)
    post = tool_use("Write", {"file_path": str(ours.project / "north.txt"), "content": "a post\n"})
    ours.work(steps(post, ours.dying if killed else text("The post stands.")), "Mend the fence, north side first.")
    wait_until(lambda: "north.txt" in ledgers(database), "the store is told what the agent did", 2 * PATIENCE)
    run, (first, *_) = theirs.work(steps(text("Shall I go on?")), "Hello.")
    assert not run.is_error, (run.ending, run.stderr)
    assert BRIEFING in first.text
    assert "Mend the fence, north side first." in first.text and "north.txt" in first.text
    assert ("was cut off" in first.text) == killed


def ledgers(database: str) -> str:
    with psycopg.connect(database) as connection:
        return "\n".join(row[0] for row in connection.execute("SELECT content FROM ledgers"))
