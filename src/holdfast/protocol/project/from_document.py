"""Builds a protocol from a document: one gate per phase, in the document's order. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.protocol.model import (
    ALL,
    BLOCKED,
    COMPLETE,
    INIT,
    VIOLATION,
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
from holdfast.protocol.project import DOCUMENT
from holdfast.protocol.project.document import Document, DocumentPhase, Urgency
from holdfast.protocol.project.gate_settings import how_to
from holdfast.protocol.protocols import AGENTS

MAX_NAME = 48
MAX_RECOVERY = 6

WELL_KNOWN = {
    "serena initialization": "SERENA_INIT",
    "serena init": "SERENA_INIT",
    "skill validation": "SKILL_VALIDATION",
    "context retrieval": "CONTEXT_RETRIEVAL",
    "session log creation": "SESSION_LOG",
    "session log": "SESSION_LOG",
    "git state verification": "GIT_STATE",
    "git state": "GIT_STATE",
    "branch verification": "GIT_STATE",
    "documentation update": "DOCS_UPDATE",
    "docs update": "DOCS_UPDATE",
    "quality checks": "QUALITY_CHECKS",
    "qa validation": "QA_VALIDATION",
    "git operations": "GIT_COMMIT",
    "git commit": "GIT_COMMIT",
    "commit": "GIT_COMMIT",
}
"""Titles whose phases get the gate and checks that the built-in protocol `agents` has for them."""

STEPS = (
    (Part.START, re.compile(r"initiali[sz]e serena"), "SERENA_INIT"),
    (Part.START, re.compile(r"list skill scripts|read skill-usage-mandatory"), "SKILL_VALIDATION"),
    (Part.START, re.compile(r"read \.agents/handoff\.md|read project-constraints\.md"), "CONTEXT_RETRIEVAL"),
    (Part.START, re.compile(r"create (this )?session log"), "SESSION_LOG"),
    (Part.START, re.compile(r"git status|starting commit|current branch"), "GIT_STATE"),
    (Part.END, re.compile(r"update \.agents/handoff\.md|complete session log"), "DOCS_UPDATE"),
    (Part.END, re.compile(r"\blint\b"), "QUALITY_CHECKS"),
    (Part.END, re.compile(r"\bqa\b"), "QA_VALIDATION"),
    (Part.END, re.compile(r"^commit\b|clean git status"), "GIT_COMMIT"),
)
"""Wordings of checklist steps, and the gate that verifies each. Deliberately narrow: a box ticked without
verification is worse than one left open."""

RESERVED = frozenset({ALL, BLOCKED, COMPLETE, INIT, VIOLATION, WORKING})


def protocol_of(document: Document) -> tuple[Protocol, Mapping[str, DocumentPhase]]:
    """Return the protocol of a document with phases for start and end, and each gate's phase by its name."""
    phases = _named(document.phases)
    transitions: list[Transition] = []
    here = INIT
    for part, last in ((Part.START, WORKING), (Part.END, COMPLETE)):
        names = [name for name, phase in phases.items() if phase.part is part]
        for name in names:
            target = last if name == names[-1] else f"{name}_DONE"
            transitions.append(Transition(here, target, _gate(name, phases[name])))
            here = target
    return Protocol(DOCUMENT, tuple(transitions), _checklist(document, phases)), phases


def _named(phases: Sequence[DocumentPhase]) -> dict[str, DocumentPhase]:
    named: dict[str, DocumentPhase] = {}
    for phase in phases:
        words = re.sub(r"\W+", "_", phase.title.upper()).strip("_")[:MAX_NAME].strip("_")
        plain = WELL_KNOWN.get(phase.title.lower()) or words or "PHASE"
        name, number = plain, 1
        while name in named or name in RESERVED:
            number += 1
            name = f"{plain}_{number}"
        named[name] = phase
    return named


def _gate(name: str, phase: DocumentPhase) -> Gate:
    known = AGENTS.gate(WELL_KNOWN.get(phase.title.lower(), ""))
    checks = () if known is None else _allowed(known.checks, phase)
    blocking = phase.urgency is Urgency.BLOCKING
    if not checks and not blocking:
        checks = (Check(CheckKind.CLAIM),)
    requirements = [one.text for one in phase.requirements if one.level in (None, Level.MUST)][:MAX_RECOVERY]
    steps = known.recovery if known is not None and checks == known.checks else tuple(map(how_to, checks))
    level = Level.MUST if phase.urgency in (Urgency.BLOCKING, Urgency.REQUIRED) else Level.SHOULD
    return Gate(name, level, blocking, checks, (*requirements, *steps), phase.title)


def _allowed(checks: Sequence[Check], phase: DocumentPhase) -> tuple[Check, ...]:
    """Return the checks, without files that the phase says must not be changed."""
    forbidden = [one.text for one in phase.requirements if one.level is Level.MUST_NOT]
    kept: list[Check] = []
    for check in checks:
        if check.kind is CheckKind.DOCS_CHANGED:
            paths = tuple(path for path in check.paths if not any(path in text for text in forbidden))
            kept += [replace(check, paths=paths)] if paths else []
        else:
            kept.append(check)
    return tuple(kept)


def _checklist(document: Document, phases: Mapping[str, DocumentPhase]) -> tuple[ChecklistItem, ...]:
    items: list[ChecklistItem] = []
    for part in Part:
        listed = [item for item in document.checklist if item.part is part]
        items += [replace(item, gate=_verifier(item, phases)) for item in listed]
        if not listed:
            items += _from_requirements(part, phases)
    return tuple(items)


def _verifier(item: ChecklistItem, phases: Mapping[str, DocumentPhase]) -> str | None:
    step = item.step.lower()
    if item.level is Level.MUST_NOT:
        return None
    for name, phase in phases.items():
        if phase.part is item.part and phase.title.lower() in step:
            return name
    return next(
        (name for part, words, name in STEPS if part is item.part and name in phases and words.search(step)), None
    )


def _from_requirements(part: Part, phases: Mapping[str, DocumentPhase]) -> list[ChecklistItem]:
    """Build a checklist from the requirements of a document that has none."""
    return [
        ChecklistItem(part, one.level or Level.MUST, one.text, None if one.level is Level.MUST_NOT else name)
        for name, phase in phases.items()
        if phase.part is part
        for one in phase.requirements
    ]
