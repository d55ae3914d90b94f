"""A SESSION-PROTOCOL.md is understood as it is written, or the line that is not understood is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.protocol.model import CheckKind, Level, Part
from holdfast.protocol.project.document import MAX_BYTES, Fault, Requirement, Urgency, parse
from holdfast.protocol.project.from_document import protocol_of

PHASES = """\
# Session Protocol

| Key Word | Meaning |
|----------|---------|
| **MUST** | Absolute requirement |

## Session Start Protocol

### Phase 2: Context Retrieval (BLOCKING)

The agent MUST read context documents.

**Requirements:**

1. The agent MUST read `.agents/HANDOFF.md`
2. The agent **MUST NOT** modify it,
   not even `MAY | SHOULD` in code
3. The agent **SHOULD** read the plan
   - and this is not an entry of its own
4. Everything else `MUST` wait

**Memory Loading Protocol:**

1. Not a requirement

**Verification:**

- File contents appear in session context
- The agent names prior decisions

### Retrieval-Led Reasoning

- Not a requirement either

### Phase 1.5: Per-Issue Handoff (BLOCKING when issue context exists)

1. Unlabelled entries MAY count

### Phase 2: Skill Validation (REQUIRED)

### Phase 9: Notes (see (the) wiki)

## Session End Protocol

### Phase 1: **Git** Operations (RECOMMENDED)

Requirements:

- The agent MUST commit

## Unattended Execution Protocol

### Phase 1: Not of a session (BLOCKING)

| Req | Requirement | Verification |
|-----|-------------|--------------|
| NEVER | be read | at all |
"""

BOTH = "## Session Start Protocol\n\n### Phase 1: One\n\n## Session End Protocol\n\n### Phase 1: Two\n\n"


def test_phases_are_read_in_the_documents_order_whatever_their_numbers() -> None:
    found = parse(PHASES)
    assert found.faults == ()
    assert [(phase.part, phase.title, phase.urgency, phase.line) for phase in found.phases] == [
        (Part.START, "Context Retrieval", Urgency.BLOCKING, 9),
        (Part.START, "Per-Issue Handoff", Urgency.BLOCKING, 35),
        (Part.START, "Skill Validation", Urgency.REQUIRED, 39),
        (Part.START, "Notes (see (the) wiki)", None, 41),
        (Part.END, "Git Operations", Urgency.RECOMMENDED, 45),
    ]


def test_requirements_carry_their_level_and_verification_stands_apart() -> None:
    context, handoff, *_, commit = parse(PHASES).phases
    assert context.requirements == [
        Requirement(Level.MUST, "The agent MUST read .agents/HANDOFF.md"),
        Requirement(Level.MUST_NOT, "The agent MUST NOT modify it, not even MAY | SHOULD in code"),
        Requirement(Level.SHOULD, "The agent SHOULD read the plan"),
        Requirement(None, "Everything else MUST wait"),
    ]
    assert handoff.requirements == [Requirement(Level.MAY, "Unlabelled entries MAY count")]
    assert commit.requirements == [Requirement(Level.MUST, "The agent MUST commit")]


TABLE = """\
## Session Start Checklist

```markdown
## Protocol Compliance

### Session Start (COMPLETE ALL before work)

| Req | Step | Status | Evidence |
|-----|------|--------|----------|
| MUST | Initialize Serena: `mcp__serena__activate_project` | [ ] | Tool output present |
| **MUST** | Scan: `grep -iE "key|password" [file].json` | [ ] | Scan result: "Clean" |
| MUST NOT | Update `.agents/HANDOFF.md` directly | [ ] | unchanged |
| **MUST** **NOT** | Use a \\| b | [ ] | |
| SHOULD NOT | Linger | [ ] | |
| OPTIONAL | Read more | [ ] |
|  |  |  |  |
```

## Session Log Template

````markdown
### Session Start

| Req | Step | Status | Evidence |
|-----|------|--------|----------|
| MUST | Initialize Serena: `mcp__serena__activate_project` | [x] | Another wording |

## Session End (COMPLETE ALL before closing)

| Level | Requirement | Status | Evidence |
|:------|-------------|:------:|---------:|
| MUST | Commit all changes | [ ] | Commit SHA: _______ |
````

