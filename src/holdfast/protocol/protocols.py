"""The two built-in protocols, one table each."""

from __future__ import annotations

from holdfast.agents.registry import AGENTS as KNOWN_AGENTS
from holdfast.agents.registry import DEFAULT
from holdfast.protocol.model import (
    COMPLETE,
    INIT,
    WORKING,
    Check,
    CheckKind,
    ChecklistItem,
    Gate,
    Level,
    Part,
    Protocol,
    Transition,
)

_AGENT = KNOWN_AGENTS[DEFAULT]

HANDOFF = ".agents/HANDOFF.md"
CONSTRAINTS = ".agents/governance/PROJECT-CONSTRAINTS.md"
SKILLS = f"{_AGENT.skills}/github/scripts"
SKILL_MEMORY = ".serena/memories/skill-usage-mandatory.md"
SESSIONS = ".agents/sessions"
EVERY_LOG = f"{SESSIONS}/*"
LOG_NAME = "YYYY-MM-DD-session-NN"
"""How a document names a session's log."""
REPORTS = ".agents/qa/**/*.md"
READ_FIRST = ("CLAUDE.md", "AGENTS.md", "README.md", "README.rst", "README.txt", "README", "CONTRIBUTING.md")

_RECORD_HASH = 'Where no hook sees it: record_evidence {evidence_type: "content_hash", evidence: "<path> <sha256>"}.'


def _serena(tool: str) -> str:
    return _AGENT.mcp_tool.format(server="serena", tool=tool)


def _must(name: str, checks: tuple[Check, ...], *recovery: str) -> Gate:
    return Gate(name, Level.MUST, blocking=True, checks=checks, recovery=recovery)


def _steps(*steps: tuple[Gate, str]) -> tuple[Transition, ...]:
    """Return the transitions of gates in order, each with the phase that it leads to."""
    sources = (INIT, *(phase for _, phase in steps))
    return tuple(Transition(source, phase, gate) for source, (gate, phase) in zip(sources, steps, strict=False))


GIT_STATE = Gate(
    "GIT_STATE",
    Level.SHOULD,
    blocking=False,
    checks=(Check(CheckKind.GIT_STATE),),
    recovery=("Run git status, so that you know the branch and what is uncommitted.",),
)
QUALITY_CHECKS = _must(
    "QUALITY_CHECKS",
    (Check(CheckKind.COMMAND),),
    "Make the project's check command exit with 0 (`holdfast protocol show` prints it).",
)
GIT_COMMIT = _must(
    "GIT_COMMIT",
    (Check(CheckKind.COMMITTED),),
    "Commit every change, then validate_gate GIT_COMMIT: HEAD must have moved and the tree must be clean."
    " A session that changed nothing needs no commit.",
)
SERENA_INIT = _must(
    "SERENA_INIT",
    (Check(CheckKind.SERENA, names=(_serena("*"), "*serena*")),),
    "Call Serena's activate_project and initial_instructions.",
    "Where Serena is configured but does not answer, start it or take it out of the configuration.",
)
SKILL_VALIDATION = _must(
    "SKILL_VALIDATION",
    (
        Check(CheckKind.FILE_EXISTS, paths=(SKILLS, _AGENT.skills), optional=True),
        Check(CheckKind.FILE_READ, paths=(SKILL_MEMORY,)),
    ),
    f"List {SKILLS}, or the project's own skills in {_AGENT.skills}.",
    "Read the memory skill-usage-mandatory.",
    _RECORD_HASH,
)
CONTEXT_RETRIEVAL = _must(
    "CONTEXT_RETRIEVAL",
    (Check(CheckKind.FILE_READ, paths=(HANDOFF, CONSTRAINTS)),),
    f"Read {HANDOFF} (and {CONSTRAINTS} where it exists).",
    _RECORD_HASH,
)
SESSION_LOG = _must(
    "SESSION_LOG",
    (Check(CheckKind.SESSION_LOG, paths=(SESSIONS,)),),
    f"Write the log {SESSIONS}/<session id>.md (a slug may follow the id).",
)
DOCS_UPDATE = Gate(
    "DOCS_UPDATE",
    Level.MUST,
    blocking=False,  # if it is not met, that is recorded as a violation
    checks=(Check(CheckKind.DOCS_CHANGED, paths=(HANDOFF, EVERY_LOG), optional=True),),
    recovery=(f"Update {HANDOFF} and complete the session log.",),
)
QA_VALIDATION = _must(
    "QA_VALIDATION",
    (Check(CheckKind.REPORT, paths=(REPORTS,)),),
    "Have the change reviewed and write a report under .agents/qa/ whose front matter has"
    " `session: <session id>`, or name it with record_evidence.",
)
README_READ = _must(
    "CONTEXT_RETRIEVAL",
    (Check(CheckKind.FILE_READ, paths=READ_FIRST),),
    "Read what the project says of itself (CLAUDE.md, AGENTS.md, README …).",
    _RECORD_HASH,
)

