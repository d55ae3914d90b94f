"""Commands that a project brings: run only as they are trusted, and asked again when the change is another one."""

from __future__ import annotations

from pathlib import Path

from tests.installation import HOLDFAST, run_at_terminal
from tests.process.agent import Agent
from tests.repository import Repository
from tests.shared_daemon import Guest

SETTINGS = ".holdfast/protocol.toml"


def _settings(*argv: str) -> str:
    return f"protocol = 'simple'\n[gates.QUALITY_CHECKS]\ncommand = {list(argv)!r}\n"


def _trust(shared_embedded: Guest, project: Path) -> None:
    done = shared_embedded.at_terminal("trust", str(project))
    assert done.returncode == 0, done.stdout + done.stderr


def _begin(agent: Agent, repository: Repository) -> None:
    agent.call("session_start", objective="Check")
    evidence = f"README.md {repository.sha256('README.md')}"
    agent.call("record_evidence", phase="CONTEXT_RETRIEVAL", evidence_type="content_hash", evidence=evidence)
    agent.call("advance_phase", to="WORKING")


def test_a_command_runs_only_after_trust_and_a_change_asks_again(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project", {"README.md": "# A\n", SETTINGS: _settings("true")})
    with Agent(shared_embedded, repository.path) as agent:
        _begin(agent, repository)
        assert "holdfast trust" in agent.call("validate_gate", phase="QUALITY_CHECKS")["message"]
        _trust(shared_embedded, repository.path)
        assert agent.call("validate_gate", phase="QUALITY_CHECKS")["status"] == "PASS"
        repository.write(SETTINGS, _settings("true", "again"))
        assert agent.call("validate_gate", phase="QUALITY_CHECKS")["status"] == "FAIL"
        _trust(shared_embedded, repository.path)
        assert agent.call("validate_gate", phase="QUALITY_CHECKS")["status"] == "PASS"
        shared_embedded.run("trust", str(repository.path), "--revoke")
        assert agent.call("validate_gate", phase="QUALITY_CHECKS")["status"] == "FAIL"


def test_an_agent_with_a_terminal_of_its_own_making_may_not_trust_for_itself(
    shared_embedded: Guest, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "project", {"README.md": "# A\n", SETTINGS: _settings("true")})
    environment = {**shared_embedded.environment(), "CLAUDECODE": "1"}
    refused = run_at_terminal([str(HOLDFAST), "trust", str(repository.path)], environment, "yes")
    assert refused.returncode != 0 and "Only a person" in refused.stdout and "not an agent's" in refused.stdout
    assert shared_embedded.at_terminal("trust", str(repository.path)).returncode == 0


def test_trusting_harmless_settings_does_not_run_what_a_run_began_with(shared_embedded: Guest, tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    repository = Repository(tmp_path / "project", {"README.md": "# A\n", SETTINGS: _settings("touch", str(marker))})
    with Agent(shared_embedded, repository.path) as agent:
        _begin(agent, repository)
        repository.write(SETTINGS, _settings("true"))
        _trust(shared_embedded, repository.path)
        assert agent.call("validate_gate", phase="QUALITY_CHECKS")["status"] == "PASS"
        repository.write(SETTINGS, "protocol = 'simple'\nenforcement = 'off'\n")
        shared_embedded.at_terminal("trust", str(repository.path))
        assert agent.call("validate_gate", phase="QUALITY_CHECKS")["status"] == "FAIL", "a command is not taken away"
    assert not marker.exists()


def test_a_gate_that_judged_an_earlier_change_is_asked_again_at_the_end(shared_embedded: Guest, tmp_path: Path) -> None:
    files = {"README.md": "# A\n", SETTINGS: _settings("test", "!", "-e", "broken"), "code.py": "x = 1\n"}
    repository = Repository(tmp_path / "project", files)
    _trust(shared_embedded, repository.path)
    with Agent(shared_embedded, repository.path) as agent:
        _begin(agent, repository)
        repository.write("code.py", "x = 2\n")
        assert agent.call("advance_phase")["phase"] == "QUALITY_CHECKED"
        repository.write("broken", "after the check\n")
        repository.commit()
        refusal = agent.refused("session_end", summary="Done")
        assert refusal.startswith("E_GATE_UNMET") and "QUALITY_CHECKS" in refusal
        (repository.path / "broken").unlink()
        repository.commit("mended")
        assert agent.call("session_end", summary="Done")["status"] == "COMPLETE"


def test_the_validator_tells_by_its_exit_status(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    place = str(repository.path)
    assert shared_embedded.run("protocol", "validate", place).returncode == 2
    with Agent(shared_embedded, repository.path) as agent:
        agent.call("session_start", objective="Validate")
        assert shared_embedded.run("protocol", "validate", place, "--pre-commit").returncode == 1
        evidence = f"README.md {repository.sha256('README.md')}"
        agent.call("record_evidence", phase="CONTEXT_RETRIEVAL", evidence_type="content_hash", evidence=evidence)
        assert shared_embedded.run("protocol", "validate", place, "--pre-commit").returncode == 0
        repository.write("work.txt", "done\n")
        assert shared_embedded.run("protocol", "validate", place).returncode == 1, "nothing is committed yet"
        repository.commit()
        assert shared_embedded.run("protocol", "validate", place, "--json").returncode == 0
