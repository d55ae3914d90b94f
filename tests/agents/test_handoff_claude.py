"""The real Claude Code goes on with its work on another machine: other home, other configuration, other path."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from tests.agents.claude_code import ClaudeRun, kill_claude, play_claude, written_down
from tests.agents.scripted_model import Reply, Request, Script, seen_so_far, steps, text, tool_use
from tests.installation import PATIENCE, Installation, wait_until
from tests.postgres import PostgresServer, fresh_database

from holdfast.agents.claude.settings import PURPOSES, installed

BRIEFING = "Holdfast briefing"


class Machine:
    """A machine with a Holdfast and a Claude Code, each at a place of its own."""

    def __init__(self, place: Path, database_url: str | None = None) -> None:
        self.place = place
        self.holdfast = Installation(place / "holdfast")
        self.claude_home = place / "home"
        if database_url is not None:
            self.holdfast.settings["HOLDFAST_DATABASE_URL"] = database_url
        else:
            self.holdfast.settings["CLAUDE_CONFIG_DIR"] = str(self.claude_home / ".claude")

    def checkout(self, path: str, remote: str) -> Checkout:
        """The project of a remote, checked out here."""
        return Checkout(self, self.place / path, remote)


class Checkout:
    """A project on a machine, in which Claude Code works with Holdfast's session hooks."""

    def __init__(self, machine: Machine, project: Path, remote: str) -> None:
        self.machine = machine
        self.holdfast = machine.holdfast
        self.project = project
        (project / ".git").mkdir(parents=True)
        (project / ".git" / "config").write_text(f'[remote "origin"]\n\turl = git@example.org:dev/{remote}.git\n')
        installed(project, PURPOSES["briefing"], home=str(self.holdfast.home)).write()

    def work(
        self, script: Script, prompt: str, *, session: str | None = None, resume: str | None = None
    ) -> tuple[ClaudeRun, list[Request]]:
        """Claude Code is given a prompt here, and works to its end."""
        options = {
            "home": self.machine.claude_home,
            "session_id": session,
            "resume": resume,
            "allowed_tools": ["Bash", "Write"],
        }
        return play_claude(script, self.project, prompt, **options)

    def post(self, name: str) -> Reply:
        return tool_use("Write", {"file_path": str(self.project / name), "content": "a post\n"})

    def handoff(self, archive: Path) -> str:
        """The fingerprint of whoever signed it."""
        done = self.holdfast.run("handoff", str(self.project), "-o", str(archive))
        assert done.returncode == 0, done.stderr
        return done.stdout.partition("Signed by this machine: ")[2].split()[0]

    def adopt(self, archive: Path, signer: str) -> str:
        done = self.holdfast.run("adopt", str(archive), "--project", str(self.project), "--trust-signer", signer)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def dying(self, request: Request) -> Reply:
        """The agent ends as in a crash, after its work is on disk."""
        written_down(self.machine.claude_home / ".claude", f'"tool_use_id":"{request.tool_results[-1].tool_use_id}"')
        kill_claude(self.project)
        return text("Nobody hears this.")


@dataclass(frozen=True, slots=True)
class Machines:
    """Two machines, between which a project goes to and fro: each test has one of its own."""

    a: Machine
    b: Machine
    database: str = ""

    def project(self, remote: str) -> tuple[Checkout, Checkout]:
        """A project that is checked out on both, at paths of their own."""
        return self.a.checkout(f"work/{remote}", remote), self.b.checkout(f"deep/er/the {remote}", remote)


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two machines that share nothing."""
    place = tmp_path_factory.mktemp("apart")
    yield from _served(Machines(Machine(place / "a"), Machine(place / "b")))


@pytest.fixture(scope="module")
def together(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two machines that share a store."""
    place, url = tmp_path_factory.mktemp("together"), fresh_database(postgres, keep=True)
    yield from _served(Machines(Machine(place / "a", url), Machine(place / "b", url), url))


@pytest.fixture(scope="module")
def cut_off(together: Machines) -> Checkout:
    """Where the other machine would go on with what an agent was killed over on the first.

    It is killed right after the daemons started: they look for such agents a while after that, and other tests run
    meanwhile.
    """
    ours, theirs = together.project("shed")
    ours.work(steps(ours.post("shed-north.txt"), ours.dying), "Mend the shed, north side first.")
    return theirs


