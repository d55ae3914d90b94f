"""`holdfast forget`, from outside: when it returns, nothing of it is in any file of the data directory."""

from __future__ import annotations

import json
import os
import pty
import random
import shutil
import subprocess
from pathlib import Path

import apsw
import pytest
from tests.installation import HOLDFAST, PATIENCE, Installation, wait_until
from tests.process.agent import Agent
from tests.process.hooks import left_behind, starts

SECRET = "xylophone"  # noqa: S105 - only a word nobody else uses
NOTE = "forgetting-sqlite.json"
SIZES = (1, 40, 300, 2_000, 4_000, 9_000, 30_000, 120_000)


@pytest.fixture
def secret_project(tmp_path: Path) -> Path:
    """A project whose very path is not to be found again."""
    project = tmp_path / f"{SECRET}-shop"
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    return project


@pytest.fixture
def neighbour(tmp_path: Path) -> Path:
    project = tmp_path / "neighbour"
    project.mkdir()
    return project


def text_of(number: int, size: int) -> str:
    """A thought with words that no other has; the smallest is one letter."""
    if size == 1:
        return "x"
    words = random.Random(number)
    text = f"{SECRET}{number:06}"
    while len(text) < size:
        text += f" {SECRET}{words.randrange(10**6)}"
    return text


def think_about(holdfast: Installation, project: Path, thoughts: int) -> str:
    """Record thoughts of all sizes, a branch, a title and tags; returns the session."""
    with Agent(holdfast, project, session="recorder") as agent:
        session = str(agent.think(f"{SECRET} begins")["sessionId"])
        for number in range(thoughts):
            agent.think(text_of(number, SIZES[number % len(SIZES)]))
        agent.think("aside", branchId=f"{SECRET}-branch", branchFromThought=1)
        agent.call("session", operation="rename", sessionId=session, title=f"All about {SECRET}")
        agent.call("session", operation="tag", sessionId=session, tags=[SECRET])
        agent.call("session", operation="search", query=SECRET)  # so that all of it is in the index
    return session


def remember(holdfast: Installation, project: Path, thoughts: int) -> str:
    """Have every capability keep something of the project: all there is to forget; returns its first session."""
    team = {"project": str(project), "delivery": "hook"}  # else a managed agent would begin with the message
    holdfast.home.mkdir(mode=0o700, exist_ok=True)
    (holdfast.home / "teams.json").write_text(json.dumps({"teams": {"fence": team}}))
    assert "fence" in holdfast.run("queue").stdout, "a daemon that runs already has seen it"
    session = think_about(holdfast, project, thoughts)
    with Agent(holdfast, project, session="recorder") as agent:
        agent.init("bind_root", mcpRootUri=str(project))
        agent.call("session_start", objective=f"Find {SECRET}")
        agent.call("save_task", current_task=f"Look for {SECRET}")
    with Agent(holdfast, project) as agent:  # not recognised: its calls are known by its relay alone
        agent.init("start_new", title=f"Another {SECRET}")
    assert holdfast.run("send", "fence", f"Hide {SECRET}").returncode == 0
    transcripts = holdfast.home.parent / "claude" / "projects" / "folder"
    transcripts.mkdir(parents=True)
    starts(holdfast, project, left_behind(transcripts, project, f"Mend the {SECRET}"))
    imported = holdfast.run("import", "claude", "--all", env={"CLAUDE_CONFIG_DIR": str(transcripts.parents[1])})
    assert imported.returncode == 0, imported.stderr
    assert SECRET in holdfast.run("resume", str(project)).stdout
    return session


