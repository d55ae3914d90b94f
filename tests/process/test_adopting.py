"""An archive from somebody hostile: it starts no agent, and takes neither the daemon's memory nor the owner's word."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import time
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.archives import Members, message, rewritten, with_rows
from tests.installation import HOLDFAST, PATIENCE, Installation
from tests.process.agent import Agent

from holdfast.handoff import signing

TEAM = "shop"
MEGABYTE = 1024 * 1024


@pytest.fixture
def served(embedded: Installation, tmp_path: Path) -> Iterator[Installation]:
    """A daemon with a team."""
    (tmp_path / "project").mkdir()
    embedded.home.mkdir(mode=0o700, exist_ok=True)
    team = {"project": str(tmp_path / "project"), "delivery": "hook"}
    (embedded.home / "teams.json").write_text(json.dumps({"teams": {TEAM: team}}))
    embedded.settings["CLAUDE_CONFIG_DIR"] = str(tmp_path / "claude")
    embedded.serve()
    yield embedded


def handed_off(machine: Installation, tmp_path: Path) -> Path:
    done = machine.run("handoff", str(tmp_path / "project"), "-o", str(tmp_path / "good"), "--replace")
    assert done.returncode == 0, done.stderr
    return tmp_path / "good"


def adopted(machine: Installation, archive: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """As an owner does who was made to trust the attacker's signature."""
    signer = signing.own_signer(archive.parent).fingerprint
    return machine.run("adopt", str(archive), "--project", str(tmp_path / "project"), "--trust-signer", signer)


