"""A backup of one's own comes back whole; one from elsewhere opens no door and sets nobody to work."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from tests.backups import forged
from tests.installation import Installation
from tests.postgres import fresh_database
from tests.process.test_adopting import at_a_terminal

TEAM = "shop"


@pytest.fixture
def machine(embedded: Installation, tmp_path: Path) -> Installation:
    """A home with a team, a key and a message that waits; no daemon."""
    (tmp_path / "project").mkdir()
    embedded.home.mkdir(mode=0o700, exist_ok=True)
    team = {"project": str(tmp_path / "project"), "delivery": "hook"}
    (embedded.home / "teams.json").write_text(json.dumps({"teams": {TEAM: team}}))
    assert embedded.run("key", "create", "phone").returncode == 0
    assert embedded.run("send", TEAM, "--id", "mine", "the owner's own").returncode == 0
    return embedded


def backed_up(machine: Installation, tmp_path: Path) -> Path:
    done = machine.run("backup", str(tmp_path / "backup"), "--replace")
    assert done.returncode == 0, done.stderr
    return tmp_path / "backup"


def waits(machine: Installation) -> tuple[int, int]:
    """How many messages wait for the agent, and how many for the owner's word."""
    target = json.loads(machine.run("queue", "--json").stdout)["targets"][TEAM]
    return target["pending"], target.get("held", 0)


def test_a_backup_of_ones_own_comes_back_whole_by_one_command(machine: Installation, tmp_path: Path) -> None:
    file = backed_up(machine, tmp_path)
    moved = shutil.move(file, tmp_path / "moved")
    assert machine.run("key", "revoke", "phone").returncode == 0
    done = machine.run("restore", str(moved))
    assert done.returncode == 0 and "not made by" not in done.stdout, done.stdout + done.stderr
    assert "phone" in machine.run("key", "list").stdout and "revoked" not in machine.run("key", "list").stdout
    assert waits(machine) == (1, 0)
    (before,) = machine.home.glob("holdfast.db.before-restore-*")
    assert "not made by" not in machine.run("restore", str(before)).stdout, "what was replaced is one's own as well"


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_foreign_backup_brings_no_key_no_trust_and_no_work(
    engine: str, machine: Installation, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = backed_up(machine, tmp_path)
    forged(file, TEAM)
    if engine == "postgres":
        url = fresh_database(request.getfixturevalue("postgres"), migrated=False)
        machine.settings["HOLDFAST_DATABASE_URL"] = url
    done = machine.run("restore", str(file))
    assert done.returncode == 0, done.stderr
    for told in ("2 keys", "1 projects", "4 waiting messages, held", "1 waiting notices", "1 waiting tasks", "1 asks"):
        assert told in done.stdout, (told, done.stdout)
    keys = machine.run("key", "list").stdout
    assert keys.count("owner") == 1 and "phone" not in keys, "no key but the one in this data directory"
    assert waits(machine) == (0, 5), "the owner's own, the forged two, the notice and the task"
    listed = machine.run("release").stdout
    assert "evil for shop" in listed and 'a backup of another installation, adopted; there from "the owner"' in listed
    told = json.loads(machine.run("pull", TEAM, "--json").stdout)["updates"]
    assert {(update["type"], update["from"]) for update in told} == {("adopted", "a backup of another installation")}
    assert machine.run("verify").returncode == 0


def test_a_person_says_at_a_terminal_that_a_backup_is_theirs(machine: Installation, tmp_path: Path) -> None:
    file = backed_up(machine, tmp_path)
    (machine.home / "made-backups").unlink()  # as after the loss of a disk
    for answer, pending in (("no", (0, 1)), ("mine", (1, 0))):
        told, code = at_a_terminal(machine, answer, "restore", str(file), asked=b"type mine")
        assert code == 0 and "1 keys" in told, told
        assert waits(machine) == pending
    (machine.home / "made-backups").unlink()
    managed = machine.run("restore", str(file), "--mine", env={"HOLDFAST_MANAGED": "x"})
    assert managed.returncode == 1 and "managed agent" in managed.stderr
    assert machine.run("restore", str(file), "--mine").returncode == 0
    assert waits(machine) == (1, 0) and "phone" in machine.run("key", "list").stdout


def _sql(text: str) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        connection = apsw.Connection(str(file))
        connection.execute(text)
        connection.close()

    return change


def _packed(file: Path) -> None:
    file.write_bytes(gzip.compress(bytes(10_000_000)))


def _full_of_holes(file: Path) -> None:
    with file.open("r+b") as content:
        content.truncate(2**43)


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a trigger": (
        _sql("CREATE TRIGGER evil AFTER INSERT ON thoughts BEGIN UPDATE api_keys SET revoked_at = NULL; END"),
        "'evil' differs from what Holdfast creates",
    ),
    "signing keys": (_sql("CREATE TABLE signing_keys (kid, secret, created_at, retired_at)"), "'signing_keys'"),
    "an index that computes": (_sql("CREATE INDEX evil ON events (hex(zeroblob(1000)))"), "'evil'"),
    "a packed file": (_packed, "is not a SQLite file"),
    "a file full of holes": (_full_of_holes, "free; nothing was changed"),
}


def test_a_hostile_backup_is_refused_with_nothing_changed(machine: Installation, tmp_path: Path) -> None:
    good = backed_up(machine, tmp_path)
    for what, (change, expected) in HOSTILE.items():
        bad = tmp_path / "bad"
        shutil.copy(good, bad)
        change(bad)
        for more in ((), ("--mine",)):
            done = machine.run("restore", str(bad), *more)
            assert done.returncode == 1 and expected in done.stderr, (what, done.stdout, done.stderr)
    assert waits(machine) == (1, 0) and "phone" in machine.run("key", "list").stdout