def _served(machines: Machines) -> Iterator[Machines]:
    with ExitStack() as running:
        for machine in (machines.a, machines.b):
            running.callback(machine.holdfast.close)
            machine.holdfast.serve()
        yield machines


def where_am_i() -> Reply:
    return tool_use("Bash", {"command": "pwd", "description": "say where"})


def told_where(request: Request) -> Reply:
    return text(f"{len(request.user_turns)} turns, at work in {request.tool_results[-1].text}")


def test_a_conversation_goes_on_at_another_path_with_its_whole_context_and_comes_back(
    apart: Machines, tmp_path: Path
) -> None:
    ours, theirs = apart.project("fence")
    talk = str(uuid.uuid4())
    ours.work(seen_so_far, "The gate is green.", session=talk)
    ours.work(seen_so_far, "The post is oak.", resume=talk)
    signer = ours.handoff(tmp_path / "there.handoff")
    assert f"claude --resume {talk}" in theirs.adopt(tmp_path / "there.handoff", signer)

    run, requests = theirs.work(steps(where_am_i(), told_where), "Where are we?", resume=talk)
    assert not run.is_error, (run.ending, run.stderr)
    assert run.session_id == talk
    assert "The gate is green." in requests[0].text and "The post is oak." in requests[0].text
    assert f"at work in {theirs.project}" in run.result

    ours.adopt(tmp_path / "back.handoff", theirs.handoff(tmp_path / "back.handoff"))
    back, requests = ours.work(seen_so_far, "And now?", resume=talk)
    assert not back.is_error, (back.ending, back.stderr)
    assert all(said in requests[0].text for said in ("The gate is green.", "The post is oak.", "Where are we?"))


def test_a_plain_start_on_the_other_machine_is_told_what_was_cut_off_on_this_one(
    apart: Machines, tmp_path: Path
) -> None:
    ours, theirs = apart.project("gate")
    talk = str(uuid.uuid4())
    ours.work(steps(ours.post("north.txt"), ours.dying), "Mend the fence, north side first.", session=talk)
    theirs.adopt(tmp_path / "fence.handoff", ours.handoff(tmp_path / "fence.handoff"))
    run, (first, *_) = theirs.work(steps(text("Shall I go on?")), "Hello.")
    assert not run.is_error, (run.ending, run.stderr)
    assert BRIEFING in first.text
    assert "Mend the fence, north side first." in first.text and "north.txt" in first.text
    assert f"claude --resume {talk}" in first.text


def test_with_one_postgres_the_other_machine_goes_on_without_an_archive(cut_off: Checkout, together: Machines) -> None:
    ours, theirs = together.project("hedge")
    talk = str(uuid.uuid4())
    run, _ = ours.work(
        steps(ours.post("hedge-north.txt"), text("Half done.")), "Cut the hedge, north first.", session=talk
    )
    assert not run.is_error, (run.ending, run.stderr)
    told = _told_at_a_plain_start(theirs)
    assert "Cut the hedge, north first." in told and "hedge-north.txt" in told
    assert "was cut off" not in told
    assert f"claude --resume {talk}" in told

    run, (went_on, *_) = theirs.work(steps(text("Going on.")), "Go on.", resume=talk)
    assert not run.is_error, (run.ending, run.stderr)
    assert "Cut the hedge, north first." in went_on.text and "Half done." in went_on.text


def test_with_one_postgres_a_plain_start_on_the_other_machine_is_told_what_was_cut_off(
    cut_off: Checkout, together: Machines
) -> None:
    wait_until(lambda: "shed-north.txt" in ledgers(together.database), "the store is told of it", 2 * PATIENCE)
    told = _told_at_a_plain_start(cut_off)
    assert "Mend the shed, north side first." in told and "shed-north.txt" in told
    assert "was cut off" in told


def _told_at_a_plain_start(checkout: Checkout) -> str:
    run, (first, *_) = checkout.work(steps(text("Shall I go on?")), "Hello.")
    assert not run.is_error, (run.ending, run.stderr)
    assert BRIEFING in first.text
    return first.text


def ledgers(database: str) -> str:
    with psycopg.connect(database) as connection:
        return "\n".join(row[0] for row in connection.execute("SELECT content FROM ledgers"))