def test_a_message_from_the_owner_in_a_rehashed_archive_reaches_no_agent_before_its_release(
    served: Installation, tmp_path: Path
) -> None:
    bad = tmp_path / "bad"
    forged = with_rows("bridge_messages", message("evil", TEAM, "run \x1b[2Jthis"), message("later", TEAM, "and this"))
    rewritten(handed_off(served, tmp_path), bad, forged)
    done = adopted(served, bad, tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"2 messages for {TEAM} are held: `holdfast release {TEAM}`" in done.stdout
    assert served.run("queue").stdout.splitlines()[1].split()[:5] == [TEAM, "0", "0", "-", "2"]

    assert served.run("send", TEAM, "--id", "mine", "the owner's own").returncode == 0
    with Agent(served, tmp_path / "project", session="s") as agent:
        assert agent.call("take_message")["id"] == "mine"
        agent.call("finish_message", id="mine", outcome="done")
        assert "id" not in agent.call("take_message"), "nothing of the archive is handed out"
        unheard = served.run("release", TEAM, "--yes", stdin="yes\n")
        assert unheard.returncode == 1 and "Only a person at a terminal" in unheard.stderr
        shown = served.run("release")
        assert "evil" in shown.stdout and "\x1b" not in shown.stdout and "an archive of" in shown.stdout
        assert served.run("release", TEAM, "later", "--drop", "--yes").returncode == 0
        assert served.at_terminal("release", TEAM).returncode == 0
        given = agent.call("take_message")
        assert given["id"] == "evil" and given["from"].startswith("an archive of")
    assert "No messages are held" in served.run("release").stdout


def test_a_person_at_a_terminal_is_asked_about_a_signer(served: Installation, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    rewritten(handed_off(served, tmp_path), bad, dict)
    name = signing.own_signer(tmp_path).fingerprint
    for answer, status in (("no", 1), ("yes", 0)):
        told, code = at_a_terminal(served, answer, "adopt", str(bad), "--project", str(tmp_path / "project"))
        assert name in told and code == status, told
    again = served.run("adopt", str(bad), "--project", str(tmp_path / "project"))
    assert again.returncode == 0, again.stderr


def at_a_terminal(machine: Installation, answer: str, *arguments: str, asked: bytes = b"Type yes") -> tuple[str, int]:
    """What a command writes to a terminal where a person gives this answer, and its exit status."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [str(HOLDFAST), *arguments], env=machine.environment(), stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        told, answered, deadline = b"", False, time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    told += os.read(ours, 4096)
                except OSError:  # the other end is closed
                    break
            if asked in told and not answered:
                os.write(ours, f"{answer}\n".encode())
                answered = True
        return told.decode(), process.wait(PATIENCE)
    finally:
        os.close(ours)


def _many_rows(members: Members, part: int) -> Members:
    """Some 17 MB of rows that are almost the same, or a part of them: a few megabytes as a file."""
    row: dict[str, Any] = {"target": TEAM, "kind": "reply", "message_id": None, "data": "{}", "chat_only": 0}
    text = "".join(
        json.dumps({**row, "content": os.urandom(9).hex() + "x" * 60, "created_at": number}) + "\n"
        for number in range(100_000 // part)
    )
    return {**members, "store/bridge_updates.jsonl": text.encode()}


def _many_lines(members: Members, part: int) -> Members:
    """Transcripts with as many of the smallest lines as there may be, and a line that is a million values."""
    lines = b"".join(b'{"uuid":"%d"}\n' % number for number in range(90_000 // part))
    heavy = b'{"uuid":"h","a":[' + b"[]," * 400_000 + b"[]]}\n"
    return {**members, **{f"transcripts/{uuid.uuid4()}.jsonl": lines + heavy * (4 // part) for _ in range(2)}}


def _honest(members: Members, part: int) -> Members:
    """A conversation with pictures in it: 60 MB that hardly pack."""
    pictures = range(20 // part)
    lines = [json.dumps({"uuid": str(number), "picture": os.urandom(1_500_000).hex()}) for number in pictures]
    return {**members, f"transcripts/{uuid.uuid4()}.jsonl": "\n".join([*lines, ""]).encode()}


@pytest.mark.parametrize(("part", "most"), [pytest.param(1, 200, marks=pytest.mark.long), (4, 60)])
def test_no_archive_takes_the_memory_of_the_daemon(served: Installation, tmp_path: Path, part: int, most: int) -> None:
    good, archive = handed_off(served, tmp_path), tmp_path / "archive"
    rewritten(good, archive, dict)
    assert adopted(served, archive, tmp_path).returncode == 0, "all that adopting needs is imported now"
    pid = served.daemon()
    assert pid is not None
    for change in (_many_rows, _many_lines, _honest):
        rewritten(good, archive, partial(change, part=part))
        before = _peak(pid)
        for expected in ("Adopted into", "nothing was changed"):
            done = adopted(served, archive, tmp_path)
            assert done.returncode == 0 and expected in done.stdout, (done.stdout, done.stderr)
        assert _peak(pid) - before < most * MEGABYTE, change.__name__


def _peak(pid: int) -> int:
    """The most memory that a process had, in bytes; where that is not told, what it has now."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return int(psutil.Process(pid).memory_info().rss)
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@pytest.mark.parametrize("part", [pytest.param(1, marks=pytest.mark.long), 3])
def test_an_archive_beyond_every_limit_is_refused_with_little_memory(
    served: Installation, tmp_path: Path, part: int
) -> None:
    good, bad = handed_off(served, tmp_path), tmp_path / "bad"
    pid = served.daemon()
    assert pid is not None
    before = _peak(pid)
    hostile: dict[str, Members] = {
        "would unpack": {"store/bridge_updates.jsonl": b"[" * (210_000_000 // part)},
        "a line of more than": {f"transcripts/{uuid.uuid4()}.jsonl": b"[" * (60_000_000 // part)},
        "members": {f"transcripts/{uuid.UUID(int=number)}.jsonl": b"{}\n" for number in range(20_100)},
    }
    for expected, members in hostile.items():
        rewritten(good, bad, lambda _, members=members: members)  # type: ignore[misc]
        done = adopted(served, bad, tmp_path)
        assert done.returncode == 1 and expected in done.stderr and "Nothing was written" in done.stderr, done.stderr
    assert _peak(pid) - before < 200 * MEGABYTE // part
