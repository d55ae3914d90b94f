"""Single links of the chain, in states that a real installation is hard to bring into."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.settings import Scope
from holdfast.bridge.model import MAX_PENDING
from holdfast.config import Settings
from holdfast.doctor import installation
from holdfast.doctor.agents import check_serena
from holdfast.doctor.findings import Mark
from holdfast.doctor.hooks import may_run
from holdfast.doctor.installation import check_home, check_key
from holdfast.doctor.surroundings import Surroundings
from holdfast.doctor.work import check_background, check_chats, check_queue
from holdfast.setup.hook_command import HookCommand, command, is_ours, portable_command

NOBODY = 65_534

Answers = Mapping[str, Any]


def around(home: Path, answers: Answers | None = None, daemon: Answers | None = None, **more: Any) -> Surroundings:
    """A home, with further settings, whose daemon gives these answers."""
    known = answers or {}
    return Surroundings(Settings(home=home, **more), {}, home, lambda name, args: dict(known[name]), daemon)


@contextlib.contextmanager
def without_privileges(*paths: Path) -> Iterator[None]:
    """As a user whom permissions bind; root is not one."""
    if os.geteuid() != 0:
        yield
        return
    for path in paths:
        os.chown(path, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def home() -> Iterator[Path]:
    """A data directory that any user can reach; a test's own directory is closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        yield home


def test_a_home_that_cannot_be_written_is_found_and_opened(home: Path) -> None:
    home.chmod(0o500)
    with without_privileges(home):
        (found,) = check_home(around(home))
        assert found.mark is Mark.FAULT and "cannot be written" in found.text and "chmod 700" in (found.repair or "")
        assert found.fix is not None
        found.fix()
        (mended,) = check_home(around(home))
    assert mended.mark is Mark.OK


def test_a_home_of_somebody_else_is_found_and_left_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1)
    (found,) = check_home(around(home))
    assert found.mark is Mark.FAULT and "belongs to user" in found.text and found.fix is None


def test_a_full_disk_is_a_fault_and_a_tight_one_a_note(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = []
    for free in (50_000_000, 500_000_000, 5_000_000_000):
        usage = type("Usage", (), {"free": free})
        monkeypatch.setattr(shutil, "disk_usage", lambda path, usage=usage: usage)
        marks += [found.mark for found in check_home(around(home))]
    assert marks == [Mark.FAULT, Mark.NOTE, Mark.OK]


def test_every_secret_of_the_home_is_looked_at(home: Path) -> None:
    for name in installation.PRIVATE:
        (home / name).write_text("secret" * 10)
        (home / name).chmod(0o640)
    found = list(check_key(around(home)))
    assert [one.mark for one in found] == [Mark.FAULT] * len(installation.PRIVATE)
    for one in found:
        assert one.fix is not None
        one.fix()
    assert [one.mark for one in check_key(around(home))] == [Mark.OK]


def test_dead_letters_and_a_full_queue_are_notes(home: Path) -> None:
    targets = {
        "kitchen": {"pending": 2, "in_progress": 0, "dead_letters": 3},
        "cellar": {"pending": MAX_PENDING, "in_progress": 0},
    }
    found = list(check_queue(around(home, {"bridge-queue": {"targets": targets}}, {})))
    assert [one.mark for one in found] == [Mark.NOTE, Mark.NOTE]
    assert "kitchen: 3 dead letters" in found[0].text and "retry" in (found[0].repair or "")
    assert "cellar: full" in found[1].text and "holdfast queue cellar" in (found[1].repair or "")


def test_a_loop_in_trouble_and_the_notices_of_a_salvage_are_notes(home: Path) -> None:
    loops = [{"name": "sweep", "failures": 2, "last_error": "OSError: no room"}, {"name": "watch", "last_error": None}]
    daemon = {"loops": loops, "notices": ["3 rows were lost."]}
    found = list(check_background(around(home, {"unhooked": {"lines": []}}, daemon)))
    assert [one.mark for one in found] == [Mark.NOTE, Mark.NOTE]
    assert "sweep failed 2 times, last: OSError: no room" in found[0].text
    assert found[1].text == "3 rows were lost."


def test_what_keeps_a_chat_from_working_is_told(home: Path) -> None:
    trouble = {"transport": "telegram", "target": "kitchen", "failure": "chat not found"}
    chats = {"transports": ["webhook"], "troubles": [trouble], "receiving": "a webhook is set", "refused": 2}
    found = list(check_chats(around(home, daemon={"chats": chats}, telegram_token="t")))  # noqa: S106 - any
    assert [one.mark for one in found] == [Mark.FAULT, Mark.NOTE, Mark.NOTE, Mark.NOTE]
    assert "without HOLDFAST_TELEGRAM_TOKEN" in found[0].text
    assert "kitchen: chat not found" in found[1].text and "teams.json" in (found[1].repair or "")
    assert list(check_chats(around(home, daemon={"chats": {"transports": []}}))) == []


@pytest.mark.parametrize("home_given", [None, "/home/ann's/.hold fast"])
def test_what_holdfast_writes_as_a_hook_is_read_back(home_given: str | None) -> None:
    entry = HookCommand("SessionStart", command("SessionStart", home=home_given))
    assert is_ours(entry.text) and entry.is_current
    assert entry.parts is not None and entry.parts.home == home_given
    assert [path.name for path in entry.parts.programs][:1] == ["launcher.sh"]


PROJECT = Path("/work place/shop")
HOME = Path("/home/ann/.holdfast")


@pytest.mark.parametrize(
    ("scope", "text", "runs"),
    [
        (Scope.LOCAL, command("Stop", home=str(HOME)), True),
        (Scope.LOCAL, command("Stop", home=str(HOME)).replace("export HOLDFAST_HOME=/home/ann/.holdfast; ", ""), True),
        (Scope.LOCAL, command("Stop", home="/home/bob/.holdfast"), False),
        (Scope.LOCAL, command("Stop", home="/h").replace("HOME=/h;", f"HOME={HOME};"), False),
        (Scope.LOCAL, command("Stop", home=str(HOME)).replace("launcher.sh", "other.sh"), False),
        (Scope.PROJECT, portable_command("Stop"), True),
        (Scope.USER, "anything; holdfast hook Stop", True),
        (Scope.LOCAL, "anything; holdfast hook Stop", False),
        (Scope.PROJECT, portable_command("Stop") + "; rm -r x", False),
        (Scope.LOCAL, command("Stop") + "; rm -r x", False),
        (Scope.LOCAL, "x; " + command("Stop"), False),
        (Scope.LOCAL, command("Stop", home="/h").replace("=/h;", "=$(touch x);"), False),
        (Scope.LOCAL, command("Stop", home="/h").replace("=/h;", "=`touch x`;"), False),
        (Scope.LOCAL, command("Stop", home=f"{PROJECT}/home"), False),
    ],
)
def test_of_a_projects_files_only_what_holdfast_writes_there_is_run(scope: Scope, text: str, runs: bool) -> None:
    assert may_run(scope, HookCommand("Stop", text), PROJECT, HOME) is runs


def test_a_serena_that_hangs_is_named_with_what_waits_for_it(home: Path) -> None:
    silent = {"serena": ["it has not answered yet"]}
    (_, told) = check_serena(around(home, {"trusted": {}}, silent))
    assert told.mark is Mark.NOTE and told.text == "Serena does not answer: it has not answered yet"
    assert "SERENA_INIT" in (told.repair or "")