def keep_copies(holdfast: Installation) -> list[Path]:
    """What Holdfast keeps of the store by itself, as it lies there after a while."""
    (holdfast.home / "backups").mkdir(exist_ok=True)
    names = ("backups/daily-1.db", "backups/before-0009-1.db", "holdfast.db.corrupt-1", "holdfast.db.before-restore-1")
    copies = [holdfast.home / name for name in names]
    assert holdfast.run("backup", str(copies[0])).returncode == 0
    for copy in copies[1:]:
        shutil.copy(copies[0], copy)
    report = holdfast.home / "salvage-1.txt"
    report.write_text(f"The session {SECRET} was lost.")
    with (holdfast.home / "daemon.log").open("a") as log:
        log.write(
            f"2026-11-17 10:00:00,000 WARNING x: {holdfast.home.parent}/{SECRET}-shop failed\nTraceback\n{SECRET}\n"
        )
        log.write("2026-11-17 10:00:01,000 INFO x: stays\n")
    return [*copies, report]


def assert_nothing_left(holdfast: Installation) -> None:
    for file in holdfast.home.rglob("*"):
        if file.is_file() and file.name != "teams.json":
            # Without its first letter: an index keeps what words have in common only once.
            assert SECRET[1:].encode() not in file.read_bytes(), file.name


def assert_no_word_in_the_index(holdfast: Installation) -> None:
    connection = apsw.Connection(str(holdfast.home / "holdfast.db"))
    for index in ("thoughts", "history"):
        connection.execute(f"CREATE VIRTUAL TABLE temp.{index}_words USING fts5vocab (main, '{index}_fts', 'row')")
        words = connection.execute(f"SELECT term FROM {index}_words").fetchall()
        assert [word for (word,) in words if SECRET in str(word)] == []
    connection.close()


