"""What an agent's hooks are answered, on both stores, in real repositories."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.conftest import Place
from tests.contract.copies import copied
from tests.repository import AGENTS_FILES, Repository

from holdfast.agents.claude.hooks import HOOKS
from holdfast.identity.project import Root, RootSource
from holdfast.protocol.checks.gates import Checks
from holdfast.protocol.hooks.answers import LONGEST_TEXT, ProtocolHooks
from holdfast.protocol.model import Status
from holdfast.protocol.runs import EvidenceKind, RunRecord, SerenaAnswer
from holdfast.protocol.service import Protocols
from holdfast.store.sqlite import SqliteStore

pytestmark = pytest.mark.anyio


async def no_serena(worktree: Path, trusted: bool) -> SerenaAnswer:
    return SerenaAnswer(configured=False, answers=False, detail="")


def made(store: Any, home: Path) -> Protocols:
    return Protocols(store, Checks(no_serena), home)


@dataclass
class Desk:
    """An agent's hooks in a repository of its own."""

    protocols: Protocols
    repository: Repository
    hooks: ProtocolHooks = field(init=False)
    serial: count[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """What is remembered is lost with the daemon."""
        self.hooks = ProtocolHooks(self.protocols)

    @property
    def root(self) -> Root:
        return Root(self.repository.path.resolve().as_uri(), None, RootSource.DIRECTORY)

    def configure(self, text: str) -> None:
        self.repository.write(".holdfast/protocol.toml", text)

    async def begin(self) -> str:
        return (await self.protocols.start(self.root, "Mend the fence")).run.id

    async def hook(self, event: str, *, cwd: Path | None = None, **payload: Any) -> dict[str, Any] | None:
        common = {"session_id": "conversation", "cwd": str(cwd or self.repository.path), "hook_event_name": event}
        answer = await self.hooks.handle(HOOKS.event(event, {**common, **payload}))
        return None if answer is None else HOOKS.answer(event, answer)

    async def bash(self, command: str, *, after: bool = False, cwd: Path | None = None) -> dict[str, Any] | None:
        """Ask before a command; with `after`, let it work and tell of it too."""
        asked = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"use-{next(self.serial)}"}
        answer = await self.hook("PreToolUse", cwd=cwd, **asked)
        if after:
            await self.hook("PostToolUse", cwd=cwd, **asked, tool_response={"stdout": "", "stderr": ""})
        return answer

    async def read(self, path: str | Path, *, lines: int = 3, first: int = 1, total: int = 3) -> None:
        """Tell of a file that the agent read."""
        whole = str(self.repository.path / path)
        file = {"filePath": whole, "content": "…", "numLines": lines, "startLine": first, "totalLines": total}
        await self.hook(
            "PostToolUse",
            tool_name="Read",
            tool_input={"file_path": whole},
            tool_response={"type": "text", "file": file},
        )

    async def view(self) -> RunRecord:
        return (await self.protocols.records(self.root.uri))[0]

    async def seen(self, kind: EvidenceKind) -> list[str]:
        return [one.subject for one in (await self.view()).evidence if one.kind == kind]


def repository(path: Path, files: dict[str, str]) -> Repository:
    """A repository with these files, copied from the first of its kind."""
    copied(repr(files), lambda folder: Repository(folder, files), path)
    found = Repository.__new__(Repository)
    found.path = path
    return found


@pytest.fixture
async def desk(place: Place, tmp_path: Path) -> AsyncIterator[Desk]:
    store = place.open()
    try:
        yield Desk(
            made(store, tmp_path), repository(tmp_path / "project", {"README.md": "# A project\n", "sub/x": "x"})
        )
    finally:
        await store.close()


def said(answer: dict[str, Any] | None) -> str:
    assert answer is not None
    return str(answer["hookSpecificOutput"]["additionalContext"])


