"""Builds a protocol from a document: one gate per phase, in the document's order. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
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
from holdfast.protocol.project.document import Document, DocumentPhase, Urgency
from holdfast.protocol.project.gate_settings import how_to, inside
from holdfast.protocol.protocols import AGENTS, DOCUMENT, EVERY_LOG, LOG_NAME, SESSION_LOG

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

_ON_BRANCH = re.compile(
    r"\b(?:(?:if|when|while)\s+)?(?:on|to)\s+(?:the\s+)?(?:branch\s+)?(main|master)\b(?:\s*(?:,|/|or)\s*(main|master)\b)?"
)
"""Being on a branch, also as "MUST NOT proceed if on main"."""
_CONDITION = re.compile(r"\b(?:unless|without|if|when|except|until|before)\b")

RESERVED = frozenset({ALL, BLOCKED, COMPLETE, INIT, VIOLATION, WORKING})


def protocol_of(document: Document) -> tuple[Protocol, Mapping[str, DocumentPhase]]:
    """Return the protocol of a document with phases for start and end, and each gate's phase by its name."""
    phases = _named(document.phases)
    logs = _log_patterns(phase for name, phase in phases.items() if name == SESSION_LOG.name)
    transitions: list[Transition] = []
    here = INIT
    for part, last in ((Part.START, WORKING), (Part.END, COMPLETE)):
        names = [name for name, phase in phases.items() if phase.part is part]
        for name in names:
            target = last if name == names[-1] else f"{name}_DONE"
            transitions.append(Transition(here, target, _gate(name, phases[name], logs)))
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


def _gate(name: str, phase: DocumentPhase, logs: tuple[str, ...]) -> Gate:
    known = AGENTS.gate(WELL_KNOWN.get(phase.title.lower(), ""))
    must = phase.urgency in (Urgency.BLOCKING, Urgency.REQUIRED)
    if phase.urgency is None:
        must = any(one.level is Level.MUST for one in phase.requirements) or (known is not None and known.blocking)
    checks = (*(() if known is None else _allowed(known.checks, phase, logs)), *_branches(phase))
    # A branch alone does not verify what else a phase of the project's own demands.
    if known is None and any(one.level is Level.MUST for one in phase.requirements):
        checks = () if phase.urgency is Urgency.BLOCKING else (*checks, Check(CheckKind.CLAIM))
    # A MUST blocks, except where the built-in gate only records what was not done.
    blocking = phase.urgency is Urgency.BLOCKING or (must and (known is None or known.blocking))
    if not checks and phase.urgency is not Urgency.BLOCKING:
        checks = (Check(CheckKind.CLAIM),)
    requirements = [one.text for one in phase.requirements if one.level in (None, Level.MUST)][:MAX_RECOVERY]
    steps = known.recovery if known is not None and checks == known.checks else tuple(map(how_to, checks))
    return Gate(name, Level.MUST if must else Level.SHOULD, blocking, checks, (*requirements, *steps))


def _log_patterns(phases: Iterable[DocumentPhase]) -> tuple[str, ...]:
    """Return how the document itself names a session's log, such as `logs/YYYY-MM-DD-session-NN.md`."""
    texts = [one.text for phase in phases for one in phase.requirements if one.level is Level.MUST]
    named = (word.strip("'\"(),;:").rstrip(".") for text in texts for word in text.split() if f"/{LOG_NAME}" in word)
    return tuple(dict.fromkeys(path for path in named if inside(path) and posixpath.splitext(path)[1]))


def _branches(phase: DocumentPhase) -> tuple[Check, ...]:
    """Return a check for the branches that a phase plainly says must not be worked on; a condition is not plain."""
    texts = [one.text.lower() for one in phase.requirements if one.level is Level.MUST_NOT]
    names = [
        name
        for text in texts
        if not _CONDITION.search(_ON_BRANCH.sub("", text))
        for found in _ON_BRANCH.finditer(text)
        for name in found.groups()
        if name
    ]
    return (Check(CheckKind.NOT_ON_BRANCH, names=tuple(dict.fromkeys(names))),) if names else ()


def _allowed(checks: Sequence[Check], phase: DocumentPhase, logs: tuple[str, ...]) -> tuple[Check, ...]:
    """Return the checks, without files that the phase says must not be changed, and with the document's own logs."""
    forbidden = [one.text for one in phase.requirements if one.level is Level.MUST_NOT]
    kept: list[Check] = []
    for check in checks:
        if check.kind is CheckKind.DOCS_CHANGED:
            allowed = [path for path in check.paths if not any(path in text for text in forbidden)]
            paths = [new for path in allowed for new in (logs if logs and path == EVERY_LOG else (path,))]
            kept += [replace(check, paths=tuple(paths))] if paths else []
        elif check.kind is CheckKind.SESSION_LOG and logs:
            kept.append(replace(check, paths=logs))
        else:
            kept.append(check)
    return tuple(kept)


def _checklist(document: Document, phases: Mapping[str, DocumentPhase]) -> tuple[ChecklistItem, ...]:
    items: list[ChecklistItem] = []
    for part in Part:
        listed = [item for item in document.checklist if item.part is part]
        items += [replace(item, gate=_verifier(item, phases)) for item in listed]
        if not listed:  # the requirements are the checklist
            items += [
                ChecklistItem(part, one.level or Level.MUST, one.text, None if one.level is Level.MUST_NOT else name)
                for name, phase in phases.items()
                if phase.part is part
                for one in phase.requirements
            ]
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
