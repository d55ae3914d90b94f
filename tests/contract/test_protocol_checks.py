"""Each check of a gate looks at the real thing: a git repository, its files, a program."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from pathlib import Path

import pytest
from tests.contract.protocol_world import OTHER_RUN, RUN_ID, Repository, World, check, read_by_hook, seen

from holdfast.files import write_private
from holdfast.git.state import Git
from holdfast.process.alive import is_running
from holdfast.protocol.model import CheckKind, Status
from holdfast.protocol.runs import EvidenceKind, SerenaAnswer, Source
from holdfast.protocol.serena.probe import Serena

pytestmark = pytest.mark.anyio

HANDOFF = ".agents/HANDOFF.md"
QA = ".agents/qa/**/*.md"
COMMITTED = check(CheckKind.COMMITTED)
REPORT = check(CheckKind.REPORT, QA)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(*Repository.begun(tmp_path / "project", ("README.md", "Read me.\n")), trusted=True)


async def test_git_says_where_a_repository_without_commits_stands(tmp_path: Path) -> None:
    repository = Repository.new(tmp_path / "new")
    repository.write("a b.txt")
    state = await Git(repository.path).state()
    assert (state.branch, state.head, state.dirty, state.problem) == ("main", None, ("a b.txt",), "")
    assert await Git(repository.path).changed_since(None) == ["a b.txt"]
    world = World(repository, None)
    assert "before its first commit" in (await world.verify(check(CheckKind.GIT_STATE))).evidence
    assert (await world.verify(COMMITTED)).missing == "the repository has no commit yet"


async def test_git_says_when_head_is_detached(world: World) -> None:
    world.repository.git("checkout", "--quiet", "--detach")
    state = await Git(world.repository.path).state()
    assert (state.branch, state.head) == (None, world.start)
    assert "detached HEAD" in (await world.verify(check(CheckKind.GIT_STATE))).evidence


async def test_a_directory_without_a_repository_is_said_to_be_one(tmp_path: Path) -> None:
    verdict = await World(Repository(tmp_path), None).verify(check(CheckKind.GIT_STATE))
    assert verdict.status is Status.FAIL
    assert "not a git repository" in verdict.missing


async def test_a_missing_git_is_named(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    verdict = await world.verify(COMMITTED)
    assert "git was not found" in verdict.missing


async def test_a_linked_worktree_has_a_state_of_its_own(world: World, tmp_path: Path) -> None:
    world.repository.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    state = await Git(tmp_path / "side").state()
    assert (state.branch, state.head, state.problem) == ("side", world.start, "")


async def test_a_fingerprint_outlives_the_commit_and_the_evidence_but_no_edit(world: World) -> None:
    async def fingerprint() -> str:
        return await Git(world.repository.path).fingerprint(world.start)

    world.repository.write("src/code.py", "1\n")
    before = await fingerprint()
    world.repository.commit(".agents/qa/report.md")
    assert await fingerprint() == before
    world.repository.write(HANDOFF, "More.\n")
    assert await fingerprint() == before
    world.repository.write("src/code.py", "2\n")
    edited = await fingerprint()
    assert edited != before
    (world.repository.path / "src/code.py").chmod(0o755)
    assert await fingerprint() not in (before, edited)
    (world.repository.path / "README.md").unlink()
    assert await fingerprint() not in (before, edited)


async def test_our_own_files_are_no_change_of_the_agent(world: World) -> None:
    for path in (".serena/memories/session-history.md", ".agents/sessions/.session-state.json", ".holdfast/x"):
        world.repository.write(path)
    assert await Git(world.repository.path).changed_since(world.start) == []
    assert (await Git(world.repository.path).state()).dirty == ()


async def test_a_memory_that_is_just_being_written_is_no_change_of_the_agent(world: World) -> None:
    memory = world.repository.path / ".serena/memories/session-violations-log.md"
    memory.parent.mkdir(parents=True)
    seen: list[str] = []
    write_private(memory, "Half of it", check=lambda: seen.extend(draft.name for draft in memory.parent.iterdir()))
    memory.rename(memory.with_name(seen[0]))
    assert (await Git(world.repository.path).state()).dirty == ()
    world.repository.write(".serena/memories/.notes.md.0123456789abcdef")
    assert (await Git(world.repository.path).state()).dirty == (".serena/memories/.notes.md.0123456789abcdef",)


async def test_committed_asks_for_a_commit_and_a_clean_tree(world: World) -> None:
    assert "no commit since" in (await world.verify(COMMITTED)).missing
    head = world.repository.commit("a.txt")
    verdict = await world.verify(COMMITTED)
    assert (verdict.status, verdict.evidence) == (Status.PASS, f"commit {head[:12]}, tree clean")
    world.repository.write("b.txt")
    assert (await world.verify(COMMITTED)).missing == "not committed: b.txt"


async def test_an_amended_commit_counts_as_one_of_the_run(world: World) -> None:
    amended = ("commit", "--quiet", "--amend", "--message", "Better")
    world.repository.git(*amended, date="2026-01-03T00:00:00Z")
    assert (await world.verify(COMMITTED)).status is Status.PASS


async def test_a_file_is_there_when_it_or_its_folder_holds_something(world: World) -> None:
    world.repository.write("empty.txt", "")
    (world.repository.path / "folder").mkdir()
    for path in ("empty.txt", "folder", "nowhere", "*.rst"):
        assert (await world.verify(check(CheckKind.FILE_EXISTS, path))).status is Status.FAIL, path
    world.repository.write("folder/deep/x.sh")
    for path in ("README.md", "folder", "*.md", "folder/**/*.sh", "**/x.sh"):
        assert (await world.verify(check(CheckKind.FILE_EXISTS, "nowhere", path))).status is Status.PASS, path


async def test_each_file_that_exists_must_be_read(world: World) -> None:
    world.repository.write(HANDOFF)
    asked = check(CheckKind.FILE_READ, "README.md", HANDOFF, "CONTRIBUTING.md")
    verdict = await world.verify(asked, evidence=(read_by_hook("README.md"),))
    assert verdict.missing.startswith(f"{HANDOFF} was not read")
    hashed = seen(EvidenceKind.CONTENT_HASH, HANDOFF, "ab" * 32, source=Source.SERVER)
    verdict = await world.verify(asked, evidence=(read_by_hook("README.md"), hashed))
    assert (verdict.status, verdict.evidence) == (Status.PASS, f"read README.md 000000000000, {HANDOFF} abababababab")


async def test_reading_is_skipped_where_there_is_nothing_to_read(world: World) -> None:
    verdict = await world.verify(check(CheckKind.FILE_READ, HANDOFF))
    assert (verdict.status, verdict.evidence) == (Status.SKIPPED, "none of the files to read exists")


async def test_a_folder_of_that_name_cannot_be_read_and_is_not_asked_for(world: World) -> None:
    world.repository.write("README/first.md")
    world.repository.git("add", "--all")
    verdict = await world.verify(check(CheckKind.FILE_READ, "README"))
    assert verdict.status is Status.SKIPPED


@pytest.mark.parametrize("instead", ["a folder", "a link to a folder", "a link out of the project"])
async def test_something_else_under_the_name_of_a_file_does_not_stand_for_it(world: World, instead: str) -> None:
    file = world.repository.path / "README.md"
    file.unlink()
    if instead == "a folder":
        file.mkdir()
    else:
        file.symlink_to("." if instead == "a link to a folder" else "/etc/hostname")
    verdict = await world.verify(check(CheckKind.FILE_READ, "README.md"))
    assert verdict.status is Status.FAIL and "restore it" in verdict.missing


async def test_a_log_under_the_runs_id_with_text_passes(world: World) -> None:
    asked = check(CheckKind.SESSION_LOG, ".agents/sessions")
    for name in (f"{OTHER_RUN}.md", f"{RUN_ID}1.md", f"{RUN_ID}.txt"):
        world.repository.write(f".agents/sessions/{name}")
    assert (await world.verify(asked)).missing == f".agents/sessions/{RUN_ID}.md does not exist"
    world.repository.write(f".agents/sessions/{RUN_ID}-a-slug.md", " \n")
    assert "is empty" in (await world.verify(asked)).missing
    world.repository.write(f".agents/sessions/{RUN_ID}-a-slug.md", "# Log\n")
    assert (await world.verify(asked)).status is Status.PASS


async def test_docs_are_changed_when_each_was_and_the_log_is_this_runs(world: World) -> None:
    asked = check(CheckKind.DOCS_CHANGED, HANDOFF, ".agents/sessions/*")
    world.repository.write(f".agents/sessions/{OTHER_RUN}.md")
    verdict = await world.verify(asked)
    assert HANDOFF in verdict.missing
    assert f"{RUN_ID}.md does not exist" in verdict.missing
    world.repository.write(f".agents/sessions/{RUN_ID}.md")
    world.repository.commit(HANDOFF)
    assert (await world.verify(asked)).status is Status.PASS


async def test_a_report_with_the_runs_id_passes_and_stays_with_the_change(world: World) -> None:
    world.repository.write("src/code.py")
    world.repository.write(
        ".agents/qa/deep/r.md", f'---\ntitle: x\nsession: "{RUN_ID}"  # ours\n---\n# QA\n\nIt works.\n'
    )
    verdict = await world.verify(REPORT)
    assert verdict.status is Status.PASS
    assert verdict.evidence.startswith(".agents/qa/deep/r.md ")
    assert verdict.fingerprint == await Git(world.repository.path).fingerprint(world.start)


async def test_a_recorded_report_passes_when_it_was_written_in_this_run(world: World) -> None:
    world.repository.write("src/code.py")
    world.repository.write(".agents/qa/r.md", "It works.\n")
    assert (await world.verify(REPORT)).status is Status.FAIL
    named = seen(EvidenceKind.REPORT, ".agents/qa/r.md", source=Source.CLAIMED)
    assert (await world.verify(REPORT, evidence=(named,))).status is Status.PASS


@pytest.mark.parametrize(("text", "status"), [("ok", Status.FAIL), ("No", Status.FAIL), ("Yes, it works", Status.PASS)])
async def test_a_log_and_a_report_of_two_characters_are_refused(world: World, text: str, status: Status) -> None:
    world.repository.write("src/code.py")
    world.repository.write(f".agents/sessions/{RUN_ID}.md", text)
    assert (await world.verify(check(CheckKind.SESSION_LOG, ".agents/sessions"))).status is status
    world.repository.write(".agents/qa/r.md", f"---\nsession: {RUN_ID}\n---\n{text}")
    verdict = await world.verify(REPORT)
    assert verdict.status is status
    assert verdict.status is Status.PASS or "says nothing" in verdict.missing


async def test_no_report_is_asked_for_where_only_docs_changed(world: World) -> None:
    world.repository.commit("README.md", "Read me again.\n")
    verdict = await world.verify(REPORT)
    assert (verdict.status, verdict.evidence) == (Status.SKIPPED, "docs-only")
    world.repository.commit("src/code.py", "1\n")
    verdict = await World(world.repository, world.start, skip_qa=True).verify(REPORT)
    assert verdict.status is Status.FAIL
    assert "src/code.py is not a markdown file" in verdict.missing


async def test_a_tool_counts_when_a_hook_saw_it(world: World) -> None:
    asked = check(CheckKind.TOOL_CALLED, names=("mcp__docs__*",))
    called = seen(EvidenceKind.TOOL_CALLED, "mcp__docs__search")
    assert (await world.verify(asked)).status is Status.FAIL
    assert (await world.verify(asked, evidence=(called,))).status is Status.PASS


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (SerenaAnswer(configured=True, answers=True, detail="Serena answers"), Status.PASS),
        (SerenaAnswer(configured=True, answers=False, detail="it ended"), Status.FAIL),
        (SerenaAnswer(configured=False, answers=False, detail=""), Status.SKIPPED),
    ],
)
async def test_serena_passes_fails_or_is_not_there(world: World, answer: SerenaAnswer, status: Status) -> None:
    asked = check(CheckKind.SERENA, names=("mcp__serena__*",))
    assert (await world.verify(asked, serena=answer)).status is status
    called = seen(EvidenceKind.TOOL_CALLED, "mcp__serena__activate_project")
    assert (await world.verify(asked, evidence=(called,), serena=answer)).status is Status.PASS


async def test_a_command_passes_with_zero_and_shows_its_last_lines_otherwise(world: World) -> None:
    assert (await world.verify(check(CheckKind.COMMAND, argv=("true",)))).evidence == '"true" exited with 0'
    script = "i=0; while [ $i -lt 9 ]; do echo line $i; i=$((i+1)); done; exit 3"
    missing = (await world.verify(check(CheckKind.COMMAND, argv=("sh", "-c", script)))).missing
    assert 'exited with 3: "line 4 | line 5 | line 6 | line 7 | line 8"' in missing
    assert "cannot be started" in (await world.verify(check(CheckKind.COMMAND, argv=("./no-such-program",)))).missing


async def test_without_a_command_the_gate_is_skipped(world: World) -> None:
    verdict = await world.verify(check(CheckKind.COMMAND))
    assert (verdict.status, verdict.evidence) == (Status.SKIPPED, "no check command is configured")


async def test_a_command_does_not_see_our_settings(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", "postgresql://user:secret@host/db")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    both_unset = check(CheckKind.COMMAND, argv=("sh", "-c", 'test -z "$HOLDFAST_DATABASE_URL$GIT_DIR"'))
    assert (await world.verify(both_unset)).status is Status.PASS


async def test_a_command_sees_no_secret_of_holdfast_or_of_the_user(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "HOLDFAST_TELEGRAM_TOKEN",
        "MCP_SESSION_SECRET",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "ANTHROPIC_API_KEY",
    ):
        monkeypatch.setenv(name, "marker-secret")
    monkeypatch.setenv("HOLDFAST_PASS_ENV", "DATABASE_NAME")
    monkeypatch.setenv("DATABASE_NAME", "test")
    monkeypatch.setenv("JAVA_HOME", "/java")
    script = 'env; test "$DATABASE_NAME$JAVA_HOME" = test/java && ! env | grep marker-secret'
    verdict = await world.verify(check(CheckKind.COMMAND, argv=("sh", "-c", script)))
    assert verdict.status is Status.PASS, verdict


async def test_git_and_what_the_user_has_it_run_see_no_secret(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen_by_git = tmp_path / "seen"
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nenv >> {seen_by_git}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOLDFAST_TELEGRAM_TOKEN", "marker-secret")
    monkeypatch.setenv("GITHUB_TOKEN", "marker-secret")
    await Git(world.repository.path).state()
    assert "GIT_WORK_TREE" in seen_by_git.read_text()
    assert "marker-secret" not in seen_by_git.read_text()


async def test_serena_sees_no_secret_of_holdfast_or_of_the_user(world: World, tmp_path: Path) -> None:
    seen_by_serena, home = tmp_path / "seen", tmp_path / "home"
    program = tmp_path / "serena"
    program.write_text(f'#!/bin/sh\n(env; echo "$@") > {seen_by_serena}\n')
    program.chmod(0o700)
    entry = {"command": str(program), "args": ["${MCP_SESSION_SECRET}"], "env": {"TAKEN": "${GITHUB_TOKEN:-nothing}"}}
    (world.repository.path / ".mcp.json").write_text(json.dumps({"mcpServers": {"serena": entry}}))
    home.mkdir()
    secrets = dict.fromkeys(
        ("HOLDFAST_TELEGRAM_TOKEN", "MCP_SESSION_SECRET", "GITHUB_TOKEN", "DB_PASS"), "marker-secret"
    )
    serena = Serena(home, {"HOME": str(home), "PATH": os.environ["PATH"], "JAVA_HOME": "/java", **secrets})
    answer = await serena.probe(world.repository.path, trusted=True)
    await serena.close()
    assert answer.configured and not answer.answers
    seen = seen_by_serena.read_text()
    assert "JAVA_HOME=/java" in seen and "TAKEN=nothing" in seen
    assert "marker-secret" not in seen


async def test_a_command_is_stopped_at_its_limit_with_all_it_started(world: World, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {pid_file}; wait"
    verdict = await world.verify(check(CheckKind.COMMAND, argv=("sh", "-c", script), timeout_s=2))
    assert "did not finish within 2 s" in verdict.missing
    await gone(int(pid_file.read_text()))


async def test_what_a_command_left_in_the_background_ends_with_it(world: World, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {pid_file}"
    assert (await world.verify(check(CheckKind.COMMAND, argv=("sh", "-c", script)))).status is Status.PASS
    await gone(int(pid_file.read_text()))


async def test_a_claim_counts_where_the_protocol_says_so(world: World) -> None:
    said = seen("note", "Asked the team, they agree", source=Source.CLAIMED, gate="A_GATE")
    assert (await world.verify(check(CheckKind.CLAIM))).status is Status.FAIL
    assert (await world.verify(check(CheckKind.CLAIM), evidence=(said,))).status is Status.PASS


async def test_one_failed_check_fails_the_gate_and_all_are_named_in_order(world: World) -> None:
    missing = (check(CheckKind.FILE_EXISTS, "b"), check(CheckKind.FILE_EXISTS, "a"))
    verdict = await world.verify(check(CheckKind.FILE_EXISTS, "README.md"), *missing)
    assert (verdict.status, verdict.evidence) == (Status.FAIL, "README.md exists")
    assert verdict.missing == "b does not exist or is empty; a does not exist or is empty"


async def test_a_gate_is_skipped_only_where_every_check_is(world: World) -> None:
    nothing_to_read = check(CheckKind.FILE_READ, HANDOFF)
    assert (await world.verify(nothing_to_read, check(CheckKind.COMMAND))).status is Status.SKIPPED
    assert (await world.verify(nothing_to_read, check(CheckKind.GIT_STATE))).status is Status.PASS


async def test_a_blocking_gate_that_nothing_verifies_does_not_pass(world: World) -> None:
    assert (await world.verify()).status is Status.FAIL


async def gone(pid: int) -> None:
    """Wait until a process is gone; a killed one is for a moment still in the table."""
    deadline = time.monotonic() + 30
    while is_running(pid) and not _dead(pid):
        assert time.monotonic() < deadline, "it is still running"
        await asyncio.sleep(0.02)


def _dead(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z"