@pytest.mark.parametrize("enforcement", ["warn", "enforce"])
async def test_an_agent_that_commits_too_early_is_told_the_gate_and_the_next_step(desk: Desk, enforcement: str) -> None:
    desk.configure(f'enforcement = "{enforcement}"')
    run = await desk.begin()
    told = said(await desk.bash("git commit -m x"))
    for part in (run, "CONTEXT_RETRIEVAL", "Read what the project says of itself", "validate_gate"):
        assert part in told
    assert ("refuse" in told) == (enforcement == "enforce")
    assert len(told) <= LONGEST_TEXT
    await desk.read("README.md")
    await desk.protocols.validate(desk.root, "CONTEXT_RETRIEVAL")
    assert await desk.bash("git commit -m x") is None


async def test_nothing_is_told_of_a_commit_without_a_run(desk: Desk) -> None:
    desk.configure('enforcement = "enforce"')
    assert await desk.bash("git commit") is None


async def test_with_warn_a_commit_goes_through_and_is_kept_as_a_violation(desk: Desk) -> None:
    await desk.begin()
    desk.repository.commit("early", empty=True)
    await desk.bash("true", after=True)
    (violation,) = (await desk.view()).violations
    assert "CONTEXT_RETRIEVAL" in violation.requirement
    assert (await desk.view()).run.held_by == "CONTEXT_RETRIEVAL"


async def test_with_warn_a_commit_that_failed_is_no_violation(desk: Desk) -> None:
    await desk.begin()
    said(await desk.bash("git commit", after=True))
    assert (await desk.view()).violations == ()


async def test_with_off_hooks_only_take_evidence(desk: Desk) -> None:
    desk.configure('enforcement = "off"')
    await desk.begin()
    assert await desk.bash("git commit", after=True) is None
    assert await desk.hook("SessionStart", source="startup") is None
    assert await desk.hook("Stop", stop_hook_active=False) is None
    await desk.read("README.md")
    assert await desk.seen(EvidenceKind.FILE_READ) == ["README.md"]
    assert (await desk.view()).violations == ()


async def test_a_file_that_was_read_is_evidence_with_its_content_hash_kept_once(desk: Desk) -> None:
    await desk.begin()
    await desk.read("README.md")
    await desk.read("README.md")
    (evidence,) = [one for one in (await desk.view()).evidence if one.source == "hook"]
    assert (evidence.kind, evidence.subject) == (EvidenceKind.FILE_READ, "README.md")
    assert (evidence.detail, evidence.source) == (desk.repository.sha256("README.md"), "hook")
    (checked,) = (await desk.protocols.validate(desk.root, "CONTEXT_RETRIEVAL")).gates
    assert checked.verdict.status is Status.PASS


async def test_a_line_picked_out_of_a_file_is_no_reading_of_it(desk: Desk) -> None:
    await desk.begin()
    await desk.read("README.md", lines=1, first=1, total=900)
    await desk.read("README.md", lines=300, first=600, total=900)
    assert await desk.seen(EvidenceKind.FILE_READ) == []
    await desk.read("README.md", lines=300, first=1, total=900)
    assert await desk.seen(EvidenceKind.FILE_READ) == ["README.md"]


