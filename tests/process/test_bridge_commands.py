"""`holdfast send`, `pull`, `queue` and `tail`, as people and scripts use them."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from tests.installation import HOLDFAST, PATIENCE, Installation
from tests.process.agent import Agent
from tests.process.hooks import call_hook


def write_targets(installation: Installation, place: Path) -> dict[str, Path]:
    """Two targets with a project each, whose messages Holdfast itself never works on."""
    projects = {name: place / name for name in ("homelab", "felt")}
    for project in projects.values():
        project.mkdir(parents=True)
    installation.home.mkdir(mode=0o700, exist_ok=True)
    teams = {name: {"project": str(project), "delivery": "hook"} for name, project in projects.items()}
    (installation.home / "teams.json").write_text(json.dumps({"teams": teams}))
    return projects


def queued(installation: Installation, *arguments: str) -> None:
    sent = installation.run("send", *arguments)
    assert sent.returncode == 0, sent.stderr


def test_a_message_goes_to_the_agent_and_its_reply_comes_back_and_cannot_steer_the_terminal(
    holdfast: Installation, tmp_path: Path
) -> None:
    projects = write_targets(holdfast, tmp_path / "targets")
    sent = holdfast.run("send", "homelab", "--id", "msg-456", "Fix", "the", "DNS", "record")
    assert (sent.returncode, sent.stdout) == (0, "Queued for homelab as msg-456.\n"), sent.stderr
    queued(holdfast, "homelab", "--urgent", "Hurry")
    with Agent(holdfast, projects["homelab"], session="abc-123") as agent:
        urgent = agent.call("take_message")
        assert "Hurry" in urgent["text"]
        agent.call("finish_message", id=urgent["id"], outcome="done", reply="a\x1b[2Jb")
        taken = agent.call("take_message")
        assert taken["id"] == "msg-456" and "Fix the DNS record" in taken["text"]
        agent.call("save_task", current_task="The DNS record", current_task_id="msg-456", last_completed_step=2)
        (homelab,) = json.loads(holdfast.run("queue", "homelab", "--json").stdout)["targets"].values()
        assert (homelab["pending"], homelab["in_progress"], homelab["current_task"]) == (0, 1, "The DNS record")
        agent.call("finish_message", id="msg-456", outcome="done", reply="It is\nfixed.")
    told = holdfast.run("pull", "homelab")
    assert (
        "  reply  msg-456\n    > Fix the DNS record\n    It is\n    fixed.\n" in told.stdout
        and told.stdout.endswith("--since 3\n")
    )
    assert "\x1b" not in told.stdout and "a\\x1b[2Jb" in told.stdout
    since = json.loads(holdfast.run("pull", "homelab", "--since", "2", "--json").stdout)
    assert [update["message_id"] for update in since["updates"]] == ["msg-456"] and since["cursor"] == "3"
    assert holdfast.run("pull", "homelab", "--since", "3").stdout == "No updates since.\n"
    assert holdfast.run("pull", "felt").stdout == "No updates.\n"


def test_without_a_daemon_messages_are_queued_just_the_same(embedded: Installation, tmp_path: Path) -> None:
    assert "no targets yet" in embedded.run("queue").stdout
    write_targets(embedded, tmp_path / "targets")
    queued(embedded, "homelab", "--id", "m1", "while nobody serves")
    again = embedded.run("send", "homelab", "--id", "m1", "while nobody serves")
    assert (again.returncode, again.stdout, again.stderr) == (1, "", "Not queued: duplicate.\n")
    heading, *rows = embedded.run("queue").stdout.splitlines()
    assert heading.split() == ["TARGET", "PENDING", "IN", "PROGRESS", "DEAD", "HELD", "LAST", "SEEN", "SESSION", "TASK"]
    assert sorted(row.split()[:3] for row in rows) == [["felt", "0", "0"], ["homelab", "1", "0"]]


def test_a_target_that_does_not_exist_is_named(embedded: Installation, tmp_path: Path) -> None:
    write_targets(embedded, tmp_path / "targets")
    for arguments in (
        ("send", "nowhere", "x"),
        ("pull", "nowhere"),
        ("queue", "nowhere"),
        ("bridge", "fork", "nowhere"),
    ):
        refused = embedded.run(*arguments)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "unknown target: nowhere." in refused.stderr
    assert "since" in embedded.run("pull", "homelab", "--since", "yesterday").stderr
    assert "holdfast serve" in embedded.run("tail").stderr


def test_a_message_can_come_from_stdin_and_must_be_a_text(embedded: Installation, tmp_path: Path) -> None:
    write_targets(embedded, tmp_path / "targets")
    long = embedded.run("send", "homelab", "-", stdin="first line\nsecond line\n")
    assert long.returncode == 0, long.stderr
    for given, reason in (("", "message"), ("x" * 100_001, "100000")):
        refused = embedded.run("send", "homelab", "-", stdin=given)
        assert refused.returncode == 1 and reason in refused.stderr
    refused = embedded.run("send", "homelab", "\udcff")
    assert refused.returncode == 1 and "MESSAGE: must be UTF-8" in refused.stderr


def finish(installation: Installation, project: Path, message_id: str, reply: str) -> None:
    with Agent(installation, project, session=f"session-{message_id}") as agent:
        assert agent.call("take_message")["id"] == message_id
        agent.call("finish_message", id=message_id, outcome="done", reply=reply)


def test_a_message_that_waits_is_listed_edited_and_cancelled(embedded: Installation, tmp_path: Path) -> None:
    projects = write_targets(embedded, tmp_path / "targets")
    for message_id, text in (("m1", "first\nthing"), ("m2", "second"), ("m3", "third")):
        queued(embedded, "homelab", "--id", message_id, text)
    edited = embedded.run("send", "homelab", "--replace", "m2", "--urgent", "second, but better")
    assert (edited.returncode, edited.stdout) == (0, "Edited; it is still waiting for homelab as m2.\n"), edited.stderr
    listed = embedded.run("queue", "homelab").stdout.splitlines()
    assert [line.split()[:1] for line in listed[:2]] == [["TARGET"], ["homelab"]]
    assert [line.split()[0] for line in listed[3:]] == ["STATE", "waiting,", "waiting", "waiting"]
    assert "waiting, urgent  m2" in listed[4] and listed[4].endswith("the owner  second, but better")
    assert listed[5].endswith("first thing")
    messages = json.loads(embedded.run("queue", "homelab", "--json").stdout)["messages"]
    assert [(message["id"], message["status"]) for message in messages] == [
        ("m2", "pending"),
        ("m1", "pending"),
        ("m3", "pending"),
    ]
    assert messages[0]["created_at"].endswith("Z")
    cancelled = embedded.run("cancel", "homelab", "m3")
    assert (cancelled.returncode, cancelled.stdout) == (0, "Message m3 is cancelled; no agent had it.\n")
    assert embedded.run("cancel", "homelab", "m3").stdout == "Message m3 is already cancelled; no agent had it.\n"
    embedded.serve()
    with Agent(embedded, projects["homelab"], session="abc") as agent:
        assert "second, but better" in agent.call("take_message")["text"]
        for change in (("cancel", "homelab", "m2"), ("send", "homelab", "--replace", "m2", "third")):
            refused = embedded.run(*change)
            assert refused.returncode == 1 and "its agent already has it" in refused.stderr
        assert refused.stderr == "Not edited: its agent already has it.\n"
        assert "in progress, urgent  m2" in embedded.run("queue", "homelab").stdout
        agent.call("finish_message", id="m2", outcome="done")
        assert agent.call("take_message")["id"] == "m1"
        agent.call("finish_message", id="m1", outcome="failed", reply="no key")
        assert "m3" not in str(agent.call("take_message"))
    for unknown in (("cancel", "homelab", "nope"), ("cancel", "felt", "m1"), ("retry", "homelab", "nope")):
        refused = embedded.run(*unknown)
        assert refused.returncode == 1 and "You have no message" in refused.stderr


def test_a_dead_letter_is_listed_and_retried(holdfast: Installation, tmp_path: Path) -> None:
    projects = write_targets(holdfast, tmp_path / "targets")
    queued(holdfast, "homelab", "--id", "m1", "never done")
    assert "m1 cannot be retried: it is still waiting. Only a dead" in holdfast.run("retry", "homelab", "m1").stderr
    with Agent(holdfast, projects["homelab"], session="abc") as agent:
        for _ in range(5):
            assert agent.call("take_message")["id"] == "m1"
            agent.call("finish_message", id="m1", outcome="later")
        listed = holdfast.run("queue", "homelab").stdout.splitlines()[-1]
        assert listed.startswith("dead") and listed.endswith("never done")
        retried = holdfast.run("retry", "homelab", "m1")
        assert (retried.returncode, retried.stdout) == (0, "Message m1 is waiting for homelab again.\n"), retried.stderr
        assert agent.call("take_message")["id"] == "m1"


def test_a_restart_is_told_in_signs_that_a_terminal_shows(embedded: Installation, tmp_path: Path) -> None:
    project = write_targets(embedded, tmp_path / "targets")["homelab"]
    embedded.serve()
    for session in ("one", "two"):
        transcript = tmp_path / f"{session}.jsonl"
        transcript.write_text("")
        call_hook(embedded, "SessionStart", project, transcript, source="startup")
    assert "    ⚠ Agent session restarted." in embedded.run("pull", "homelab").stdout


def test_times_are_local_for_people_and_utc_for_programs(embedded: Installation, tmp_path: Path) -> None:
    write_targets(embedded, tmp_path / "targets")
    queued(embedded, "homelab", "--id", "m1", "when")
    queued(embedded, "homelab", "--id", "m2", "later")
    embedded.run("cancel", "homelab", "m2")
    there = {"TZ": "XST-5:30"}
    for command, shown in (("queue", "messages"), ("pull", "updates")):
        told = json.loads(embedded.run(command, "homelab", "--json", env=there).stdout)[shown][0]["created_at"]
        utc = datetime.fromisoformat(told)
        expected = utc + timedelta(hours=5, minutes=30)
        assert f"{expected:%Y-%m-%d %H:%M}" in embedded.run(command, "homelab", env=there).stdout


class Follower:
    """A running `holdfast tail`, whose lines can be waited for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self._lines.put(line.rstrip("\n"))

    def until(self, wanted: str) -> list[str]:
        """Every line up to the one that is wanted."""
        lines: list[str] = []
        while wanted not in lines:
            lines.append(self._lines.get(timeout=PATIENCE))
        return lines


