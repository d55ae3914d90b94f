"""Runs of a protocol from outside: the seed's scenarios, kills between steps, forged evidence, worktrees."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.installation import Installation, wait_until
from tests.process.agent import Agent
from tests.process.clients import ENGINES_AND_WAYS, Session, Way
from tests.repository import AGENTS_FILES, Repository
from tests.shared_daemon import Guest

pytestmark = pytest.mark.anyio

RUN_ID = re.compile(r"\d{4}-\d{2}-\d{2}-session-\d{2}")
DAY_MS = 24 * 3_600_000


COURSE = ["INIT", "CONTEXT_RETRIEVAL", "INIT", "CONTEXT_LOADED", "WORKING", "WORKING", "QUALITY_CHECKED", "COMPLETE"]
"""What is told after each step of a whole run: its phase, or the gate that the step was for."""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository as the seed's protocol expects it."""
    return Repository(tmp_path / "project", AGENTS_FILES)


@ENGINES_AND_WAYS
async def test_the_seeds_lifecycle_with_its_gates_satisfied_in_between(
    shared: Guest, way: Way, repository: Repository
) -> None:
    async with way.at_work(shared, repository.path) as client:
        started = await client.call("session_start", objective="Integration test")
        run = started["session_id"]
        assert RUN_ID.fullmatch(run)
        assert (started["phase"], started["branch"]) == ("INIT", "main")
        assert started["blocked_until"] == ["SERENA_INIT", "SKILL_VALIDATION", "CONTEXT_RETRIEVAL", "SESSION_LOG"]
        assert {"part": "start", "requirement_level": "MUST", "step": "Create session log", "gate": "SESSION_LOG"} | {
            "done": False
        } in started["checklist"]
        refusal = await client.refused("session_start", objective="Another")
        assert refusal.startswith("E_SESSION_ACTIVE") and run in refusal

        serena = await client.call("validate_gate", phase="SERENA_INIT")
        assert (serena["status"], serena["blocking"], serena["requirement_level"]) == ("SKIPPED", True, "MUST")
        await _satisfy_the_start(client, repository, run)
        reached = await client.call("advance_phase", to="WORKING")
        assert reached["phase"] == "WORKING"

        repository.write(".agents/HANDOFF.md", "# Handoff\n\nDone: the integration test.\n")
        repository.write(f".agents/sessions/{run}.md", "# Log\n\nAll went well.\n")
        repository.commit("documentation")
        ended = await client.call("session_end", summary="Integration test complete", skip_qa=True)
        assert (ended["status"], ended["session_id"], ended["commit_sha"]) == ("COMPLETE", run, repository.head())
        again = await client.call("session_start", objective="The next one")
        assert int(again["session_id"][-2:]) == int(run[-2:]) + 1


async def _satisfy_the_start(client: Session | Any, repository: Repository, run: str) -> None:
    for gate, name in (
        ("SKILL_VALIDATION", ".serena/memories/skill-usage-mandatory.md"),
        ("CONTEXT_RETRIEVAL", ".agents/HANDOFF.md"),
        ("CONTEXT_RETRIEVAL", ".agents/governance/PROJECT-CONSTRAINTS.md"),
    ):
        kept = await client.call(
            "record_evidence", phase=gate, evidence_type="content_hash", evidence=f"{name} {repository.sha256(name)}"
        )
        assert kept["source"] == "server"
    repository.write(f".agents/sessions/{run}.md", "# Log\n\nBegun.\n")


def _lifecycle(repository: Repository) -> list[tuple[str, dict[str, Any]]]:
    """Every call of a whole run of the simple protocol, in order."""
    evidence = f"README.md {repository.sha256('README.md')}"
    return [
        ("session_start", {"objective": "Survive"}),
        ("record_evidence", {"phase": "CONTEXT_RETRIEVAL", "evidence_type": "content_hash", "evidence": evidence}),
        ("validate_gate", {"phase": "CONTEXT_RETRIEVAL"}),
        ("advance_phase", {}),
        ("advance_phase", {}),
        ("get_blocked_reason", {}),
        ("advance_phase", {}),
        ("session_end", {"summary": "It survived.", "key_decisions": ["None"], "next_session_notes": "Go on."}),
    ]