async def test_what_lies_outside_the_worktree_is_not_read_and_is_no_evidence(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("outside")
    (desk.repository.path / "CLAUDE.md").symlink_to(tmp_path / "README.md")
    await desk.begin()
    for path in ("../README.md", "CLAUDE.md", "/etc/hostname", "missing.md", "sub", "\ud800", "a\0b"):
        await desk.read(path)
    assert await desk.seen(EvidenceKind.FILE_READ) == []


async def test_a_link_within_the_worktree_is_itself_and_what_it_leads_to(desk: Desk) -> None:
    (desk.repository.path / "CLAUDE.md").symlink_to("README.md")
    await desk.begin()
    await desk.read("CLAUDE.md")
    assert sorted(await desk.seen(EvidenceKind.FILE_READ)) == ["CLAUDE.md", "README.md"]


@pytest.mark.parametrize("tool", ["mcp__serena__read_memory", "mcp__plugin_serena_serena__read_memory"])
@pytest.mark.parametrize("argument", ["memory_name", "memory_file_name"])
async def test_a_memory_read_through_serena_is_a_reading_of_its_file(desk: Desk, tool: str, argument: str) -> None:
    memory = ".serena/memories/skill-usage-mandatory.md"
    desk.repository.write(memory, AGENTS_FILES[memory])
    await desk.begin()
    for name in ("skill-usage-mandatory", "missing", "../../../README"):
        await desk.hook("PostToolUse", tool_name=tool, tool_input={argument: name}, tool_response="…")
    assert await desk.seen(EvidenceKind.FILE_READ) == [memory]
    assert await desk.seen(EvidenceKind.TOOL_CALLED) == [tool]


async def test_what_cat_and_serena_print_was_read_and_opens_the_gate_without_a_call(desk: Desk) -> None:
    desk.repository.write("CLAUDE.md", "# Rules\n")
    await desk.begin()

    async def used(tool: str, **given: Any) -> None:
        await desk.hook("PostToolUse", tool_name=tool, tool_input=given, tool_response={"stdout": "…"})

    await used("Bash", command="cat README.md | head -1")
    assert (await desk.view()).gates == (), "only a part was shown"
    await used("Bash", command="cat README.md")
    await used("mcp__serena__read_file", relative_path="CLAUDE.md", start_line=3)
    assert (await desk.view()).gates == ()
    await used("mcp__serena__read_file", relative_path="CLAUDE.md")
    (gate,) = (await desk.view()).gates
    assert (gate.gate, gate.status) == ("CONTEXT_RETRIEVAL", "PASS")


async def test_a_subagents_evidence_counts_and_its_end_is_not_held_up(desk: Desk) -> None:
    await desk.begin()
    await desk.hook("PostToolUse", agent_id="a", tool_name="Bash", tool_input={"command": "ls"}, tool_response={})
    assert await desk.seen(EvidenceKind.TOOL_CALLED) == ["Bash"]
    assert await desk.hook("Stop", agent_id="a", stop_hook_active=False) is None
    assert await desk.hook("SessionStart", agent_id="a", source="startup") is None


async def test_an_agent_that_stops_is_sent_back_once_for_the_same_reason(desk: Desk) -> None:
    run = await desk.begin()
    desk.repository.write("work.txt", "begun\n")
    answer = await desk.hook("Stop", stop_hook_active=False)
    assert answer is not None and answer["decision"] == "block"
    assert run in answer["reason"] and "CONTEXT_RETRIEVAL" in answer["reason"] and "GIT_COMMIT" in answer["reason"]
    assert len(answer["reason"]) <= LONGEST_TEXT
    assert await desk.hook("Stop", stop_hook_active=True) is None
    assert await desk.hook("Stop", stop_hook_active=False) is None
    await desk.read("README.md")
    nearer = await desk.hook("Stop", stop_hook_active=False)
    assert nearer is not None and "CONTEXT_RETRIEVAL" not in nearer["reason"]


async def test_a_run_with_nothing_missing_is_reminded_of_its_end(desk: Desk) -> None:
    await desk.begin()
    await desk.read("README.md")
    desk.repository.write("work.txt", "work")
    desk.repository.commit()
    answer = await desk.hook("Stop", stop_hook_active=False)
    assert answer is not None and "session_end" in answer["reason"]


@pytest.mark.parametrize("source", ["startup", "resume", "compact", "clear"])
async def test_a_run_in_progress_is_put_in_front_of_the_agent(desk: Desk, source: str) -> None:
    run = await desk.begin()
    text = said(await desk.hook("SessionStart", source=source))
    for part in (run, "INIT", "Mend the fence", "CONTEXT_RETRIEVAL", "get_blocked_reason"):
        assert part in text
    assert len(text) <= LONGEST_TEXT


async def test_a_project_with_a_protocol_says_how_to_begin_and_one_without_says_nothing(desk: Desk) -> None:
    assert await desk.hook("SessionStart", source="startup") is None
    desk.configure('protocol = "simple"')
    assert "session_start" in said(await desk.hook("SessionStart", source="startup"))
    desk.configure("protocol = nonsense")
    assert ".holdfast/protocol.toml" in said(await desk.hook("SessionStart", source="startup"))


async def test_the_first_prompt_begins_a_run_where_the_project_says_so(desk: Desk) -> None:
    desk.configure('start = "hook"')
    await desk.hook("SessionStart", source="startup")
    assert await desk.hook("UserPromptSubmit", prompt="/help") is None
    text = said(await desk.hook("UserPromptSubmit", prompt="  Mend\nthe gate  "))
    run = (await desk.view()).run
    assert (run.objective, run.phase) == ("Mend\nthe gate", "INIT")
    assert run.id in text
    assert await desk.hook("UserPromptSubmit", prompt="And the fence") is None
    assert len(await desk.protocols.records(desk.root.uri)) == 1


async def test_work_without_a_session_is_told_at_the_next_touch_and_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ran(command: str) -> dict[str, Any] | None:
        given = {"command": command}
        return await desk.hook("PostToolUse", tool_name="Bash", tool_input=given, tool_response={"stdout": ""})

    assert await ran("make") is None, "nothing is enforced"
    desk.configure('enforcement = "enforce"')
    await desk.begin()
    await desk.protocols.end(desk.root, "Done with it", abort=True)
    assert await desk.hook("UserPromptSubmit", prompt="Mend it") is None, "nothing was done yet"
    told = said(await ran("make"))
    assert "session_start" in told and "recorded" in told
    assert await ran("make") is None
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2099-01-01T00:00:00Z")  # not in the second in which it ended
    desk.repository.write("work.txt", "work")
    desk.repository.commit()
    commit = desk.repository.git("rev-parse", "--short", "HEAD").strip()
    assert commit in said(await desk.hook("UserPromptSubmit", prompt="And now?"))
    assert await ran("make") is None
    assert await desk.hook("UserPromptSubmit", prompt="And now?") is None
    await desk.begin()
    assert commit in (await desk.view()).violations[0].requirement
    assert await ran("make") is None


async def test_no_other_prompt_begins_a_run(desk: Desk) -> None:
    assert await desk.hook("UserPromptSubmit", prompt="Hello") is None
    desk.configure('start = "hook"')
    await desk.hook("SessionStart", source="compact")
    await desk.hook("UserPromptSubmit", prompt="Hello")
    assert await desk.protocols.records(desk.root.uri) == []


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just("/"),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
FIELDS = ["cwd", "session_id", "tool_name", "tool_input", "tool_response", "tool_use_id", "prompt", "source"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    event=st.sampled_from(["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "Unknown"]),
    payload=st.dictionaries(st.sampled_from(FIELDS), ODD),
    tool=st.sampled_from(["Bash", "Read", "mcp__serena__read_memory", None]),
    place=st.sampled_from(["here", "/", "/missing/" + "x" * 300, None]),
)
async def test_no_payload_is_too_strange_to_be_answered(
    tmp_path: Path, event: str, payload: dict[str, Any], tool: str | None, place: str | None
) -> None:
    project = tmp_path / "project"
    if not project.exists():
        Repository(project)
    store = SqliteStore.open(tmp_path / "odd.db")
    try:
        protocols = made(store, tmp_path)
        if await protocols.active_run(str(project)) is None:
            await protocols.start_run(str(project), "Odd things")
        named = {"tool_name": tool} if tool else {}
        where = {"cwd": str(project) if place == "here" else place} if place else {}
        answer = await ProtocolHooks(protocols).handle(HOOKS.event(event, {**payload, **named, **where}))
        assert answer is None or isinstance(HOOKS.answer(event, answer), dict)
    finally:
        await store.close()
