"""`holdfast doctor` finds what is broken in a real installation, names the repair, and makes the safe ones."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.bot_api import TOKEN, bot_api
from tests.installation import HOLDFAST, PATIENCE, Installation
from tests.postgres import PostgresServer, fresh_database
from tests.process.agent import Agent

from holdfast.agents.claude.settings import BRIEFING, installed
from holdfast.files.private import read_or_make
from holdfast.process.home_lock import HomeLock
from holdfast.relay import place
from holdfast.setup.hook_command import command
from holdfast.version import __version__


@dataclass(frozen=True)
class Report:
    """What the doctor said."""

    status: int
    document: dict[str, Any]
    text: str

    def of(self, link: str, mark: str) -> dict[str, Any]:
        """The one finding of this link with this mark."""
        found = [one for one in self.document["findings"] if (one["link"], one["mark"]) == (link, mark)]
        assert len(found) == 1, self.document["findings"]
        return dict(found[0])

    def marks(self, link: str) -> list[str]:
        """The marks of all findings of a link."""
        return [one["mark"] for one in self.document["findings"] if one["link"] == link]

    @property
    def faulty(self) -> set[str]:
        """The links at fault."""
        return {one["link"] for one in self.document["findings"] if one["mark"] == "fault"}


class Patient:
    """An installation with an agent's configuration and a project of its own."""

    def __init__(self, holdfast: Installation, folder: Path | None = None) -> None:
        folder = folder or holdfast.home.parent
        self.holdfast = holdfast
        self.home = holdfast.home
        self.config = folder / "claude"
        self.project = folder / "shop"
        self.config.mkdir()
        self.project.mkdir()
        patience = {"HOLDFAST_DAEMON_WAIT": f"{PATIENCE:.0f}", "HOLDFAST_HOOK_TIMEOUT": f"{PATIENCE:.0f}"}
        holdfast.settings |= {"HOME": str(folder), "CLAUDE_CONFIG_DIR": str(self.config), **patience}

    def doctor(self, *arguments: str) -> Report:
        """Call the doctor in the project."""
        done = subprocess.run(
            [str(HOLDFAST), "doctor", "--json", *arguments],
            env=self.holdfast.environment(),
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=PATIENCE * 4,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Report(done.returncode, json.loads(done.stdout), done.stdout + done.stderr)


@pytest.fixture
def patient(embedded: Installation, tmp_path: Path) -> Patient:
    """A Holdfast that nobody started yet."""
    return Patient(embedded, tmp_path)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A sound Holdfast whose daemon runs for the tests of this module alone: a doctor looks at all of it."""
    installation = Patient(Installation(tmp_path_factory.mktemp("served") / "holdfast")).holdfast
    try:
        installation.serve()
        yield installation
    finally:
        installation.close()


@pytest.fixture
def outpatient(served: Installation, tmp_path: Path) -> Iterator[Patient]:
    """A person with that Holdfast, and with an agent's configuration and a project that nobody else has."""
    yield Patient(Installation(served.home), tmp_path)
    served.home.chmod(0o700)  # also after a failure: the next one finds it sound
    (served.home / "key").chmod(0o600)


def test_a_sound_installation_has_no_fault_and_its_secrets_stay_secret(outpatient: Patient) -> None:
    installed(outpatient.config, BRIEFING, file="settings.json", home=str(outpatient.home)).write()
    report = outpatient.doctor()
    assert report.status == 0 and report.document["ok"], report.text
    assert report.marks("hooks") == ["ok"]
    for link in ("home", "key", "store", "daemon", "http", "loops", "transcripts", "serena", "queue", "telegram"):
        assert report.marks(link) == ["ok"], report.text
    assert outpatient.holdfast.key() not in report.text


def test_what_setup_wrote_holds_from_the_agent_to_the_store(outpatient: Patient) -> None:
    done = outpatient.holdfast.run("setup", "claude", "--yes")
    assert done.returncode == 0 and "the whole chain" in done.stdout, done.stdout + done.stderr
    report = outpatient.doctor()
    assert report.faulty == set() and report.status == 0
    assert report.marks("mcp server") == report.marks("hooks") == ["ok"]
    assert all(hook.event in report.of("hooks", "ok")["text"] for hook in BRIEFING)
    assert len(report.marks("relay")) == 1


def test_a_daemon_that_cannot_start_says_why(patient: Patient) -> None:
    patient.holdfast.settings["HOLDFAST_TELEGRAM_TOKEN"] = "not-a-token"  # noqa: S105 - it is none
    report = patient.doctor()
    found = report.of("daemon", "fault")
    assert report.status == 1
    assert "HOLDFAST_TELEGRAM_TOKEN" in found["text"]
    assert "holdfast serve" in found["repair"]
    assert "not-a-token" not in report.text


def test_a_daemon_that_crashes_at_its_start_is_told_with_its_last_line(patient: Patient) -> None:
    clock = patient.home.with_name("clock")
    clock.write_bytes(b"\xff")
    patient.holdfast.settings["HOLDFAST_TEST_CLOCK"] = str(clock)
    found = patient.doctor().of("daemon", "fault")
    assert "UnicodeDecodeError" in found["text"] and "holdfast serve" in found["repair"]


def test_a_file_that_keeps_a_daemon_from_starting_is_named(patient: Patient) -> None:
    (patient.home / "lock").mkdir(mode=0o700, parents=True)
    patient.home.chmod(0o700)
    found = patient.doctor().of("daemon", "fault")
    (patient.home / "lock").rmdir()
    assert f"{patient.home / 'lock'}: Is a directory" in found["text"] and "holdfast serve" in found["repair"]


def test_a_process_that_holds_the_home_and_is_silent_is_named(patient: Patient) -> None:
    lock = HomeLock.take(patient.home, by_hand=True, purpose="restore")
    try:
        report = patient.doctor()
    finally:
        lock.release()
    found = report.of("daemon", "fault")
    assert str(os.getpid()) in found["text"] and "restore" in found["text"]
    assert "holdfast stop" in found["repair"]


def test_a_daemon_of_another_version_is_found_and_replaced(patient: Patient) -> None:
    with older_daemon(patient.home):
        patient.holdfast.settings["HOLDFAST_DAEMON_WAIT"] = "1"  # it has no relay to offer, and is not waited for
        found = patient.doctor().of("daemon", "fault")
        patient.holdfast.settings["HOLDFAST_DAEMON_WAIT"] = f"{PATIENCE:.0f}"
        assert "0.0.1" in found["text"] and __version__ in found["text"]
        assert "holdfast stop" in found["repair"]
        mended = patient.doctor("--fix")
    assert mended.of("daemon", "ok")["text"].startswith(f"holdfast {__version__}")
    assert [one["link"] for one in mended.document["repairs"]] == ["daemon"]
    assert mended.status == 0, mended.faulty


def test_a_home_and_a_key_that_others_can_read_are_told_to_a_person_and_closed(outpatient: Patient) -> None:
    home, key = outpatient.home, outpatient.home / "key"
    home.chmod(0o755)
    told = outpatient.holdfast.run("doctor")
    lines = told.stdout.splitlines()
    assert told.returncode == 1
    assert f"fault  home         {home} is open to others (mode 0755)." in lines
    assert f"                    -> chmod 700 {home}" in lines
    assert lines[-1] == "1 fault. `holdfast doctor --fix` repairs it."
    assert "\x1b" not in told.stdout
    key.chmod(0o644)
    report = outpatient.doctor()
    assert report.faulty == {"home", "key"}
    for link, mode, repair in (("home", "0755", f"chmod 700 {home}"), ("key", "0644", f"chmod 600 {key}")):
        found = report.of(link, "fault")
        assert mode in found["text"] and repair in found["repair"]
    assert outpatient.doctor("--fix").status == 0
    assert [stat.S_IMODE(path.stat().st_mode) for path in (home, key)] == [0o700, 0o600]


def test_a_key_that_is_gone_is_missed_while_a_daemon_still_wants_it(outpatient: Patient) -> None:
    key, aside = outpatient.home / "key", outpatient.home / "key aside"
    key.rename(aside)
    try:
        report = outpatient.doctor("--fix")
    finally:
        aside.rename(key)
    assert "holdfast stop" in report.of("key", "fault")["repair"]
    assert report.status == 1


def test_a_damaged_store_is_found_and_left_to_its_owner(patient: Patient) -> None:
    with Agent(patient.holdfast, patient.project) as agent:
        agent.think("worth keeping")
    assert patient.holdfast.run("stop").returncode == 0
    (patient.home / "stopped").unlink()
    database = patient.home / "holdfast.db"
    with database.open("r+b") as file:
        file.write(b"\0" * 100)
    before = database.read_bytes()
    for report in (patient.doctor(), patient.doctor("--fix")):
        found = report.of("store", "fault")
        assert "damaged" in found["text"] and "salvages" in found["repair"]
        assert "store" in report.of("daemon", "note")["text"]
    assert database.read_bytes() == before


def test_hooks_of_another_holdfast_are_noted_and_brought_up_to_date(outpatient: Patient) -> None:
    older = f"exec {sys.executable} -P -m holdfast hook SessionStart"
    hooks = {"SessionEnd": command("SessionEnd", home=str(outpatient.home)), "SessionStart": older}
    entries = {event: [{"hooks": [{"type": "command", "command": text}]}] for event, text in hooks.items()}
    settings = outpatient.config / "settings.json"
    settings.write_text(json.dumps({"hooks": entries}))
    found = outpatient.doctor().of("hooks", "note")
    assert "SessionStart" in found["text"] and "setup claude" in found["repair"]
    assert outpatient.doctor("--fix").marks("hooks") == ["ok"]
    assert sys.executable not in settings.read_text()


def test_a_launcher_that_is_gone_is_found_and_written_anew(outpatient: Patient) -> None:
    installed(outpatient.config, BRIEFING, file="settings.json", home=str(outpatient.home)).write()
    launcher = outpatient.home / "launcher.sh"
    launcher.write_text(launcher.read_text().replace(sys.executable, "/gone/bin/python"))
    report = outpatient.doctor()
    assert report.marks("hooks") == ["ok"], "any command of an installation that works repairs it"
    launcher.unlink()
    assert outpatient.doctor("--fix").marks("hooks") == ["ok"]
    assert launcher.stat().st_mode & 0o777 == 0o600


def test_a_hook_that_fails_is_told_with_its_own_words(outpatient: Patient) -> None:
    broken = "echo 'no such thing' >&2; exit 3; holdfast hook SessionStart"
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": broken}]}]}
    (outpatient.config / "settings.json").write_text(json.dumps({"hooks": hooks}))
    assert "no such thing" in outpatient.doctor().of("hooks", "fault")["text"]


def test_what_a_project_brings_as_a_hook_is_not_run(outpatient: Patient, tmp_path: Path) -> None:
    bait = tmp_path / "was-run"
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {bait}; holdfast hook SessionStart"}]}]}
    for name in ("settings.json", "settings.local.json"):
        file = outpatient.project / ".claude" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"hooks": hooks}))
    report = outpatient.doctor("--fix")
    assert report.marks("hooks") == ["note", "note"]
    assert not bait.exists()


