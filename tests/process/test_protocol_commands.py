"""`holdfast protocol` and `holdfast trust`, as people and scripts use them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.installation import HOLDFAST, Installation
from tests.shared_daemon import Guest

SETTINGS = ".holdfast/protocol.toml"
COMMAND = '[gates.QUALITY_CHECKS]\ncommand = ["make", "check it"]\n'


@pytest.fixture
def repository(project: Path) -> Path:
    """A git repository with nothing in it."""
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)
    return project


def write(project: Path, text: str) -> None:
    (project / SETTINGS).parent.mkdir(exist_ok=True)
    (project / SETTINGS).write_text(text)


def shown(installation: Installation, project: Path) -> dict[str, object]:
    told = installation.run("protocol", "show", str(project), "--json")
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert isinstance(found, dict)
    return found


def test_check_names_the_file_and_line_of_every_fault(shared_embedded: Guest, repository: Path) -> None:
    assert shared_embedded.run("protocol", "check", str(repository)).returncode == 0
    write(repository, 'enforcement = "hard"\n\n[gates.GIT_COMMIT]\nfile_read = ["../secret"]\n')
    checked = shared_embedded.run("protocol", "check", str(repository))
    assert checked.returncode == 1
    assert checked.stdout.startswith(f"{SETTINGS}:1: enforcement must be one of")
    write(repository, '[gates.GIT_COMMIT]\nfile_read = ["../secret"]\nblocking = 1\n')
    lines = shared_embedded.run("protocol", "check", str(repository)).stdout.splitlines()
    assert [line.split(" ")[0] for line in lines] == [f"{SETTINGS}:2:", f"{SETTINGS}:3:"]


def test_a_hostile_project_cannot_steer_the_terminal(embedded: Installation, repository: Path) -> None:
    """Nor without a daemon, where the commands open the store themselves."""
    write(repository, '[gates.QUALITY_CHECKS]\ncommand = ["a\\u001b[2Jb"]\n')
    for told in (embedded.run("protocol", "show", str(repository)), embedded.at_terminal("trust", str(repository))):
        assert "\x1b" not in told.stdout
        assert "\\x1b[2J" in told.stdout


def test_show_prints_the_chain_from_the_first_phase_to_the_last(shared_embedded: Guest, repository: Path) -> None:
    write(repository, COMMAND)
    told = shared_embedded.run("protocol", "show", str(repository))
    assert told.returncode == 0, told.stderr
    assert "protocol simple, enforcement warn, started by the agent, not trusted" in told.stdout
    rows = [line.split()[:3] for line in told.stdout.splitlines()[2:]]
    assert rows[0] == ["INIT", "CONTEXT_RETRIEVAL", "CONTEXT_LOADED"]
    assert rows[-1] == ["QUALITY_CHECKED", "GIT_COMMIT", "COMPLETE"]
    assert "make 'check it' (not run until `holdfast trust`)" in told.stdout


def test_trust_holds_for_what_was_shown_and_a_change_asks_again(shared_embedded: Guest, repository: Path) -> None:
    write(repository, COMMAND)
    unasked = shared_embedded.run("trust", str(repository), stdin="yes\n")
    assert unasked.returncode == 1
    assert "Only a person at a terminal" in unasked.stderr and "make 'check it'" in unasked.stdout
    assert shown(shared_embedded, repository)["trusted"] is False

    assert shared_embedded.at_terminal("trust", str(repository), answer="no").returncode == 1
    assert shown(shared_embedded, repository)["trusted"] is False
    assert shared_embedded.at_terminal("trust", str(repository)).returncode == 0
    assert shown(shared_embedded, repository)["trusted"] is True
    assert "already" in shared_embedded.run("trust", str(repository)).stdout

    write(repository, COMMAND.replace("check it", "harm"))
    assert shown(shared_embedded, repository)["trusted"] is False
    write(repository, COMMAND)
    assert shown(shared_embedded, repository)["trusted"] is True

    assert shared_embedded.run("trust", str(repository), "--revoke").returncode == 0
    assert shown(shared_embedded, repository)["trusted"] is False


def test_trust_refuses_a_project_with_faults_and_one_that_runs_nothing(
    shared_embedded: Guest, repository: Path
) -> None:
    assert "nothing to trust" in shared_embedded.run("trust", str(repository)).stdout
    write(repository, "[gates.NOBODY]\n")
    refused = shared_embedded.run("trust", str(repository))
    assert refused.returncode == 1
    assert f"{SETTINGS}:1" in refused.stderr
    assert shared_embedded.run("trust", str(repository / "nowhere")).returncode == 1


def test_trust_shows_the_servers_that_would_be_started(shared_embedded: Guest, repository: Path) -> None:
    (repository / ".mcp.json").write_text('{"mcpServers": {"serena": {"command": "./evil"}}}')
    told = shared_embedded.run("trust", str(repository)).stdout
    assert '{"command": "./evil"}' in told


def test_init_writes_a_protocol_that_can_be_used_and_does_so_once(shared_embedded: Guest, repository: Path) -> None:
    dry = shared_embedded.run("protocol", "init", str(repository), "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert 'protocol = "simple"' in dry.stdout and "PreToolUse" in dry.stdout
    assert {entry.name for entry in repository.iterdir()} == {".git"}

    made = shared_embedded.run("protocol", "init", str(repository), "--enforcement", "enforce")
    assert made.returncode == 0, made.stderr
    text = (repository / SETTINGS).read_text()
    found = shown(shared_embedded, repository)
    assert (found["protocol"], found["enforcement"], found["faults"]) == ("simple", "enforce", [])
    (settings,) = (repository / ".claude").glob("settings*.json")
    hooks = settings.read_text()
    assert set(json.loads(hooks)["hooks"]) >= {"PreToolUse", "PostToolUse", "Stop"}

    again = shared_embedded.run("protocol", "init", str(repository))
    assert again.returncode == 0, again.stderr
    assert ((repository / SETTINGS).read_text(), settings.read_text()) == (text, hooks)
    contradicted = shared_embedded.run("protocol", "init", str(repository), "--protocol", "agents")
    assert contradicted.returncode == 1
    assert "was not changed" in contradicted.stderr


def test_init_installs_no_hooks_where_none_are_wanted_and_takes_them_out_again(
    shared_embedded: Guest, repository: Path
) -> None:
    assert shared_embedded.run("protocol", "init", str(repository), "--no-hooks").returncode == 0
    assert not (repository / ".claude").exists()
    assert shared_embedded.run("protocol", "init", str(repository)).returncode == 0
    removed = shared_embedded.run("protocol", "init", str(repository), "--remove")
    assert removed.returncode == 0, removed.stderr
    (settings,) = (repository / ".claude").glob("settings*.json")
    assert "hook.py" not in settings.read_text()


def test_init_without_git_is_refused_with_the_next_step(shared_embedded: Guest, project: Path) -> None:
    refused = shared_embedded.run("protocol", "init", str(project))
    assert refused.returncode == 1
    assert "is not a git repository" in refused.stderr and "git init" in refused.stderr
    assert list(project.iterdir()) == []


def test_init_names_setup_where_the_agent_has_no_tools_or_no_hooks(shared_embedded: Guest, repository: Path) -> None:
    config = repository.parent / "config"
    env = {**shared_embedded.environment(), "CLAUDE_CONFIG_DIR": str(config)}

    def init(*options: str) -> str:
        command = [str(HOLDFAST), "protocol", "init", str(repository), *options]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "tools yet: `holdfast setup claude`" in init("--no-hooks")
    config.mkdir()
    (config / ".claude.json").write_text('{"mcpServers": {"holdfast": {"command": "holdfast", "args": ["mcp"]}}}')
    assert "hooks, so sessions get no evidence from it: `holdfast setup claude`" in init("--no-hooks")
    assert "holdfast setup" not in init()


def test_init_does_not_write_through_a_link_out_of_the_project(
    shared_embedded: Guest, repository: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (repository / ".holdfast").symlink_to(elsewhere)
    refused = shared_embedded.run("protocol", "init", str(repository))
    assert refused.returncode == 1
    assert "symbolic link" in refused.stderr
    assert not list(elsewhere.iterdir())


def test_init_for_a_document_says_what_is_still_missing(shared_embedded: Guest, repository: Path) -> None:
    made = shared_embedded.run("protocol", "init", str(repository), "--protocol", "document", "--no-hooks")
    assert made.returncode == 1
    assert "SESSION-PROTOCOL.md does not exist" in made.stdout


def test_validate_has_a_status_of_its_own_where_there_is_no_session(embedded: Installation, repository: Path) -> None:
    told = embedded.run("protocol", "validate", str(repository), "--json")
    assert told.returncode == 2
    assert json.loads(told.stdout)["status"] == "NONE"
    assert embedded.run("protocol", "validate", str(repository / "nowhere")).returncode == 2