# A run is kept by the daemon, which does not know of eras, and brought over a kill by the relay, which does not know
# of runs: the small one kills in every gap of a run once, in one of the eras, and the whole one in both.
@pytest.mark.parametrize("every", [pytest.param(2, id="small"), pytest.param(1, id="whole", marks=pytest.mark.long)])
def test_a_run_goes_on_after_a_kill_of_the_daemon_between_any_two_steps(
    embedded: Installation, tmp_path: Path, every: int
) -> None:
    """Two agents go through a run each, one of either era and a step ahead of the other; a kill is for both."""
    runs = {era: Repository(tmp_path / era) for era in ("legacy", "modern")}
    steps = {era: iter(_lifecycle(repository)) for era, repository in runs.items()}
    phases: dict[str, list[str]] = {era: [] for era in runs}
    with ExitStack() as stack:
        agents = {era: stack.enter_context(Agent(embedded, runs[era].path, era=era)) for era in runs}

        def advance(era: str) -> None:
            for tool, arguments in islice(steps[era], 1):
                if tool == "session_end":
                    runs[era].write("code.py", "print('work')\n")
                    runs[era].commit()
                reply = agents[era].call(tool, **arguments)
                phases[era].append(reply.get("current_phase") or reply["phase"])

        advance("modern")
        if every == 1:
            embedded.kill_daemon()
        for number in range(len(COURSE)):
            advance("legacy")
            advance("modern")
            if number % every == 0:
                embedded.kill_daemon()
        assert phases == {"legacy": COURSE, "modern": COURSE}
        for agent in agents.values():
            assert agent.refused("get_blocked_reason").startswith("E_NO_SESSION"), "it stays ended"