AGENTS = Protocol(
    "agents",
    _steps(
        (SERENA_INIT, "SERENA_READY"),
        (SKILL_VALIDATION, "SKILLS_VALIDATED"),
        (CONTEXT_RETRIEVAL, "CONTEXT_LOADED"),
        (SESSION_LOG, "READY"),
        (GIT_STATE, WORKING),
        (DOCS_UPDATE, "DOCUMENTING"),
        (QUALITY_CHECKS, "QUALITY_CHECKED"),
        (QA_VALIDATION, "QA_COMPLETE"),
        (GIT_COMMIT, COMPLETE),
    ),
    (
        ChecklistItem(Part.START, Level.MUST, f"Initialize Serena: {_serena('activate_project')}", "SERENA_INIT"),
        ChecklistItem(Part.START, Level.MUST, f"Initialize Serena: {_serena('initial_instructions')}", "SERENA_INIT"),
        ChecklistItem(Part.START, Level.MUST, "Read .agents/HANDOFF.md", "CONTEXT_RETRIEVAL"),
        ChecklistItem(Part.START, Level.MUST, "Create session log", "SESSION_LOG"),
        ChecklistItem(Part.START, Level.MUST, "List skill scripts", "SKILL_VALIDATION"),
        ChecklistItem(Part.START, Level.MUST, "Read skill-usage-mandatory", "SKILL_VALIDATION"),
        ChecklistItem(Part.START, Level.MUST, "Read PROJECT-CONSTRAINTS.md", "CONTEXT_RETRIEVAL"),
        ChecklistItem(Part.START, Level.SHOULD, "Search relevant memories"),
        ChecklistItem(Part.START, Level.SHOULD, "Verify git status", "GIT_STATE"),
        ChecklistItem(Part.START, Level.SHOULD, "Note starting commit", "GIT_STATE"),
        ChecklistItem(Part.END, Level.MUST, "Update .agents/HANDOFF.md", "DOCS_UPDATE"),
        ChecklistItem(Part.END, Level.MUST, "Complete session log", "DOCS_UPDATE"),
        ChecklistItem(Part.END, Level.MUST, "Run markdown lint", "QUALITY_CHECKS"),
        ChecklistItem(Part.END, Level.MUST, "Route to qa agent", "QA_VALIDATION"),
        ChecklistItem(Part.END, Level.MUST, "Commit all changes", "GIT_COMMIT"),
        ChecklistItem(Part.END, Level.SHOULD, "Update PROJECT-PLAN.md"),
        ChecklistItem(Part.END, Level.SHOULD, "Invoke retrospective"),
        ChecklistItem(Part.END, Level.SHOULD, "Verify clean git status", "GIT_COMMIT"),
    ),
)
"""The seed's protocol, with its file locations."""

SIMPLE = Protocol(
    "simple",
    _steps(
        (README_READ, "CONTEXT_LOADED"),
        (GIT_STATE, WORKING),
        (QUALITY_CHECKS, "QUALITY_CHECKED"),
        (GIT_COMMIT, COMPLETE),
    ),
    (
        ChecklistItem(Part.START, Level.MUST, "Read what the project says of itself", "CONTEXT_RETRIEVAL"),
        ChecklistItem(Part.START, Level.SHOULD, "Verify git status", "GIT_STATE"),
        ChecklistItem(Part.END, Level.MUST, "Make the checks pass", "QUALITY_CHECKS"),
        ChecklistItem(Part.END, Level.MUST, "Commit all changes", "GIT_COMMIT"),
    ),
)
"""For any git repository: read the context, work, pass the checks, commit."""

DOCUMENT = "document"
"""The protocol that a project's own document describes."""
PROTOCOLS = {protocol.name: protocol for protocol in (AGENTS, SIMPLE)}
