"""A whole run of the protocol by the real Claude Code, with Holdfast's hooks installed in the project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.agents.claude_code import ClaudeRun, play_claude
from tests.agents.scripted_model import Reply, Request, Script, steps, text, tool_use
from tests.installation import Installation
from tests.repository import AGENTS_FILES, ENVIRONMENT, Repository
from tests.shared_daemon import Guest

from holdfast.agents.claude.settings import LOCAL, PURPOSES, installed
from holdfast.git.directory import keep_out_of_git

TO_READ = (
    ".serena/memories/skill-usage-mandatory.md",
    ".agents/HANDOFF.md",
    ".agents/governance/PROJECT-CONSTRAINTS.md",
)
FINISH = """\
set -e
printf '# Handoff\\n\\nThe fence is mended.\\n' > .agents/HANDOFF.md
printf '# Log\\n\\nMended.\\n' >> .agents/sessions/{run}.md
mkdir -p .agents/qa
printf -- '---\\nsession: {run}\\n---\\n\\nThe fence stands, tried by hand.\\n' > .agents/qa/fence.md
echo mended > fence.py
git add -A
git commit -q -m 'Mend the fence'
"""


@pytest.fixture
def repository(tmp_path: Path, shared_embedded: Guest) -> Repository:
    """A project that enforces the seed's protocol, with the hooks that `holdfast protocol init` installs."""
    settings = {".holdfast/protocol.toml": 'protocol = "agents"\nenforcement = "enforce"\n'}
    repository = Repository(tmp_path / "project", AGENTS_FILES | settings)
    install_hooks(repository, shared_embedded)
    return repository


def install_hooks(repository: Repository, holdfast: Installation) -> None:
    keep_out_of_git(repository.path, LOCAL)
    installed(repository.path, PURPOSES["protocol"], home=str(holdfast.home)).write()


def protocol(tool: str, **arguments: Any) -> Reply:
    return tool_use(f"mcp__holdfast__{tool}", arguments)


def bash(command: str) -> Reply:
    return tool_use("Bash", {"command": command, "description": "as told"})


def run_in(repository: Repository, holdfast: Installation, script: Script) -> tuple[ClaudeRun, list[Request]]:
    run, requests = play_claude(
        script,
        repository.path,
        "Mend the fence.",
        home=repository.path.parent / "claude",
        mcp_config=holdfast.mcp_config(),
        allowed_tools=["mcp__holdfast", "Bash", "Read", "Write"],
        env=ENVIRONMENT,
    )
    assert not run.is_error, (run.ending, run.stderr)
    return run, requests


def answer(request: Request) -> dict[str, Any]:
    (result,) = request.tool_results
    assert not result.is_error, result.text
    content = result.json()
    assert isinstance(content, dict)
    return content


def test_a_run_from_init_to_complete_with_evidence_that_hooks_saw(
    shared_embedded: Guest, repository: Repository
) -> None:
    started: list[str] = []
    first_commit = repository.head()

    def too_early(request: Request) -> Reply:
        started.append(answer(request)["session_id"])
        return bash("git commit --allow-empty -m early")

    def write_log(request: Request) -> Reply:
        path = repository.path / ".agents/sessions" / f"{started[0]}.md"
        return tool_use("Write", {"file_path": str(path), "content": "# Log\n\nBegun.\n"})

    script = steps(
        protocol("session_start", objective="Mend the fence"),
        too_early,
        bash(f"git -C {repository.path} commit --allow-empty -m early"),
        bash("bash -c 'git commit --allow-empty -m early'"),
        *(tool_use("Read", {"file_path": str(repository.path / name)}) for name in TO_READ),
        protocol("advance_phase", to="CONTEXT_LOADED"),
        text("That is all for today."),
        write_log,
        protocol("advance_phase", to="WORKING"),
        lambda request: bash(FINISH.format(run=started[0])),
        protocol("session_end", summary="The fence is mended."),
        text("Done."),
    )
    run, requests = run_in(repository, shared_embedded, script)

    for denied in requests[2:5]:
        (result,) = denied.tool_results
        assert result.is_error
        assert started[0] in result.text and "SERENA_INIT" in result.text and "validate_gate" in result.text
    reached = answer(requests[8])
    assert (reached["phase"], reached["blocked_until"]) == ("CONTEXT_LOADED", ["SESSION_LOG"])
    assert {gate["phase"]: gate["status"] for gate in reached["gates"]} == {
        "SERENA_INIT": "SKIPPED",
        "SKILL_VALIDATION": "PASS",
        "CONTEXT_RETRIEVAL": "PASS",
    }
    sent_back = requests[9].user_turns[-1]
    assert "SESSION_LOG" in sent_back and started[0] in sent_back
    assert answer(requests[11])["phase"] == "WORKING"
    (committed,) = requests[12].tool_results
    assert not committed.is_error, committed.text
    ended = answer(requests[13])
    assert (ended["status"], ended["commit_sha"]) == ("COMPLETE", repository.head())
    assert repository.git("rev-list", "--count", f"{first_commit}..HEAD") == "1"
    assert run.result == "Done."


def test_a_run_in_progress_is_in_front_of_the_next_conversation(shared_embedded: Guest, repository: Repository) -> None:
    _, requests = run_in(
        repository,
        shared_embedded,
        steps(protocol("session_start", objective="Mend the fence"), text("Later."), text("Really, later.")),
    )
    session = answer(requests[1])["session_id"]
    _, (first, *_) = run_in(repository, shared_embedded, steps(text("I see."), text("I wait.")))
    assert f"session {session}" in first.text
    assert "SERENA_INIT" in first.text


def test_the_first_prompt_begins_the_run_where_the_project_says_so(
    shared_embedded: Guest, repository: Repository
) -> None:
    repository.write(".holdfast/protocol.toml", 'protocol = "agents"\nstart = "hook"\n')
    script = steps(protocol("get_blocked_reason"), text("I see."), text("I wait."))
    _, requests = run_in(repository, shared_embedded, script)
    blocked = answer(requests[1])
    assert f"session {blocked['session_id']}" in requests[0].text
    assert '"Mend the fence."' in requests[0].text
    assert blocked["phase"] == "INIT"


def test_what_failed_is_no_evidence(shared_embedded: Guest, repository: Repository) -> None:
    script = steps(
        protocol("session_start", objective="Mend the fence"),
        tool_use("Read", {"file_path": str(repository.path / ".agents/HANDOFF.md"), "offset": 9_999}),
        tool_use("Read", {"file_path": str(repository.path / ".agents/missing.md")}),
        bash("exit 3"),
        protocol("validate_gate", phase="CONTEXT_RETRIEVAL"),
        text("Not read."),
        text("Not read."),
    )
    _, requests = run_in(repository, shared_embedded, script)
    judged = answer(requests[5])
    assert judged["status"] == "FAIL"
    assert ".agents/HANDOFF.md" in json.dumps(judged)
