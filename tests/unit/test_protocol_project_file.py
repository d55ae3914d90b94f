"""A project's protocol is what its files say, or the fault is named; nothing outside the worktree is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.files.inside import NotAFile, OutsideWorktree, TooLarge, read_inside
from holdfast.protocol.model import COMPLETE, INIT, WORKING, Check, CheckKind, Gate, Level
from holdfast.protocol.project.settings import Enforcement, ProjectProtocol, read_project, serena_entries
from holdfast.protocol.project.toml_lines import line_of
from holdfast.protocol.protocols import AGENTS, SIMPLE

DOCUMENT = """\
## Session Start Protocol

### Phase 1: Serena Initialization (BLOCKING)

### Phase 2: Read the Map (BLOCKING when there is one)

1. The agent MUST read `docs/map.md`

### Phase 2: All (RECOMMENDED)

## Session End Protocol

### Phase 1: Documentation Update (REQUIRED)

1. The agent MUST NOT update `.agents/HANDOFF.md`

### Phase 2: Read the map

## Session End Checklist

| Req | Step |
|-----|------|
| MUST | Complete session log |
| MUST NOT | Commit all changes |
| MUST | Read the map again |
"""


def write(worktree: Path, path: str, text: str) -> None:
    (worktree / path).parent.mkdir(parents=True, exist_ok=True)
    (worktree / path).write_text(text)


def project(worktree: Path, settings: str, document: str | None = None) -> ProjectProtocol:
    write(worktree, ".holdfast/protocol.toml", settings)
    if document is not None:
        write(worktree, "SESSION-PROTOCOL.md", document)
    return read_project(worktree)


def gate(found: ProjectProtocol, name: str) -> Gate:
    one = found.protocol.gate(name)
    assert one is not None
    return one


def test_without_a_file_the_protocol_is_the_one_that_fits(tmp_path: Path) -> None:
    plain = read_project(tmp_path)
    assert (plain.protocol, plain.enforcement, plain.started_by) == (SIMPLE, Enforcement.WARN, "agent")
    assert (plain.configured, plain.faults, plain.commands) == (False, (), ())
    (tmp_path / ".agents").mkdir()
    assert read_project(tmp_path).protocol == AGENTS


def test_a_built_in_protocol_takes_the_projects_command_and_checks(tmp_path: Path) -> None:
    found = project(
        tmp_path,
        'protocol = "agents"\nenforcement = "enforce"\nstart = "hook"\n'
        '[gates.QUALITY_CHECKS]\ncommand = ["make", "check"]\ntimeout = 60\n'
        '[gates.CONTEXT_RETRIEVAL]\nfile_read = ["./docs/map.md"]\ntool_called = ["Grep"]\nblocking = false\n'
        '[gates.QA_VALIDATION]\nclaim = true\nrecovery = ["Ask somebody."]\n'
        '[gates.GIT_STATE]\ncommand = ["git", "status"]\n',
    )
    assert found.faults == ()
    assert (found.enforcement, found.started_by, found.configured) == (Enforcement.ENFORCE, "hook", True)
    assert gate(found, "QUALITY_CHECKS").checks == (Check(CheckKind.COMMAND, argv=("make", "check"), timeout_s=60),)
    context = gate(found, "CONTEXT_RETRIEVAL")
    assert context.checks == (
        Check(CheckKind.FILE_READ, paths=("docs/map.md",)),
        Check(CheckKind.TOOL_CALLED, names=("Grep",)),
    )
    assert context.recovery == ("Read docs/map.md.", "Call one of these tools: Grep.")
    assert not context.blocking
    assert gate(found, "QA_VALIDATION").checks == (Check(CheckKind.CLAIM),)
    assert gate(found, "QA_VALIDATION").recovery == ("Ask somebody.",)
    assert gate(found, "SESSION_LOG") == AGENTS.gate("SESSION_LOG")
    assert found.commands == (("git", "status"), ("make", "check"))


def test_a_document_becomes_a_chain_of_gates_in_its_own_order(tmp_path: Path) -> None:
    found = project(tmp_path, 'protocol = "document"\n[gates.READ_THE_MAP]\nfile_read = ["docs/map.md"]\n', DOCUMENT)
    assert found.faults == ()
    assert [(step.source, step.gate.name, step.target) for step in found.protocol.transitions] == [
        (INIT, "SERENA_INIT", "SERENA_INIT_DONE"),
        ("SERENA_INIT_DONE", "READ_THE_MAP", "READ_THE_MAP_DONE"),
        ("READ_THE_MAP_DONE", "ALL_2", WORKING),
        (WORKING, "DOCS_UPDATE", "DOCS_UPDATE_DONE"),
        ("DOCS_UPDATE_DONE", "READ_THE_MAP_2", COMPLETE),
    ]
    assert [(one.level, one.blocking) for one in found.protocol.gates] == [
        (Level.MUST, True),
        (Level.MUST, True),
        (Level.SHOULD, False),
        (Level.MUST, False),
        (Level.SHOULD, False),
    ]
    assert gate(found, "SERENA_INIT").checks == AGENTS.gates[0].checks
    assert gate(found, "ALL_2").checks == (Check(CheckKind.CLAIM),)


def test_a_document_is_not_asked_for_what_it_forbids_itself(tmp_path: Path) -> None:
    found = project(tmp_path, 'protocol = "document"\n[gates.READ_THE_MAP]\nclaim = true\n', DOCUMENT)
    (check,) = gate(found, "DOCS_UPDATE").checks
    assert check.paths == (".agents/sessions/*",)
    assert not any("HANDOFF" in step for step in gate(found, "DOCS_UPDATE").recovery)


def test_a_checklist_row_names_the_gate_that_verifies_it_and_none_where_nobody_does(tmp_path: Path) -> None:
    found = project(tmp_path, 'protocol = "document"\n[gates.READ_THE_MAP]\nclaim = true\n', DOCUMENT)
    assert [(item.step, item.gate) for item in found.protocol.checklist] == [
        ("The agent MUST read docs/map.md", "READ_THE_MAP"),
        ("Complete session log", "DOCS_UPDATE"),
        ("Commit all changes", None),
        ("Read the map again", "READ_THE_MAP_2"),
    ]


def test_a_blocking_gate_that_nothing_verifies_is_a_fault_at_its_phase(tmp_path: Path) -> None:
    (fault,) = project(tmp_path, 'protocol = "document"\n', DOCUMENT).faults
    assert (fault.path, fault.line) == ("SESSION-PROTOCOL.md", 5)
    assert "READ_THE_MAP" in fault.message and "claim = true" in fault.message


@pytest.mark.parametrize(
    ("settings", "line", "words"),
    [
        ('protocol = "agents"\nprotocol = "simple"\n', 2, "overwrite"),
        ("start = \n", 1, "Invalid"),
        ('protocol = "seed"\n', 1, "agents, simple, document"),
        ('\nenforcement = "hard"\n', 2, "off, warn, enforce"),
        ('start = "cron"\n', 1, "agent, hook"),
        ('enforcment = "warn"\n', 1, "did you mean enforcement?"),
        ('protocol = "simple"\ndocument = "x.md"\n', 2, 'protocol = "document"'),
        ('protocol = "document"\n', 1, "does not exist"),
        ('protocol = "document"\ndocument = "../x.md"\n', 2, "stay in it"),
        ('protocol = "document"\ndocument = 3\n', 2, "path"),
        ("gates = 3\n", 1, "tables"),
        ("[gates.QUALTY_CHECKS]\n", 1, "did you mean QUALITY_CHECKS?"),
        ('[gates.QUALITY_CHECKS]\n\ncommand = "make"\n', 3, "list"),
        ("[gates.QUALITY_CHECKS]\ncommand = []\n", 2, "list"),
        ('[gates.QUALITY_CHECKS]\ncommand = ["make"]\ntimeout = 0\n', 3, "1 to 3600"),
        ("[gates.GIT_COMMIT]\ntimeout = 5\n", 2, "has none"),
        ('[gates.GIT_COMMIT]\nfile_exists = ["/etc/passwd"]\n', 2, "relative"),
        ('[gates.GIT_COMMIT]\nreport = ["a/../../b"]\n', 2, "relative"),
        ('[gates.GIT_COMMIT]\nblocking = "no"\n', 2, "true or false"),
        ('[gates.GIT_COMMIT]\nfile_reed = ["a"]\n', 2, "did you mean file_read?"),
        ('gates.GIT_COMMIT.docs_changed = "a"\n', 1, "list"),
    ],
)
def test_a_fault_in_the_settings_names_its_line_and_the_remedy(
    tmp_path: Path, settings: str, line: int, words: str
) -> None:
    (fault,) = project(tmp_path, settings).faults
    assert (fault.path, fault.line) == (".holdfast/protocol.toml", line)
    assert words in fault.message
    assert str(fault).startswith(f".holdfast/protocol.toml:{line}: ")


def test_the_faults_of_a_document_are_the_projects(tmp_path: Path) -> None:
    bad = DOCUMENT.replace("| MUST | Complete", "| MIST | Complete")
    (fault,) = project(tmp_path, 'protocol = "document"\n', bad).faults
    assert (fault.path, fault.line) == ("SESSION-PROTOCOL.md", 23)


@pytest.mark.parametrize("path", [".holdfast/protocol.toml", ".mcp.json"])
def test_what_is_no_file_of_the_project_is_a_fault_and_never_trusted(tmp_path: Path, path: str) -> None:
    outside = tmp_path / "secret"
    outside.write_text('protocol = "simple"\n')
    traps: dict[str, Callable[[Path], object]] = {
        "link": lambda place: place.symlink_to(outside),
        "pipe": os.mkfifo,
        "directory": Path.mkdir,
        "huge": lambda place: place.write_bytes(b"#" * (1024 * 1024)),
        "loop": lambda place: place.symlink_to(place),
    }
    for name, trap in traps.items():
        worktree = tmp_path / name
        (worktree / path).parent.mkdir(parents=True)
        trap(worktree / path)
        found = read_project(worktree)
        assert [fault.path for fault in found.faults] == [path], name
        assert found.digest == ""


def test_a_directory_that_leads_out_of_the_worktree_is_not_entered(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write(outside, "protocol.toml", 'protocol = "simple"\n')
    worktree = tmp_path / "worktree"
    worktree.mkdir()
    (worktree / ".holdfast").symlink_to(outside)
    (worktree / ".agents").symlink_to(outside)
    found = read_project(worktree)
    assert [fault.path for fault in found.faults] == [".holdfast/protocol.toml"]
    assert found.protocol == SIMPLE


def test_reading_inside_follows_links_only_within_the_worktree(tmp_path: Path) -> None:
    worktree = tmp_path / "worktree"
    write(worktree, "a/file", "text")
    (worktree / "link").symlink_to("a/file")
    (worktree / "out").symlink_to("/etc")
    assert read_inside(worktree, "link", 4) == b"text"
    assert read_inside(worktree, "nothing/here", 4) is None
    assert read_inside(worktree, "a/file/below", 4) is None
    for path in ("out/passwd", "../worktree/a/file", str(worktree / "a/file"), "", "a\0b", "\ud800"):
        with pytest.raises(OutsideWorktree):
            read_inside(worktree, path, 4)
    with pytest.raises(TooLarge):
        read_inside(worktree, "a/file", 3)
    with pytest.raises(NotAFile):
        read_inside(worktree, "a", 4)


def test_the_digest_changes_with_what_could_be_run_and_with_nothing_else(tmp_path: Path) -> None:
    digests = [read_project(tmp_path).digest]
    write(tmp_path, "README.md", "text")
    write(tmp_path, ".mcp.json", '{"mcpServers": {"other": {"command": "x"}}}')
    assert read_project(tmp_path).digest == digests[0]
    for path, text in (
        (".mcp.json", '{"mcpServers": {"Serena": {"command": "serena"}}}'),
        (".mcp.json", '{"mcpServers": {"Serena": {"command": "evil"}}}'),
        (".holdfast/protocol.toml", "# nothing"),
        (".holdfast/protocol.toml", '[gates.QUALITY_CHECKS]\ncommand = ["a"]'),
    ):
        write(tmp_path, path, text)
        digests.append(read_project(tmp_path).digest)
    assert len(set(digests)) == len(digests)
    write(tmp_path, ".serena/project.yml", "completed by Serena: true")
    assert read_project(tmp_path).digest == digests[-1], "trust does not end with what Serena writes"


def test_a_broken_mcp_json_names_no_server() -> None:
    for broken in (None, b"", b"{", b"[]", b'{"mcpServers": 3}', b"[" * 100_000, b"\xff"):
        assert serena_entries(broken) == {}


@given(
    st.binary(max_size=200) | st.from_regex(r"(\[gates\.[A-Z]{1,4}\]\n|[a-z_]{1,8} = (\[.{0,9}\]|\"\w*\"|\d)\n){0,6}")
)
def test_any_settings_are_read_or_refused_with_a_line_within_them(
    tmp_path_factory: pytest.TempPathFactory, content: bytes | str
) -> None:
    worktree = tmp_path_factory.mktemp("worktree")
    raw = content if isinstance(content, bytes) else content.encode()
    (worktree / ".holdfast").mkdir()
    (worktree / ".holdfast/protocol.toml").write_bytes(raw)
    found = read_project(worktree)
    assert found.configured
    assert all(fault.line is None or 1 <= fault.line <= raw.count(b"\n") + 1 for fault in found.faults)


def test_the_nearest_line_is_named_where_a_key_cannot_be_found() -> None:
    text = 'a = 1\n[gates."X Y"]\nb.c = 2\n[gates.Z] # comment\n'
    assert line_of(text, "gates", "X Y", "b", "c") == 3
    assert line_of(text, "gates", "X Y", "other") == 2
    assert line_of(text, "gates", "Z", "other") == 4
    assert line_of(text, "nothing") is None