def test_settings_that_cannot_be_read_are_found_and_left_as_they_are(outpatient: Patient) -> None:
    settings = outpatient.config / "settings.json"
    settings.write_text('{\n  "hooks": {,}\n}\n')
    found = outpatient.doctor("--fix").of("hooks", "fault")
    assert f"{settings}, line 2" in found["text"] and f"Repair {settings}" in found["repair"]
    assert settings.read_text() == '{\n  "hooks": {,}\n}\n'


def test_a_plugin_beside_hooks_in_settings_is_found(outpatient: Patient) -> None:
    installed(outpatient.config, BRIEFING, file="settings.json", home=str(outpatient.home)).write()
    settings = outpatient.config / "settings.json"
    content = json.loads(settings.read_text()) | {"enabledPlugins": {"holdfast@holdfast": True}}
    settings.write_text(json.dumps(content))
    found = outpatient.doctor().of("hooks", "fault")
    assert "fires twice" in found["text"] and "claude plugin uninstall holdfast@holdfast" in found["repair"]


def test_a_server_that_is_registered_with_a_path_that_is_gone_is_found(outpatient: Patient) -> None:
    entry = {"type": "stdio", "command": "/gone/bin/holdfast", "args": ["mcp"]}
    (outpatient.config / ".claude.json").write_text(json.dumps({"mcpServers": {"holdfast": entry}}))
    found = outpatient.doctor().of("mcp server", "fault")
    assert "/gone/bin/holdfast" in found["text"] and "holdfast setup claude" in found["repair"]


