"""Gates that hold, and no dead ends: a MUST blocks or is written down, and every session can be ended truthfully."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.installation import wait_until
from tests.process.agent import Agent
from tests.repository import AGENTS_FILES, Repository
from tests.shared_daemon import Guest

from holdfast.process.alive import is_running

SETTINGS = ".holdfast/protocol.toml"
DOCUMENT = """\
# Session Protocol

## Session Start Protocol

### Phase 1: Context Retrieval (BLOCKING)

### Phase 2: Session Log Creation (REQUIRED)

1. The agent MUST create a session log file at `logs/YYYY-MM-DD-session-NN.json`

### Phase 3: Branch Verification (BLOCKING)

1. The agent MUST NOT be on branch `main`

## Session End Protocol

### Phase 1: Documentation Update (REQUIRED)

1. The agent MUST NOT update `.agents/HANDOFF.md`

### Phase 2: Quality Checks (REQUIRED)

### Phase 3: Retrospective (REQUIRED)

### Phase 4: Git Operations

1. The agent MUST commit with a message
"""


def _resource(agent: Agent, name: str) -> str:
    text: str = agent.request("resources/read", {"uri": f"holdfast://protocol/{name}"})["contents"][0]["text"]
    return text


def _hash(agent: Agent, repository: Repository, gate: str, name: str) -> None:
    evidence = f"{name} {repository.sha256(name)}"
    agent.call("record_evidence", phase=gate, evidence_type="content_hash", evidence=evidence)


def test_a_real_document_lets_nothing_through_with_nothing_done(shared_embedded: Guest, tmp_path: Path) -> None:
    settings = 'protocol = "document"\n'
    repository = Repository(tmp_path / "project", {SETTINGS: settings, "SESSION-PROTOCOL.md": DOCUMENT})
    with Agent(shared_embedded, repository.path) as agent:
        run = agent.call("session_start", objective="Do nothing")["session_id"]
        assert f"logs/{run}.json does not exist" in agent.refused("session_end", summary="All of it is finished")
        repository.write(f"logs/{run}.json", '{"begun": true}\n')
        assert "on branch main" in agent.refused("session_end", summary="All of it is finished")
        repository.git("switch", "-q", "-c", "work")
        assert "RETROSPECTIVE" in agent.refused("session_end", summary="All of it is finished")
        agent.call("record_evidence", phase="RETROSPECTIVE", evidence_type="note", evidence="Learned to begin earlier")
        refusal = agent.refused("session_end", summary="All of it is finished")
        assert "GIT_COMMIT" in refusal and f"logs/{run}.json" in refusal
        repository.commit("the log")
        assert agent.call("session_end", summary="Now it is")["status"] == "COMPLETE"


def test_a_must_that_does_not_block_is_recorded_as_a_violation(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project", AGENTS_FILES)
    with Agent(shared_embedded, repository.path) as agent:
        run = agent.call("session_start", objective="Forget the handoff")["session_id"]
        _hash(agent, repository, "SKILL_VALIDATION", ".serena/memories/skill-usage-mandatory.md")
        _hash(agent, repository, "CONTEXT_RETRIEVAL", ".agents/HANDOFF.md")
        _hash(agent, repository, "CONTEXT_RETRIEVAL", ".agents/governance/PROJECT-CONSTRAINTS.md")
        repository.write(f".agents/sessions/{run}.md", "# Log\n\nBegun.\n")
        assert agent.call("advance_phase", to="DOCUMENTING")["phase"] == "DOCUMENTING"
        violations = _resource(agent, "violations")
        assert "MUST DOCS_UPDATE" in violations and ".agents/HANDOFF.md was not changed" in violations


def test_a_project_without_skill_scripts_is_not_asked_for_them(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project", {"README.md": "# A\n", ".agents/HANDOFF.md": "# Handoff\n\nOpen.\n"})
    with Agent(shared_embedded, repository.path) as agent:
        agent.call("session_start", objective="Without skills")
        assert agent.call("validate_gate", phase="SKILL_VALIDATION")["status"] == "SKIPPED"
        repository.write(".claude/skills/own/SKILL.md", "# Own\n\nUse it.\n")
        assert agent.call("validate_gate", phase="SKILL_VALIDATION")["status"] == "PASS"


def test_a_file_that_was_moved_away_is_still_to_be_read(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    with Agent(shared_embedded, repository.path) as agent:
        agent.call("session_start", objective="Move it away")
        (repository.path / "README.md").rename(tmp_path / "README.md")
        refused = agent.call("validate_gate", phase="CONTEXT_RETRIEVAL")
        assert refused["status"] == "FAIL" and "restore it" in refused["message"]
        (tmp_path / "README.md").rename(repository.path / "README.md")
        _hash(agent, repository, "CONTEXT_RETRIEVAL", "README.md")
        (repository.path / "README.md").unlink()
        assert agent.call("validate_gate", phase="CONTEXT_RETRIEVAL")["status"] == "PASS", "it was read before"


@pytest.mark.parametrize("dirty", [False, True], ids=["clean", "the user's own changes"])
def test_a_session_that_only_read_ends(shared_embedded: Guest, tmp_path: Path, dirty: bool) -> None:
    repository = Repository(tmp_path / "project")
    if dirty:
        repository.write("notes.txt", "the user's\n")
    with Agent(shared_embedded, repository.path) as agent:
        agent.call("session_start", objective="Only look")
        _hash(agent, repository, "CONTEXT_RETRIEVAL", "README.md")
        repository.write("scratch.txt", "being tried\n")
        assert "GIT_COMMIT" in agent.refused("session_end", summary="Looked at it")
        (repository.path / "scratch.txt").unlink()
        ended = agent.call("session_end", summary="Looked at it")
        assert ended["status"] == "COMPLETE"
        assert [gate["status"] for gate in ended["gates"] if gate["phase"] == "GIT_COMMIT"] == ["SKIPPED"]


def test_a_session_that_cannot_be_completed_is_given_up(shared_embedded: Guest, tmp_path: Path) -> None:
    settings = 'protocol = "simple"\n[gates.QUALITY_CHECKS]\ncommand = ["false"]\n'
    repository = Repository(tmp_path / "project", {"README.md": "# A\n", SETTINGS: settings})
    with Agent(shared_embedded, repository.path) as agent:
        old = agent.call("session_start", objective="Nobody trusts this")["session_id"]
        assert "QUALITY_CHECKS" in str(agent.call("validate_gate", phase="ALL"))
        repository.write("work.txt", "half of it\n")
        assert "abort: true" in agent.call("get_blocked_reason")["give_up"]
        assert "summary" in agent.refused("session_end", summary="n/a", abort=True)
        ended = agent.call("session_end", summary="The owner must trust the command first", abort=True)
        assert (ended["status"], ended["session_id"]) == ("ABORTED", old)
        assert agent.refused("session_end", summary="Again", abort=True).startswith("E_NO_SESSION")
        history, violations = _resource(agent, "history"), _resource(agent, "violations")
        assert f"### {old}" in history and "ABORTED" in history
        assert "not met when the session was given up" in violations, "what was left undone is written down"
        agent.call("session_start", objective="The next one")


def test_what_blocks_is_named_also_where_another_check_of_the_gate_is_met(
    shared_embedded: Guest, tmp_path: Path
) -> None:
    settings = 'protocol = "simple"\n[gates.QUALITY_CHECKS]\ncommand = ["false"]\nfile_exists = ["README.md"]\n'
    repository = Repository(tmp_path / "project", {"README.md": "# A\n", SETTINGS: settings})
    with Agent(shared_embedded, repository.path) as agent:
        agent.call("session_start", objective="Nobody trusts this")
        _hash(agent, repository, "CONTEXT_RETRIEVAL", "README.md")
        agent.call("advance_phase", to="WORKING")
        assert agent.call("validate_gate", phase="QUALITY_CHECKS")["status"] == "FAIL"
        (missing, *_) = agent.call("get_blocked_reason")["missing"]
        assert "holdfast trust" in missing["missing"] and "README.md" not in missing["missing"]
        agent.call("session_end", summary="The owner must trust the command first", abort=True)


def test_giving_up_waits_for_no_command(shared_embedded: Guest, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    command = ["sh", "-c", f"touch {begun}; exec sleep 300"]
    settings = f'protocol = "simple"\n[gates.QUALITY_CHECKS]\ncommand = {json.dumps(command)}\n'
    repository = Repository(tmp_path / "project", {"README.md": "# A\n", SETTINGS: settings})
    assert shared_embedded.at_terminal("trust", str(repository.path)).returncode == 0
    with Agent(shared_embedded, repository.path) as agent, Agent(shared_embedded, repository.path) as other:
        agent.call("session_start", objective="Hang")
        _hash(agent, repository, "CONTEXT_RETRIEVAL", "README.md")
        with ThreadPoolExecutor(1) as pool:
            hanging = pool.submit(other.call, "session_end", summary="It hangs")
            wait_until(begun.exists, "the command to run")
            assert agent.call("session_end", summary="The command hangs", abort=True)["status"] == "ABORTED"
            other.process.kill()
            assert hanging.exception() is not None


def test_enforcement_and_gates_are_those_a_session_began_with(shared_embedded: Guest, tmp_path: Path) -> None:
    settings = 'protocol = "simple"\nenforcement = "enforce"\n'
    repository = Repository(tmp_path / "project", {"README.md": "# A\n", SETTINGS: settings})
    with Agent(shared_embedded, repository.path) as agent:
        agent.call("session_start", objective="Turn it off")
        (repository.path / SETTINGS).unlink()
        assert agent.call("get_blocked_reason")["missing"][0]["gate"] == "CONTEXT_RETRIEVAL"
        assert f"{SETTINGS} while a session is active: it is gone" in _resource(agent, "violations")
        repository.write(SETTINGS, "protocol = \n")
        agent.call("get_blocked_reason")
        assert "it is broken" in _resource(agent, "violations")
        repository.write(
            SETTINGS, 'protocol = "simple"\nenforcement = "off"\n[gates.CONTEXT_RETRIEVAL]\nclaim = true\n'
        )
        assert agent.call("validate_gate", phase="CONTEXT_RETRIEVAL")["status"] == "FAIL"
        assert _resource(agent, "violations").count("CRITICAL") == 2


def test_under_enforce_commits_without_a_session_are_recorded_with_the_next(
    shared_embedded: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = 'protocol = "simple"\nenforcement = "enforce"\n'
    repository = Repository(tmp_path / "project", {"README.md": "# A\n", SETTINGS: settings})
    with Agent(shared_embedded, repository.path) as agent:
        agent.call("session_start", objective="Begin and leave")
        agent.call("session_end", summary="To commit without a session", abort=True)
        monkeypatch.setenv("GIT_COMMITTER_DATE", "2099-01-01T00:00:00Z")  # not in the second in which it ended
        repository.write("unseen.txt", "unseen\n")
        made = repository.commit("unseen")[:7]
        agent.call("session_start", objective="As if nothing happened")
        violations = _resource(agent, "violations")
        assert f"committed without a session: {made}" in violations and "MUST session_start before work" in violations


def test_calls_in_parallel_move_a_session_one_after_the_other(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    agents = [Agent(shared_embedded, repository.path) for _ in range(6)]
    try:
        agents[0].call("session_start", objective="All at once")
        _hash(agents[0], repository, "CONTEXT_RETRIEVAL", "README.md")

        def call(place: int) -> dict[str, Any]:
            tool, arguments = ("session_end", {"summary": "At once"}) if place % 3 == 2 else ("advance_phase", {})
            reply: dict[str, Any] = agents[place].request("tools/call", {"name": tool, "arguments": arguments})
            return reply

        with ThreadPoolExecutor(6) as pool:
            replies = list(pool.map(call, range(6)))
        texts = [reply["content"][0]["text"] for reply in replies]
        refused = [text for reply, text in zip(replies, texts, strict=True) if reply.get("isError")]
        assert all(text.startswith(("E_GATE_UNMET", "E_NO_SESSION")) for text in refused), refused
        assert "COMPLETE" in "".join(texts), "the session that changed nothing was ended by one of them"
        assert agents[0].refused("get_blocked_reason").startswith("E_NO_SESSION")
    finally:
        for agent in agents:
            agent.close()


def test_the_validator_works_on_a_finished_session_and_in_a_fresh_checkout(
    shared_embedded: Guest, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "project", {"README.md": "# A\n", ".agents/HANDOFF.md": "# Handoff\n\nOpen.\n"})
    with Agent(shared_embedded, repository.path) as agent:
        run = agent.call("session_start", objective="For CI")["session_id"]
        _hash(agent, repository, "CONTEXT_RETRIEVAL", ".agents/HANDOFF.md")
        repository.write(f".agents/sessions/{run}.md", "# Log\n\nBegun and finished.\n")
        repository.write(".agents/HANDOFF.md", "# Handoff\n\nNothing is open.\n")
        repository.commit("work")
        assert agent.call("session_end", summary="For CI")["status"] == "COMPLETE"
    done = shared_embedded.run("protocol", "validate", str(repository.path))
    assert done.returncode == 0, done.stdout + done.stderr
    repository.git("clone", "-q", str(repository.path), str(tmp_path / "clone"))
    fresh = shared_embedded.run("protocol", "validate", str(tmp_path / "clone"))
    assert fresh.returncode == 0 and "SESSION_LOG is met" in fresh.stdout, fresh.stdout + fresh.stderr
    repository.write(".agents/sessions/2099-01-01-session-01.md", "# Log\n\nUnfinished.\n")
    repository.write("code.py", "print('not reviewed')\n")
    repository.commit("without a review")
    repository.git("clone", "-q", str(repository.path), str(tmp_path / "other"))
    unreviewed = shared_embedded.run("protocol", "validate", str(tmp_path / "other"))
    assert unreviewed.returncode == 1 and "QA_VALIDATION" in unreviewed.stdout, unreviewed.stdout


def test_state_and_checklist_answer_without_a_session(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project", AGENTS_FILES)
    with Agent(shared_embedded, repository.path) as agent:
        assert "No session is active" in _resource(agent, "state")
        assert "No session is active" in _resource(agent, "checklist")


def test_the_history_has_ten_sessions_also_while_one_is_active(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    with Agent(shared_embedded, repository.path) as agent:
        for number in range(11):
            agent.call("session_start", objective=f"Number {number}")
            agent.call("session_end", summary="It is only counted", abort=True)
        agent.call("session_start", objective="The active one")
        assert _resource(agent, "history").count("\n### ") == 10


def test_what_a_command_left_in_a_session_of_its_own_ends_with_it(shared_embedded: Guest, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    command = ["sh", "-c", f"setsid sh -c 'echo $$ > {pid}; exec sleep 300' & while [ ! -s {pid} ]; do :; done"]
    settings = f'protocol = "simple"\n[gates.QUALITY_CHECKS]\ncommand = {json.dumps(command)}\n'
    repository = Repository(tmp_path / "project", {"README.md": "# A\n", SETTINGS: settings})
    assert shared_embedded.at_terminal("trust", str(repository.path)).returncode == 0
    with Agent(shared_embedded, repository.path) as agent:
        agent.call("session_start", objective="Leave something behind")
        assert agent.call("validate_gate", phase="QUALITY_CHECKS")["status"] == "PASS"
    wait_until(lambda: not is_running(int(pid.read_text())), "the process to end")
