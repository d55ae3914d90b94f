"""A secret that protects nothing, and a data directory of another user, are refused in one line with the repair."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.installation import HOLDFAST, PATIENCE, Installation
from tests.process.agent import Agent
from tests.shared_daemon import Guest

NOBODY = 65534
SECRETS = ["key", "machine", "signing-keys"]
SECRET = "hX3mD9a-WqPz7LkTb2Ys8NfRc5VgJu1eOiQw4ZxE6Mp"  # noqa: S105 - of no installation


def _empty(path: Path) -> None:
    path.write_text("")
    path.chmod(0o600)


def _blank(path: Path) -> None:
    path.write_text(" \n" * 50)
    path.chmod(0o600)


def _short(path: Path) -> None:
    path.write_text(SECRET[:-1])
    path.chmod(0o600)


def _no_text(path: Path) -> None:
    path.write_bytes(b"\xff" * 64)
    path.chmod(0o600)


def _link(path: Path) -> None:
    elsewhere = path.with_name(f"{path.name} elsewhere")
    elsewhere.write_text(SECRET)
    elsewhere.chmod(0o600)
    path.symlink_to(elsewhere)


def _pipe(path: Path) -> None:
    os.mkfifo(path, 0o600)


def _open_to_a_group(path: Path) -> None:
    path.write_text(SECRET)
    path.chmod(0o640)


def _open_to_all(path: Path) -> None:
    path.write_text(SECRET)
    path.chmod(0o604)


def _of_another_user(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away; CI runs this as root")
    path.write_text(SECRET)
    path.chmod(0o600)
    os.chown(path, NOBODY, NOBODY)


FLAWS: list[tuple[Callable[[Path], None], str, str]] = [
    (_empty, "is empty", "rm "),
    (_blank, "is empty", "rm "),
    (_short, "has 42 characters", "rm "),
    (_no_text, "does not hold text", "rm "),
    (_link, "is not a regular file", "rm "),
    (_pipe, "is not a regular file", "rm "),
    (_open_to_a_group, "is open to others (mode 0640)", "chmod 600 "),
    (_open_to_all, "is open to others (mode 0604)", "chmod 600 "),
    (_of_another_user, f"belongs to user {NOBODY}", "rm "),
]


@pytest.mark.parametrize(("spoil", "wrong", "repair"), FLAWS, ids=[flaw[0].__name__.strip("_") for flaw in FLAWS])
def test_a_daemon_does_not_start_on_a_key_that_protects_nothing(
    embedded: Installation, spoil: Callable[[Path], None], wrong: str, repair: str
) -> None:
    embedded.home.mkdir(mode=0o700)
    key = embedded.home / "key"
    spoil(key)
    for command in (["serve"], ["key"]):
        told = embedded.run(*command)
        (line,) = told.stderr.splitlines()
        assert (told.returncode, told.stdout) == (1, ""), told
        assert line.startswith(f"holdfast: {key} {wrong}") and f"{repair}" in line and str(key) in line.split(wrong)[1]


@pytest.mark.parametrize("name", SECRETS[1:])
@pytest.mark.parametrize(
    ("spoil", "wrong"), [(_empty, "is empty"), (_open_to_all, "is open to others"), (_pipe, "not a")]
)
def test_a_daemon_does_not_start_on_any_other_secret_that_protects_nothing(
    embedded: Installation, name: str, spoil: Callable[[Path], None], wrong: str
) -> None:
    embedded.home.mkdir(mode=0o700)
    spoil(embedded.home / name)
    told = embedded.run("serve")
    (line,) = told.stderr.splitlines()
    assert (told.returncode, told.stdout) == (1, "")
    assert line.startswith(f"holdfast: {embedded.home / name} ") and wrong in line


@pytest.mark.parametrize("content", ["[]" + " " * 60 + "x", '[{"kid": "k", "secret": "", "created_at": 1}]' + " " * 20])
def test_a_signing_key_that_anybody_could_guess_is_refused(embedded: Installation, content: str) -> None:
    embedded.home.mkdir(mode=0o700)
    (embedded.home / "signing-keys").write_text(content)
    (embedded.home / "signing-keys").chmod(0o600)
    told = embedded.run("serve")
    (line,) = told.stderr.splitlines()
    assert told.returncode == 1 and "signing" in line and "Remove it" in line, told


def test_an_agent_is_told_why_its_daemon_refuses_the_key(embedded: Installation, project: Path) -> None:
    embedded.home.mkdir(mode=0o700)
    _empty(embedded.home / "key")
    embedded.settings["HOLDFAST_DAEMON_WAIT"] = "5"
    with Agent(embedded, project) as agent:
        refused = agent.answer(agent.ask("tools/call", {"name": "init", "arguments": {"operation": "get_state"}}))
    assert f"{embedded.home / 'key'} is empty. Remove it" in refused["error"]["message"]


def test_doctor_closes_a_key_that_keeps_the_daemon_from_starting(embedded: Installation) -> None:
    embedded.home.mkdir(mode=0o700)
    _open_to_all(embedded.home / "key")
    found = embedded.run("doctor")
    assert found.returncode == 1 and f"{embedded.home / 'key'} is open to others (mode 0604)." in found.stdout
    embedded.run("doctor", "--fix")
    assert (embedded.home / "key").stat().st_mode & 0o777 == 0o600
    assert embedded.run("status").returncode == 0, "the daemon starts once its key is closed"


def test_an_empty_key_is_nobody_s(shared_embedded: Guest) -> None:
    place = urlsplit(shared_embedded.address())
    for header in ("Bearer", "Bearer ", "Bearer  ", "bearer \t", ""):
        client = http.client.HTTPConnection(str(place.hostname), place.port, timeout=PATIENCE)
        with contextlib.closing(client):
            client.request("GET", "/mcp", headers={"Authorization": header})
            assert client.getresponse().status == 401, header


@pytest.fixture
def foreign(embedded: Installation) -> Iterator[Path]:
    """A data directory of another user, with a socket that answers whoever asks."""
    if os.geteuid() != 0:  # then a directory of root's is foreign as it is
        yield Path("/usr")
        return
    embedded.home.mkdir(mode=0o777)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trap:
        trap.bind(str(embedded.home / "daemon.sock"))
        trap.listen()
        trap.setblocking(False)
        os.chown(embedded.home / "daemon.sock", NOBODY, NOBODY)
        os.chown(embedded.home, NOBODY, NOBODY)
        embedded.home.chmod(0o777)
        try:
            yield embedded.home
            with pytest.raises(BlockingIOError):
                trap.accept()
        finally:
            os.chown(embedded.home, 0, 0)
            (embedded.home / "daemon.sock").unlink()
            embedded.home.chmod(0o700)


COMMANDS = [
    ["serve"],
    ["serve", "--detach"],
    ["status"],
    ["stop"],
    ["key"],
    ["key", "create", "phone"],
    ["audit"],
    ["verify"],
    ["send", "homelab", "hello"],
    ["queue"],
    ["tail"],
    ["teams", "list"],
    ["approve"],
    [],
    ["show"],
    ["resume"],
    ["inbox"],
    ["saved"],
    ["acknowledge-loss"],
    ["mcp"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_home_of_another_user_is_refused_by_every_command(foreign: Path, words: list[str]) -> None:
    before = sorted(path.name for path in foreign.iterdir())
    told = _run(foreign, *words)
    (line,) = told.stderr.splitlines()
    assert (told.returncode, told.stdout) == (1, ""), told
    assert f"{foreign} belongs to user " in line and "HOLDFAST_HOME" in line
    assert sorted(path.name for path in foreign.iterdir()) == before, "nothing is written there"


def test_a_hook_asks_no_daemon_in_a_home_of_another_user(foreign: Path) -> None:
    before = sorted(path.name for path in foreign.iterdir())
    told = _run(foreign, "hook", "SessionStart", stdin='{"session_id": "s", "cwd": "/", "source": "startup"}')
    assert told.returncode == 0 and f"{foreign} belongs to another user" in told.stderr
    assert _run(foreign, "statusline", stdin="{}").stdout == ""
    assert sorted(path.name for path in foreign.iterdir()) == before


def test_doctor_names_the_owner_of_a_foreign_home(foreign: Path) -> None:
    told = _run(foreign, "doctor")
    assert told.returncode == 1 and f"{foreign} belongs to user " in told.stdout and "Traceback" not in told.stderr


def _run(home: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**Installation(home).environment(), "HOLDFAST_DAEMON_WAIT": "1"}
    return subprocess.run(
        [str(HOLDFAST), *words], env=environment, input=stdin, capture_output=True, text=True, timeout=PATIENCE
    )
