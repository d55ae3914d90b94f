"""`holdfast setup` as a command: it shows, asks once, does all or nothing, and ends with doctor."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.installation import HOLDFAST, PATIENCE, TO_THE_TOOLS, Installation
from tests.process.hooks import left_behind

from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.agents.settings import CORE_TOOLS


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A sound Holdfast whose daemon runs for the tests of this module alone: setup ends with a look at all of it."""
    folder = tmp_path_factory.mktemp("served")
    installation = Installation(folder / "data")
    installation.settings["HOME"] = str(folder)
    try:
        installation.serve()
        yield installation
    finally:
        installation.close()


@pytest.fixture
def person(served: Installation, tmp_path: Path) -> Installation:
    """Somebody with a home directory, Holdfast, and no agent's command on the PATH."""
    installation = Installation(served.home)
    installation.settings |= {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    return installation


def answered(person: Installation, answer: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Holdfast at a terminal where somebody types this."""
    typing, terminal = pty.openpty()
    try:
        os.write(typing, answer.encode())
        return subprocess.run(
            [str(HOLDFAST), *arguments],
            env=person.environment(),
            stdin=terminal,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    finally:
        os.close(typing)
        os.close(terminal)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_without_a_terminal_it_refuses_and_says_what_to_do(person: Installation, tmp_path: Path) -> None:
    done = person.run("setup", "claude")
    assert done.returncode == 1
    assert "--yes" in done.stderr and "SessionStart" in done.stdout
    assert files(tmp_path) == {}


def test_a_dry_run_shows_everything_and_changes_nothing(person: Installation, tmp_path: Path) -> None:
    done = person.run("setup", "claude", "--dry-run", "--allow", "all")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"+++ {tmp_path / '.claude.json'}" in done.stdout
    assert f"+++ {tmp_path / '.claude' / 'settings.json'}" in done.stdout
    assert '+      "mcp__holdfast"' in done.stdout
    assert files(tmp_path) == {}


@pytest.mark.parametrize("answer", ["n\n", "\n", "maybe\n", "\x04"])
def test_whoever_does_not_agree_gets_nothing(person: Installation, tmp_path: Path, answer: str) -> None:
    done = answered(person, answer, "setup", "claude")
    assert done.returncode == 1
    assert done.stdout.endswith("Nothing was changed.\n")
    assert files(tmp_path) == {}


@pytest.mark.parametrize(("answer", "rules"), [("y\n", []), ("a\n", [f"mcp__holdfast__{tool}" for tool in CORE_TOOLS])])
def test_it_asks_once_offers_the_rules_and_ends_with_doctor(
    person: Installation, tmp_path: Path, answer: str, rules: list[str]
) -> None:
    done = answered(person, answer, "setup", "claude")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Continue?") == 1
    told, _, chain = done.stdout.partition("Done.\n")
    assert "mcp" in told and "hooks" in chain and str(person.home) in chain
    settings = json.loads((tmp_path / ".claude" / "settings.json").read_text())
    assert settings.get("permissions", {}).get("allow", []) == rules
    again = person.run("setup", "claude", "--dry-run")
    assert (again.returncode, again.stdout) == (0, "Everything is already set up.\n")
    gone = person.run("setup", "claude", "--remove", "--yes")
    assert gone.returncode == 0, gone.stderr
    assert files(tmp_path) == {}
    assert person.run("setup", "claude", "--remove").stdout == "Holdfast is not set up here.\n"


def test_it_ends_with_the_unfinished_work_on_this_machine_and_offers_the_index_once(
    person: Installation, tmp_path: Path
) -> None:
    config = tmp_path / ".claude"
    config.mkdir()
    assert ending(person.run("setup", "claude", "--yes")) == ["No unfinished work was found on this machine."]
    cut_off: dict[Path, Path] = {}
    for number in range(6):
        project = tmp_path / f"the shop {number}"
        project.mkdir()
        folder = config / "projects" / project_key(project)
        folder.mkdir(parents=True)
        cut_off[project] = left_behind(folder, project, f"Mend fence {number}.\x1b[2J")
    told = ending(person.run("setup", "claude", "--yes"))
    assert told[0] == "6 conversations were cut off:" and len(told) == 8
    lines = [f"): cd '{project}' && claude --resume {left.stem}" for project, left in cut_off.items()]
    assert all(any(line.endswith(end) for end in lines) for line in told[1:6])
    assert all(line.startswith("  Mend fence ") and "\x1b" not in line for line in told[1:6])
    assert told[6] == "and 1 more: holdfast"
    assert "`holdfast import claude --all` indexes" in told[7]
    assert len(ending(person.run("setup", "claude", "--yes"))) == 7

    (person.home / "setup" / "index-offered").unlink()
    asked = answered(person, "y\n", "setup", "claude")
    assert asked.returncode == 0 and "Index all conversations" in asked.stdout
    assert "indexed." in ending(asked)[-1] and "Mend fence 5." in person.run("find", "fence").stdout
    assert "Index all" not in answered(person, "", "setup", "claude").stdout


def ending(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What setup printed after the last empty line."""
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n").rpartition("\n\n")[2].split("\n")


def test_malformed_settings_are_named_and_left(person: Installation, tmp_path: Path) -> None:
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"hooks": ')
    done = person.run("setup", "claude", "--yes")
    assert done.returncode == 1
    assert done.stderr.startswith(f"holdfast: {settings}, line 1") and "Traceback" not in done.stderr
    assert files(tmp_path) == {".claude/settings.json": b'{"hooks": '}


def test_local_settings_stay_out_of_git(person: Installation, tmp_path: Path) -> None:
    project = tmp_path / "project"
    subprocess.run(["git", "init", "-q", str(project)], check=True, timeout=PATIENCE)
    done = person.run("setup", "claude", "--local", "--yes", str(project))
    assert done.returncode == 0, done.stderr
    assert (project / ".claude" / "settings.local.json").exists()
    status = subprocess.run(
        ["git", "-C", str(project), "status", "--porcelain"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert status.stdout == ""


def test_another_agent_is_set_up_and_left_again(person: Installation, tmp_path: Path) -> None:
    config = tmp_path / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('model = "large" # mine\n')
    assert person.run("setup", "codex", "--yes").returncode == 0
    assert f'HOLDFAST_HOME = "{person.home}"' in config.read_text()
    assert person.run("setup", "codex", "--yes").stdout.startswith("Everything is already set up.")
    assert person.run("setup", "codex", "--remove", "--yes").returncode == 0
    assert config.read_text() == 'model = "large" # mine\n'


def test_a_project_that_is_no_directory_is_named(person: Installation) -> None:
    done = person.run("setup", "claude", "--project", "/no/such/place", "--yes")
    assert (done.returncode, done.stderr) == (1, "holdfast: DIR: /no/such/place is not a directory.\n")


def test_the_core_tools_that_can_be_allowed_are_those_of_the_catalog(person: Installation) -> None:
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in TO_THE_TOOLS)
    told = person.run("mcp", "--toolsets", "core", stdin=lines)
    (listed,) = [line for line in map(json.loads, told.stdout.splitlines()) if line.get("id") == 2]
    everybody = {tool["name"] for tool in listed["result"]["tools"]} - {"reconnect_session"}
    assert everybody == set(CORE_TOOLS)