@pytest.mark.parametrize("serving", [True, False], ids=["daemon", "no-daemon"])
@pytest.mark.parametrize("thoughts", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_nothing_of_a_forgotten_project_is_in_any_file_when_the_command_returns(
    embedded: Installation, secret_project: Path, neighbour: Path, serving: bool, thoughts: int
) -> None:
    with Agent(embedded, neighbour, session="neighbour") as other, Agent(embedded, secret_project, session="at-work"):
        other.think("stays")
        session = remember(embedded, secret_project, thoughts)
        copies = keep_copies(embedded)
        if not serving:
            assert embedded.run("stop").returncode == 0
        done = embedded.run("forget", str(secret_project), "--yes")
        assert done.returncode == 0, done.stderr + done.stdout
        assert_nothing_left(embedded)
        for what in (
            f"2 sessions, {thoughts + 2} thoughts",
            "1 protocol runs",
            "1 messages",
            "1 imported conversations",
        ):
            assert what in done.stdout
        for copy in copies:
            assert not copy.exists() and str(copy) in done.stdout
        assert f"Still named in {embedded.home / 'teams.json'}" in done.stdout
        assert "INFO x: stays" in (embedded.home / "daemon.log").read_text()

    with Agent(embedded, neighbour, session="neighbour") as other:
        assert other.init("load_context")["thoughts"][0]["thought"] == "stays"
    with Agent(embedded, secret_project, session="recorder") as agent:
        assert agent.init("load_context")["success"] is False
        assert agent.init("load_context", sessionId=session)["message"] == f"Session {session} not found"
    assert "Nothing is known" in embedded.run("resume", str(secret_project)).stdout
    assert embedded.run("stop").returncode == 0
    assert_no_word_in_the_index(embedded)
    assert embedded.run("verify").returncode == 0


def test_nothing_of_a_forgotten_session_is_in_any_file(embedded: Installation, neighbour: Path) -> None:
    with Agent(embedded, neighbour, session="one") as agent:
        kept = agent.think("stays")["sessionId"]
        gone = agent.init("start_new", title=f"About {SECRET}")["session"]["id"]
        for number in range(10):
            agent.think(text_of(number, SIZES[number % len(SIZES)]))
        copies = keep_copies(embedded)
        (embedded.home / "daemon.log").write_text("")  # a session's text is in no log; of a project its path may be
        done = embedded.run("forget", gone, "--yes", "--json")
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert (report["sessions"], report["thoughts"]) == (1, 10)
        assert sorted(report["files"]) == sorted(map(str, copies))
        assert_nothing_left(embedded)
        assert agent.init("load_context", sessionId=kept)["success"] is True


@pytest.mark.parametrize("finisher", ["daemon", "command"])
def test_a_removal_that_a_kill_cut_off_is_finished_by_the_next_daemon_or_command(
    embedded: Installation, secret_project: Path, finisher: str
) -> None:
    think_about(embedded, secret_project, 16)
    keep_copies(embedded)
    # Held until the kill: a reader of the log, because of which the last steps cannot be done.
    reader = apsw.Connection(str(embedded.home / "holdfast.db"))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM thoughts").fetchall()
    forgetting = subprocess.Popen(
        [str(HOLDFAST), "forget", str(secret_project), "--yes"],
        env=embedded.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until((embedded.home / NOTE).exists, "it is being forgotten")
    forgetting.kill()
    forgetting.wait(PATIENCE)
    embedded.kill_daemon()
    reader.close()
    assert (embedded.home / NOTE).exists()

    if finisher == "daemon":
        embedded.serve()
        wait_until(lambda: not (embedded.home / NOTE).exists(), "the next daemon has finished it")
        assert_nothing_left(embedded)
        assert embedded.run("stop").returncode == 0
    else:
        assert embedded.run("forget", str(secret_project), "--yes").returncode == 0
        assert not (embedded.home / NOTE).exists()
        assert_nothing_left(embedded)
    assert_no_word_in_the_index(embedded)
    assert embedded.run("verify").returncode == 0


def test_a_mistyped_name_removes_nothing_and_names_what_may_have_been_meant(
    embedded: Installation, secret_project: Path
) -> None:
    with Agent(embedded, secret_project, session="recorder") as agent:
        session = agent.think(f"{SECRET} stays")["sessionId"]
        copies = keep_copies(embedded)
        for wrong, *options in (
            [f"{secret_project}e"],
            [str(secret_project / "src"), "--yes"],
            [session[:-1], "--yes"],
        ):
            refused = embedded.run("forget", wrong, *options)
            assert refused.returncode == 1 and "Nothing was removed" in refused.stderr
            assert (session if wrong == session[:-1] else str(secret_project)) in refused.stderr, wrong
        assert all(copy.exists() for copy in copies)
        assert agent.init("load_context")["session"]["id"] == session


def test_what_would_go_is_shown_before_it_is_asked_for(embedded: Installation, secret_project: Path) -> None:
    with Agent(embedded, secret_project, session="recorder") as agent:
        agent.think(f"{SECRET} may go")
        agent.call("session_start", objective=f"Find {SECRET}")
    copies = keep_copies(embedded)
    unasked = embedded.run("forget", str(secret_project))
    assert unasked.returncode == 1 and "--yes" in unasked.stderr
    for answer, status in ((b"no\n", 1), (b"yes\n", 0)):
        ours, theirs = pty.openpty()
        try:
            os.write(ours, answer)
            asked = subprocess.run(
                [str(HOLDFAST), "forget", str(secret_project)],
                env=embedded.environment(),
                stdin=theirs,
                capture_output=True,
                text=True,
                timeout=2 * PATIENCE,
            )
        finally:
            os.close(ours)
            os.close(theirs)
        assert asked.returncode == status, asked.stderr
        for shown in ("1 sessions, 1 thoughts, 1 protocol runs", *map(str, copies)):
            assert shown in asked.stderr
        assert ("Nothing was removed." in asked.stdout) == bool(status)
        assert all(copy.exists() == bool(status) for copy in copies)
    assert_nothing_left(embedded)


@pytest.mark.parametrize("holdfast", ["postgres"], indirect=True)
def test_on_postgresql_a_forgotten_project_is_gone_too(holdfast: Installation, secret_project: Path) -> None:
    remember(holdfast, secret_project, 8)
    done = holdfast.run("forget", str(secret_project), "--yes")
    assert done.returncode == 0, done.stderr + done.stdout
    assert_nothing_left(holdfast)
    assert "Nothing is known" in holdfast.run("resume", str(secret_project)).stdout
    assert holdfast.run("verify").returncode == 0
