"""Forged evidence passes no blocking gate."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract.protocol_world import LONG_AGO, OTHER_RUN, RUN_ID, Repository, World, check, seen

from holdfast.git.state import Git
from holdfast.protocol.model import CheckKind, Status
from holdfast.protocol.runs import EvidenceKind, Source

pytestmark = pytest.mark.anyio

PATH = ".agents/qa/report.md"
REPORT = check(CheckKind.REPORT, ".agents/qa/**/*.md")
RECORDED = seen(EvidenceKind.REPORT, PATH, source=Source.CLAIMED)


@pytest.fixture
def world(tmp_path: Path) -> World:
    repository, start = Repository.begun(tmp_path / "project", ("README.md", "Read me.\n"), date=LONG_AGO)
    repository.write("src/code.py", "1\n")
    return World(repository, start)


@pytest.mark.parametrize("kind", [EvidenceKind.FILE_READ, EvidenceKind.CONTENT_HASH])
@pytest.mark.parametrize("source", [Source.CLAIMED, Source.SERVER, Source.HOOK])
async def test_a_claimed_read_is_no_read(world: World, kind: EvidenceKind, source: Source) -> None:
    genuine = {(EvidenceKind.FILE_READ, Source.HOOK), (EvidenceKind.CONTENT_HASH, Source.SERVER)}
    verdict = await world.verify(
        check(CheckKind.FILE_READ, "README.md"), evidence=(seen(kind, "README.md", "ab" * 32, source=source),)
    )
    assert verdict.status is (Status.PASS if (kind, source) in genuine else Status.FAIL)


async def test_a_claimed_tool_call_is_none(world: World) -> None:
    claimed = seen(EvidenceKind.TOOL_CALLED, "mcp__docs__search", source=Source.CLAIMED)
    verdict = await world.verify(check(CheckKind.TOOL_CALLED, names=("mcp__docs__*",)), evidence=(claimed,))
    assert verdict.status is Status.FAIL


BY_WORD_OR_GIT = (CheckKind.CLAIM, CheckKind.GIT_STATE, CheckKind.NOT_ON_BRANCH)


@pytest.mark.parametrize("kind", [kind for kind in CheckKind if kind not in BY_WORD_OR_GIT])
async def test_a_claim_alone_passes_no_other_check(world: World, kind: CheckKind) -> None:
    said = seen("note", "All of it is finished and verified", source=Source.CLAIMED, gate="A_GATE")
    command = check(kind, ".agents/HANDOFF.md", names=("Task",), argv=("true",))
    assert (await world.verify(command, evidence=(said,))).status is not Status.PASS


@pytest.mark.parametrize("text", ["N/A", "todo", "Done.", "skipped", "`n/a`", "x", "-", " "])
async def test_a_claim_that_says_nothing_is_none(world: World, text: str) -> None:
    said = seen("note", text, source=Source.CLAIMED, gate="A_GATE")
    assert (await world.verify(check(CheckKind.CLAIM), evidence=(said,))).status is Status.FAIL


async def test_a_claim_for_another_gate_is_none(world: World) -> None:
    said = seen("note", "Asked the team, they agree", source=Source.CLAIMED, gate="ANOTHER")
    assert (await world.verify(check(CheckKind.CLAIM), evidence=(said,))).status is Status.FAIL


@pytest.mark.parametrize(
    "commit",
    [
        "f" * 40,
        "deadbee",
        "HEAD",
        "main",
        "@",
        "-h",
        "--all",
        "HEAD~0",
        "",
        "abc",
        "g" * 40,
        "0" * 65,
        "a:b",
        "1234567\n",
    ],
)
async def test_a_fabricated_commit_does_not_exist(world: World, commit: str) -> None:
    assert await Git(world.repository.path).exists(commit) is False


async def test_a_branch_named_like_a_commit_is_no_commit(world: World) -> None:
    world.repository.git("branch", "deadbee")
    assert await Git(world.repository.path).exists("deadbee") is False


async def test_a_blob_is_no_commit(world: World) -> None:
    blob = world.repository.git("rev-parse", "HEAD:README.md")
    assert await Git(world.repository.path).exists(blob) is False
    assert world.start is not None
    assert await Git(world.repository.path).exists(world.start[:7]) is True


async def test_a_fabricated_start_does_not_make_a_commit(world: World) -> None:
    world.repository.commit("src/code.py", "2\n")
    verdict = await World(world.repository, "f" * 40).verify(check(CheckKind.COMMITTED))
    assert verdict.missing == "the starting commit ffffffffffff is not in this repository"


async def test_going_back_to_an_earlier_commit_is_no_commit(world: World) -> None:
    later = world.repository.commit("src/code.py", "2\n")
    world.repository.git("reset", "--quiet", "--hard", "HEAD~1")
    verdict = await World(world.repository, later).verify(check(CheckKind.COMMITTED))
    assert "no commit since" in verdict.missing


async def test_checking_out_an_old_branch_is_no_commit(world: World) -> None:
    world.repository.git("checkout", "--quiet", "-b", "old")
    world.repository.commit("src/code.py", "old\n", date=LONG_AGO)
    world.repository.git("checkout", "--quiet", "main")
    start = world.repository.commit("src/code.py", "2\n")
    world.repository.git("checkout", "--quiet", "old")
    verdict = await World(world.repository, start).verify(check(CheckKind.COMMITTED))
    assert "before the session began" in verdict.missing


@pytest.mark.parametrize(
    "content",
    [
        "",
        " \n\t\n",
        f"---\nsession: {RUN_ID}\n---\n",
        f"---\nsession: {RUN_ID}\n---\n# QA Report\n\n<!-- to be written -->\n",
        f"---\nsession: {RUN_ID}\n---\nTODO\n",
    ],
)
async def test_an_empty_report_does_not_pass(world: World, content: str) -> None:
    world.repository.write(PATH, content)
    assert (await world.verify(REPORT, evidence=(RECORDED,))).status is Status.FAIL


@pytest.mark.parametrize(
    "head",
    [
        f"session: {OTHER_RUN}",
        f"session_id: {OTHER_RUN}",
        f"session: {RUN_ID}\nsession_id: {OTHER_RUN}",
        f"session: [{RUN_ID}, {OTHER_RUN}]",
        f"session: {RUN_ID}1",
    ],
)
async def test_the_report_of_another_run_does_not_pass_even_when_recorded(world: World, head: str) -> None:
    world.repository.write(PATH, f"---\n{head}\n---\nIt works.\n")
    verdict = await world.verify(REPORT, evidence=(RECORDED,))
    assert verdict.status is Status.FAIL
    assert f"{PATH} belongs to" in verdict.missing


async def test_a_report_that_was_there_before_does_not_pass_when_recorded(world: World) -> None:
    start = world.repository.commit(PATH, "It works.\n")
    world.repository.write("src/code.py", "2\n")
    verdict = await World(world.repository, start).verify(REPORT, evidence=(RECORDED,))
    assert f"{PATH} existed before the session began" in verdict.missing


async def test_the_id_in_the_text_of_a_report_binds_nothing(world: World) -> None:
    world.repository.write(PATH, f"session: {RUN_ID}\n\nIt works.\n")
    assert (await world.verify(REPORT)).status is Status.FAIL


@pytest.mark.parametrize("path", ["src/code.py", "page.mdx", "Makefile", "notes.md.sh"])
async def test_skipping_the_review_of_code_does_not_pass(world: World, path: str) -> None:
    start = world.repository.commit("src/code.py", "2\n")
    world.repository.write(path, "3\n")
    assert (await World(world.repository, start, skip_qa=True).verify(REPORT)).status is Status.FAIL


async def test_code_in_markdown_is_code(world: World) -> None:
    start = world.repository.commit("guide.md", "Run:\n\n```sh\nmake\n```\n")
    world.repository.write("guide.md", "Run this:\n\n```sh\nmake\n```\n")
    docs = World(world.repository, start, skip_qa=True)
    assert (await docs.verify(REPORT)).status is Status.SKIPPED
    world.repository.write("guide.md", "Run:\n\n```sh\nmake all\n```\n")
    assert "changed code blocks" in (await docs.verify(REPORT)).missing


async def test_a_link_called_markdown_is_not(world: World) -> None:
    start = world.repository.commit("src/code.py", "2\n")
    (world.repository.path / "notes.md").symlink_to("src/code.py")
    verdict = await World(world.repository, start, skip_qa=True).verify(REPORT)
    assert "notes.md is not a markdown file" in verdict.missing
