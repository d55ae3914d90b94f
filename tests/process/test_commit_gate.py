"""Git's own gate from outside: it follows the run over kills, and goes with the project and with Holdfast."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.installation import HOLDFAST, Installation, wait_until
from tests.process.agent import Agent
from tests.repository import ENVIRONMENT, Repository
from tests.shared_daemon import Guest

ENFORCE = {"README.md": "# A project\n", ".holdfast/protocol.toml": 'enforcement = "enforce"\n'}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "project", ENFORCE)


def commit(repository: Repository) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **ENVIRONMENT}
    command = ["git", "commit", "--allow-empty", "-m", "too early?"]
    return subprocess.run(command, cwd=repository.path, env=env, capture_output=True, text=True)


def hook(repository: Repository) -> Path:
    return repository.path / ".git/hooks/reference-transaction"


def meet_the_gate(agent: Agent, repository: Repository) -> None:
    evidence = f"README.md {repository.sha256('README.md')}"
    agent.call("record_evidence", phase="CONTEXT_RETRIEVAL", evidence_type="content_hash", evidence=evidence)
    agent.call("validate_gate", phase="CONTEXT_RETRIEVAL")


def test_a_killed_daemon_leaves_a_gate_that_is_still_right(embedded: Installation, repository: Repository) -> None:
    with Agent(embedded, repository.path) as agent:
        session = agent.call("session_start", objective="Mend the fence")["session_id"]
        embedded.kill_daemon()
        refused = commit(repository)
        assert refused.returncode != 0 and session in refused.stderr and "CONTEXT_RETRIEVAL" in refused.stderr
        meet_the_gate(agent, repository)
        assert not hook(repository).exists()
        embedded.kill_daemon()
        assert commit(repository).returncode == 0


def test_a_gate_that_a_killed_daemon_did_not_write_or_remove_is_settled_by_the_next(
    embedded: Installation, repository: Repository
) -> None:
    with Agent(embedded, repository.path) as agent:
        agent.call("session_start", objective="Mend the fence")
        ours, gate = hook(repository).read_text(), (repository.path / ".git/holdfast-gate").read_text()
        embedded.kill_daemon()
        hook(repository).unlink()
        (repository.path / ".git/holdfast-gate").unlink()
        agent.call("get_blocked_reason")
        assert commit(repository).returncode != 0
        meet_the_gate(agent, repository)
        embedded.kill_daemon()
        hook(repository).write_text(ours)
        hook(repository).chmod(0o755)
        (repository.path / ".git/holdfast-gate").write_text(gate)
        assert commit(repository).returncode != 0
        embedded.serve()
        wait_until(lambda: not hook(repository).exists(), "the gate is settled")
        assert commit(repository).returncode == 0


def test_a_project_that_is_forgotten_is_no_longer_blocked(embedded: Installation, repository: Repository) -> None:
    linked = repository.worktree(repository.path.parent / "linked", "linked")
    with Agent(embedded, linked) as agent:
        agent.call("session_start", objective="Mend the fence")
    assert hook(repository).exists()
    forgotten = embedded.at_terminal("forget", str(repository.path))
    assert forgotten.returncode == 0, forgotten.stdout
    assert not hook(repository).exists()


def test_a_holdfast_that_is_removed_blocks_nobody(embedded: Installation, repository: Repository) -> None:
    with Agent(embedded, repository.path) as agent:
        agent.call("session_start", objective="Mend the fence")
    assert commit(repository).returncode != 0
    removed = embedded.run("setup", "claude", str(repository.path), "--local", "--remove", "--yes")
    assert removed.returncode == 0, removed.stderr
    assert commit(repository).returncode == 0


def test_init_remove_takes_the_hook_out(shared_embedded: Guest, repository: Repository) -> None:
    with Agent(shared_embedded, repository.path) as agent:
        agent.call("session_start", objective="Mend the fence")
    removed = shared_embedded.run("protocol", "init", str(repository.path), "--remove")
    assert "The git hook is removed" in removed.stdout
    assert commit(repository).returncode == 0


def test_init_show_and_doctor_say_that_the_gate_is_off_and_how_to_call_ours(
    shared_embedded: Guest, repository: Repository
) -> None:
    def said() -> dict[str, str]:
        show = shared_embedded.run("protocol", "show", str(repository.path))
        init = shared_embedded.run("protocol", "init", str(repository.path), "--no-hooks")
        env = {**shared_embedded.environment(), "HOME": str(repository.path.parent)}
        doctor = subprocess.run([str(HOLDFAST), "doctor"], cwd=repository.path, env=env, capture_output=True, text=True)
        assert "commit gate" in doctor.stdout, doctor.stderr
        return {"show": show.stdout, "init": init.stdout, "doctor": doctor.stdout}

    def gate_off() -> object:
        return json.loads(shared_embedded.run("protocol", "show", str(repository.path), "--json").stdout)["gate_off"]

    assert not any("gate is off" in text for text in said().values())
    assert gate_off() is None
    repository.git("config", "core.hooksPath", ".husky")
    for command, text in said().items():
        assert "gate is off" in text and "holdfast-gate.sh" in text, command
    assert ".husky" in str(gate_off())
    with Agent(shared_embedded, repository.path) as agent:
        agent.call("session_start", objective="Mend the fence")
    wait_until(lambda: ".husky" in shared_embedded.run("status").stdout, "the status names the worktree")
    assert not (repository.path / ".husky").exists() and not hook(repository).exists()


def test_a_stop_in_the_middle_of_a_run_is_recorded_with_who_and_when(
    embedded: Installation, repository: Repository
) -> None:
    with Agent(embedded, repository.path) as agent:
        agent.call("session_start", objective="Mend the fence")
    stopped = embedded.run("stop")
    assert stopped.returncode == 0, stopped.stderr
    assert commit(repository).returncode != 0, "git refuses without a daemon too"
    embedded.serve()
    with Agent(embedded, repository.path) as agent:
        text = agent.request("resources/read", {"uri": "holdfast://protocol/violations"})["contents"][0]["text"]
    (row,) = [line for line in text.splitlines() if "`holdfast stop`" in line]
    assert re.match(r"\| \d\d:\d\d:\d\d \| INIT \| MUST keep Holdfast running .* process \d+", row), row
    assert "python" in row or "pytest" in row, "it names who called it"