def test_the_server_that_the_user_registered_is_the_one_that_is_tried(outpatient: Patient) -> None:
    entry = {"type": "stdio", "command": "/bin/sh", "args": ["-c", "echo 'wrong door' >&2; exit 7; holdfast mcp"]}
    (outpatient.config / ".claude.json").write_text(json.dumps({"mcpServers": {"holdfast": entry}}))
    found = outpatient.doctor().of("relay", "fault")
    assert "status 7" in found["text"] and "wrong door" in found["text"]
    assert "holdfast setup claude" in found["repair"]


def test_something_else_in_the_place_of_the_socket_is_found(patient: Patient) -> None:
    patient.home.mkdir(mode=0o700)
    (patient.home / "daemon.sock").write_text("not a socket")
    found = patient.doctor().of("socket", "fault")
    assert "is not a socket" in found["text"] and "rm " in found["repair"]


def test_a_stopped_holdfast_is_woken_only_when_asked_and_the_socket_of_a_killed_one_is_removed(
    patient: Patient,
) -> None:
    assert patient.holdfast.run("stop").returncode == 0
    found = patient.doctor().of("daemon", "note")
    assert "holdfast stop" in found["text"] and "holdfast serve" in found["repair"]
    assert patient.holdfast.daemon() is None
    assert patient.doctor("--fix").marks("daemon") == ["ok"]
    patient.holdfast.kill_daemon()
    path = place.socket_path(str(patient.home))
    assert Path(path).exists()
    report = patient.doctor("--fix")
    assert [(one["link"], path in one["text"]) for one in report.document["repairs"]] == [("socket", True)]
    assert report.of("daemon", "ok")["text"].startswith("was not running; started")
    assert report.status == 0