def test_ten_agents_in_ten_worktrees_start_at_once_under_ten_ids(shared: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    day = repository.write(".agents/sessions/2020-01-01-session-41.md", "an old log\n").parent
    assert day.is_dir()
    repository.commit("logs")
    places = [repository.worktree(tmp_path / f"worktree-{number}", f"branch-{number}") for number in range(10)]
    agents = [Agent(shared, place) for place in places]
    try:
        with ThreadPoolExecutor(10) as pool:
            started = list(pool.map(lambda agent: agent.call("session_start", objective="at once"), agents))
    finally:
        for agent in agents:
            agent.close()
    ids = {reply["session_id"] for reply in started}
    assert len(ids) == 10 and {reply["branch"] for reply in started} == {f"branch-{number}" for number in range(10)}
    assert sorted(int(name.rsplit("-", 1)[1]) for name in ids) == list(range(1, 11))


def test_logs_on_disk_are_respected_and_ids_get_three_digits(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    with Agent(shared_embedded, repository.path) as agent:
        first = agent.call("session_start", objective="one")["session_id"]
        day = first.rsplit("-session-", 1)[0]
        assert first == f"{day}-session-01"
        repository.write(f".agents/sessions/{day}-session-99-something.md", "by hand\n")
        other = Repository(tmp_path / "other", {f".agents/sessions/{day}-session-99-x.md": "by hand\n"})
    with Agent(shared_embedded, other.path) as agent:
        assert agent.call("session_start", objective="two")["session_id"] == f"{day}-session-100"


def test_a_run_nobody_touched_for_a_day_is_orphaned_and_kept(embedded: Installation, tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")
    embedded.settings["HOLDFAST_TEST_CLOCK"] = str(clock)
    repository = Repository(tmp_path / "project")
    embedded.serve()
    with Agent(embedded, repository.path) as agent:
        old = agent.call("session_start", objective="Left behind")["session_id"]
        clock.write_text(str(DAY_MS - 60_000))
        assert old in agent.refused("session_start", objective="Too early")
        clock.write_text(str(2 * DAY_MS))
        assert agent.refused("get_blocked_reason").startswith("E_NO_SESSION")
        new = agent.call("session_start", objective="The next day")["session_id"]
        assert new != old
        history = agent.request("resources/read", {"uri": "holdfast://protocol/history"})["contents"][0]["text"]
        assert f"### {old}" in history and "ORPHANED" in history


def test_ending_too_early_is_refused_written_down_and_no_dead_end(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    with Agent(shared_embedded, repository.path) as agent:
        agent.call("session_start", objective="Hurry")
        refusal = agent.refused("session_end", summary="All done")
        assert refusal.startswith("E_GATE_UNMET") and "CONTEXT_RETRIEVAL" in refusal and "README.md" in refusal
        reason = agent.call("get_blocked_reason")
        assert (reason["phase"], reason["blocked"], reason["held_by"]) == ("BLOCKED", True, "CONTEXT_RETRIEVAL")
        assert reason["missing"][0]["gate"] == "CONTEXT_RETRIEVAL" and reason["missing"][0]["recovery"]
        violations = agent.request("resources/read", {"uri": "holdfast://protocol/violations"})["contents"][0]["text"]
        assert "MUST CONTEXT_RETRIEVAL" in violations and "CRITICAL" in violations
        agent.call(
            "record_evidence",
            phase="CONTEXT_RETRIEVAL",
            evidence_type="content_hash",
            evidence=f"README.md {repository.sha256('README.md')}",
        )
        met = agent.call("validate_gate", phase="CONTEXT_RETRIEVAL")
        assert (met["status"], met["current_phase"]) == ("PASS", "INIT")
        repository.write("code.py", "x = 1\n")
        repository.commit()
        assert agent.call("session_end", summary="Now really")["status"] == "COMPLETE"


def test_claimed_reads_pass_no_gate(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    with Agent(shared_embedded, repository.path) as agent:
        agent.call("session_start", objective="Pretend")
        for kind, evidence in (
            ("file_read", "README.md"),
            ("tool_output", "I read README.md completely"),
            ("tool_called", "Read"),
        ):
            kept = agent.call("record_evidence", phase="CONTEXT_RETRIEVAL", evidence_type=kind, evidence=evidence)
            assert kept["source"] == "claimed", kind
            assert agent.call("validate_gate", phase="CONTEXT_RETRIEVAL")["status"] == "FAIL", kind


def test_evidence_that_says_nothing_or_is_not_true_is_rejected(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    (tmp_path / "outside.md").write_text("not yours\n")
    with Agent(shared_embedded, repository.path) as agent:
        agent.call("session_start", objective="Pretend")
        for kind, evidence in (
            ("note", "N/A"),
            ("note", "TODO"),
            ("note", "done"),
            ("note", "skipped"),
            ("content_hash", "README.md " + "0" * 64),
            ("content_hash", "README.md, trust me"),
            ("HANDOFF_HASH", "deadbeefdeadbeef"),
            ("commit", "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef"),
            ("report", "no/such/report.md"),
            ("report", "../outside.md"),
        ):
            refusal = agent.refused("record_evidence", phase="CONTEXT_RETRIEVAL", evidence_type=kind, evidence=evidence)
            assert refusal.startswith("E_EVIDENCE_REJECTED"), (kind, evidence, refusal)


def test_resources_are_the_seeds_memories_and_change_is_told(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project", AGENTS_FILES)
    with Agent(shared_embedded, repository.path) as agent:
        uris = [one["uri"] for one in agent.request("resources/list")["resources"]]
        named = [f"holdfast://protocol/{name}" for name in ("state", "checklist", "history", "violations")]
        assert set(named) <= set(uris)
        agent.request("resources/subscribe", {"uri": named[0]})
        run = agent.call("session_start", objective="Look | at me")["session_id"]
        told = agent.seen.pop() if agent.seen else agent.receive()
        assert (told["method"], told["params"]["uri"]) == ("notifications/resources/updated", named[0])
        texts = [agent.request("resources/read", {"uri": uri})["contents"][0]["text"] for uri in named]
        assert texts[0].startswith("# Session State\n\n## Metadata\n\n- **Session ID**: " + run)
        assert "## Checklist (Start)" in texts[0] and "| Req | Step | Status | Evidence |" in texts[0]
        assert "Create session log" in texts[1]
        assert texts[2].startswith("# Session History\n") and texts[3].startswith("# Session Violations Log\n")


def test_a_state_that_another_tool_left_behind_is_kept_not_lost(shared_embedded: Guest, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project", AGENTS_FILES)
    theirs = "# Session State\n\n- **Session ID**: 2020-02-02-session-07\n- **Objective**: Migrate the queue\n"
    left = repository.write(".serena/memories/session-current-state.md", theirs)
    with Agent(shared_embedded, repository.path) as agent:
        started = agent.call("session_start", objective="Go on")
        wait_until(lambda: started["session_id"] in left.read_text(), "our own state to take its place")
    (kept,) = left.parent.glob("session-current-state.kept-*.md")
    assert kept.read_text() == theirs


def test_a_caller_without_a_project_is_told_what_to_do(shared_embedded: Guest, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    with Agent(shared_embedded, plain) as agent:
        assert agent.refused("session_start", objective="x").startswith("E_NO_PROJECT")
        assert agent.refused("get_blocked_reason").startswith("E_NO_SESSION")
        assert agent.refused("validate_gate", phase="ALL").startswith("E_NO_SESSION")