@contextmanager
def following(installation: Installation, *arguments: str) -> Iterator[Follower]:
    process = subprocess.Popen(
        [str(HOLDFAST), "tail", *arguments],
        env=installation.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # A test run in the background ignores Ctrl-C, and so would all that it starts.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield Follower(process)
    finally:
        process.kill()
        process.wait(PATIENCE)


@pytest.mark.timeout(300)
def test_tail_shows_each_update_once_and_outlives_the_daemon(embedded: Installation, tmp_path: Path) -> None:
    projects = write_targets(embedded, tmp_path / "targets")
    embedded.serve()

    def reply(message_id: str, target: str = "homelab") -> None:
        queued(embedded, target, "--id", message_id, f"do {message_id}")
        with Agent(embedded, projects[target], session=f"session-{message_id}") as agent:
            agent.call("take_message")
            agent.call("finish_message", id=message_id, outcome="done", reply=f"did {message_id}")

    reply("before")
    with following(embedded, "homelab") as follower:
        seen = follower.until("    did before")
        reply("elsewhere", "felt")
        reply("during")
        seen += follower.until("    did during")
        killed = embedded.kill_daemon()
        embedded.serve(another_than=killed)
        reply("after")
        seen += follower.until("    did after")
        said = [line.strip() for line in seen if line.startswith("    ")]
        assert said == ["> do before", "did before", "> do during", "did during", "> do after", "did after"]
        follower.process.send_signal(signal.SIGINT)
        assert follower.process.wait(PATIENCE) == 130


@pytest.mark.timeout(300)
def test_tail_of_all_targets_is_in_the_order_of_time(holdfast: Installation, tmp_path: Path) -> None:
    projects = write_targets(holdfast, tmp_path / "targets")
    for number, target in enumerate(("homelab", "felt", "homelab", "felt")):
        queued(holdfast, target, "--id", f"m{number}", f"do {number}")
        finish(holdfast, projects[target], f"m{number}", f"did {number}")
    with following(holdfast) as follower:
        seen = follower.until("    did 3")
    assert [line.strip() for line in seen if line.startswith("    did")] == [f"did {number}" for number in range(4)]
    headings = [line.split()[2:] for line in seen if not line.startswith(" ") and "reply" in line]
    assert headings == [[("felt" if number % 2 else "homelab"), "reply", f"m{number}"] for number in range(4)]