def test_a_postgresql_that_cannot_be_reached_is_named_without_its_password(patient: Patient) -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        patient.holdfast.settings["HOLDFAST_DATABASE_URL"] = f"postgresql://ann:s3cret-word@127.0.0.1:{port}/work"
        report = patient.doctor()
    found = report.of("store", "fault")
    assert f"127.0.0.1:{port}" in found["text"] and "HOLDFAST_DATABASE_URL" in found["repair"]
    assert "s3cret-word" not in report.text
    assert "store" in report.of("daemon", "note")["text"]
    del patient.holdfast.settings["HOLDFAST_DATABASE_URL"]


def test_a_postgresql_that_answers_is_told_with_its_version_and_user(
    patient: Patient, postgres: PostgresServer
) -> None:
    patient.holdfast.settings["HOLDFAST_DATABASE_URL"] = fresh_database(postgres, migrated=False)
    told = [patient.doctor().of("store", "ok")["text"] for _ in range(2)]
    assert patient.holdfast.run("stop").returncode == 0
    assert all(text.startswith("PostgreSQL ") and ", as " in text for text in told)
    assert "empty" in told[0] and "schema" in told[1]


@pytest.mark.anyio
async def test_a_telegram_token_that_is_refused_is_found_and_not_shown(patient: Patient) -> None:
    refused = TOKEN.replace("4711:", "4712:")
    async with bot_api() as api:
        patient.holdfast.settings |= {
            "HOLDFAST_TELEGRAM_TOKEN": refused,
            "HOLDFAST_TELEGRAM_API": f"http://127.0.0.1:{api.port}/bot",
        }
        report = await asyncio.to_thread(patient.doctor)
        patient.holdfast.settings["HOLDFAST_TELEGRAM_TOKEN"] = TOKEN
        sound = await asyncio.to_thread(patient.doctor)
        await asyncio.to_thread(patient.holdfast.run, "stop")
    found = report.of("telegram", "fault")
    assert "does not know the bot" in found["text"] and "HOLDFAST_TELEGRAM_TOKEN" in found["repair"]
    assert sound.of("telegram", "ok")["text"] == "the bot @holdfast_bot is accepted by Telegram"
    assert refused not in report.text and TOKEN not in sound.text


def test_a_setting_that_cannot_be_read_is_a_fault_and_no_traceback(patient: Patient) -> None:
    patient.holdfast.settings["HOLDFAST_PORT"] = "many"
    report = patient.doctor()
    patient.holdfast.settings["HOLDFAST_PORT"] = "0"
    assert "HOLDFAST_PORT" in report.of("settings", "fault")["text"] and report.status == 1


@contextlib.contextmanager
def older_daemon(home: Path) -> Iterator[None]:
    """What a daemon of an older Holdfast looks like from outside; it stops when it is asked to."""
    lock = HomeLock.take(home, by_hand=False)
    read_or_make(home / "key")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(place.socket_place(str(home)))
    listener.listen()
    status = {"version": "0.0.1", "pid": os.getpid(), "started_by": "relay", "clients": 0, "http": "off"}

    def serve() -> None:
        with contextlib.suppress(OSError):  # it is closed when the test is over
            while True:
                visitor, _ = listener.accept()
                with visitor, visitor.makefile("rb") as lines:
                    asked = json.loads(lines.readline() or "{}")
                    if asked.get("holdfast") == "command":
                        visitor.sendall(json.dumps({"ok": True, "result": status}).encode() + b"\n")
                if asked.get("name") == "stop":
                    break
        listener.close()
        lock.release()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)