> ## Session End, in short
>
> Req | Requirement | Verification
> ----|-------------|-------------
> must | Run ``a `|` b`` | `exit 0`
> MUST | A lone ` backtick | and ` another
"""


def test_a_checklist_is_read_with_all_the_traps_people_write_into_it() -> None:
    found = parse(BOTH + TABLE)
    assert found.faults == ()
    assert [(item.part, item.level, item.step) for item in found.checklist] == [
        (Part.START, Level.MUST, "Initialize Serena: mcp__serena__activate_project"),
        (Part.START, Level.MUST, 'Scan: grep -iE "key|password" [file].json'),
        (Part.START, Level.MUST_NOT, "Update .agents/HANDOFF.md directly"),
        (Part.START, Level.MUST_NOT, "Use a | b"),
        (Part.START, Level.SHOULD, "Do not: Linger"),
        (Part.START, Level.MAY, "Read more"),
        (Part.END, Level.MUST, "Commit all changes"),
        (Part.END, Level.MUST, "Run a `|` b"),
        (Part.END, Level.MUST, "A lone ` backtick"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("## Session Start\n\n```md\n| Req | Step |\n|--|--|\n| MUST | a |\n| MUSTY | b |\n```\n", 7, '"MUSTY"'),
        ("## Session Start\n\n- x\n\n  ```\n  | Req | Step |\n  |--|--|\n  | | b |\n  ```\n", 8, "empty cell"),
        ("## Session Start\n\n| Req | Step |\n|--|--|\n| MUST | |\n", 5, "no step"),
        ("## Session Start\n\n| Req | Step |\n|--|--|\n| MUST | a | b | c |\n", 5, "4 cells"),
        ("## Session Start\n\n| Req | Step |\n|--|--|\n| MUST | a |\ntext right below\n", 6, '"text right below"'),
        ("## Session Start\n\n| Req | Task | Status |\n|--|--|--|\n| MUST | a | |\n", 3, "no column Step"),
        ("## Session End\n\n| Step | Status |\n|--|--|\n| a | |\n", 3, "no column Req"),
        ("## Session Start\n\n### Phase 1 Without a colon\n", 3, "needs a title"),
        ("## Session Start\n\n### Phase 1: (BLOCKING)\n", 3, "needs a title"),
        ("## Session Start\r\n\r\n### Phase 1: A (BLOKING)\r\n", 3, "(BLOKING) must be one of"),
        ("## Session Start\n\n### Phase 1: A\n\n### Phase 2: a (BLOCKING)\n", 5, "in line 3"),
        ("## Session Start\n\n### Phase 1: " + "a" * 300 + "\n", 3, "longer than 200"),
        ("## Session Start\n\n| Req | Step |\n|--|--|\n| MUST | " + "a" * 10_001 + " |\n", 5, "longer than 10000"),
    ],
)
def test_what_cannot_be_understood_is_named_with_its_line(text: str, line: int, words: str) -> None:
    (fault,) = [fault for fault in parse(text).faults if fault.line is not None]
    assert fault.line == line
    assert words.lower() in fault.message.lower()


def test_a_document_without_phases_for_both_parts_says_what_to_write() -> None:
    assert [fault.message.split("`")[1] for fault in parse("# Nothing\n").faults] == [
        "## Session Start Protocol",
        "## Session End Protocol",
    ]
    (fault,) = parse("## Session Start Protocol\n\n### Phase 1: One\n").faults
    assert fault.line is None and "## Session End Protocol" in fault.message


def test_a_document_over_a_mebibyte_is_refused_unread() -> None:
    assert parse("é" * MAX_BYTES).faults == (Fault(None, f"The document is longer than {MAX_BYTES} bytes."),)


def test_a_phase_that_names_a_session_start_stays_where_it_stands() -> None:
    found = parse(BOTH + "### Phase 3: Undo the Session Start (REQUIRED)\n")
    assert found.phases[-1].part is Part.END


HEADING = r"#{1,4} (Session (Start|End)( Protocol)?|Phase [0-9.]{0,3}: ?[\w (]{0,20}\)?)"
ROW = r"( {0,4}|> |- )\|? ?(\*\*)?(Req|MUST|SHOULD NOT|[`|\\]{0,4})(\*\*)? ?\|( ?(Step|Status|[`|\\a]{0,6}) ?\|){0,3}"
OTHER = r"`{3,4}(markdown|md)?|~~~|\d\. .{0,20}|- \[ \] .{0,20}|\*\*(Requirements|Verification):\*\*|"
LINES = st.from_regex(rf"{HEADING}|{ROW}|(\|? ?:?-+:? ?){{1,4}}\|?|{OTHER}", fullmatch=True)
ENDINGS = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])


@given(st.one_of(st.text(), st.lists(st.tuples(LINES, ENDINGS)).map(lambda all_: "".join(map("".join, all_)))))
def test_any_text_is_read_to_its_end_and_faults_lie_within_it(text: str) -> None:
    found = parse(text)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    assert all(fault.line is None or 1 <= fault.line <= lines for fault in found.faults)
    assert all(1 <= phase.line <= lines and phase.title for phase in found.phases)
    assert all(item.step for item in found.checklist)


@pytest.mark.parametrize(
    ("text", "branches"),
    [
        ("MUST NOT be on branch `main`", ("main",)),
        (
            "MUST NOT proceed with work if on `main` or `master` branch (create feature branch first)",
            ("main", "master"),
        ),
        ("**MUST NOT** commit while on main/master", ("main", "master")),
        ("MUST NOT push to main if the tests fail", ()),
        ("MUST NOT proceed if on main unless the user approved", ()),
        ("SHOULD NOT be on main", ()),
    ],
)
def test_a_branch_that_a_phase_plainly_forbids_is_checked(text: str, branches: tuple[str, ...]) -> None:
    start = f"## Session Start Protocol\n\n### Phase 4: Branch Verification (BLOCKING)\n\n1. The agent {text}\n"
    protocol, _ = protocol_of(parse(f"{start}\n## Session End Protocol\n\n### Phase 1: Commit (BLOCKING)\n"))
    checks = [check for check in protocol.gates[0].checks if check.kind is CheckKind.NOT_ON_BRANCH]
    assert tuple(name for check in checks for name in check.names) == branches


@pytest.mark.parametrize(
    ("mark", "kinds"), [("BLOCKING", []), ("REQUIRED", [CheckKind.NOT_ON_BRANCH, CheckKind.CLAIM])]
)
def test_a_branch_alone_does_not_verify_what_else_a_phase_demands(mark: str, kinds: list[CheckKind]) -> None:
    demands = "1. The agent MUST get oriented\n2. The agent MUST NOT proceed if on main\n"
    start = f"## Session Start Protocol\n\n### Phase 0: Get Oriented ({mark})\n\n{demands}\n"
    protocol, _ = protocol_of(parse(f"{start}## Session End Protocol\n\n### Phase 1: Commit (BLOCKING)\n"))
    assert [check.kind for check in protocol.gates[0].checks] == kinds, "without any, the project has to name one"
