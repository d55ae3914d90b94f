"""Applies `[gates.NAME]` of a project's protocol.toml to a gate. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Any

from holdfast.protocol.model import Check, CheckKind, Gate

PATH_CHECKS = {
    "file_exists": CheckKind.FILE_EXISTS,
    "file_read": CheckKind.FILE_READ,
    "docs_changed": CheckKind.DOCS_CHANGED,
    "report": CheckKind.REPORT,
}
FLAGS = ("claim", "blocking")
KEYS = ("command", "timeout", *PATH_CHECKS, "tool_called", *FLAGS, "recovery")
EXAMPLES = {"command": '["make", "check"]', "tool_called": '["*serena*"]', "recovery": '["Run make check."]'}
PATH_EXAMPLE = '["docs/HANDOFF.md"]'
MAX_ENTRIES = 64
MAX_ENTRY = 4096
MAX_TIMEOUT_S = 3600

Complain = Callable[[str, str], None]
"""Reports a key and what is wrong with it."""


def configured(gate: Gate, table: Mapping[str, Any], complain: Complain) -> Gate:
    """Return the gate as the project configures it. Invalid settings are reported and left out."""
    valid: dict[str, Any] = {}
    for key, value in table.items():
        if problem := _problem(key, value):
            complain(key, problem)
        else:
            valid[key] = tuple(value) if isinstance(value, list) else value
    checks = _checks(gate, valid)
    if "timeout" in valid:
        if not any(check.kind is CheckKind.COMMAND for check in checks):
            complain("timeout", "timeout applies to a command, and this gate has none.")
        checks = _with_command(checks, timeout_s=valid["timeout"])
    as_before = gate.recovery if checks == gate.checks else tuple(map(how_to, checks))
    recovery, blocking = valid.get("recovery", as_before), valid.get("blocking", gate.blocking)
    return replace(gate, checks=checks, blocking=blocking, recovery=recovery)


def _checks(gate: Gate, valid: Mapping[str, Any]) -> tuple[Check, ...]:
    """Return the checks of a gate: those that the project gives, or its own, with the project's command."""
    given = [
        Check(kind, paths=tuple(PurePosixPath(path).as_posix() for path in valid[key]))
        for key, kind in PATH_CHECKS.items()
        if key in valid
    ]
    if "tool_called" in valid:
        given.append(Check(CheckKind.TOOL_CALLED, names=valid["tool_called"]))
    if valid.get("claim"):
        given.append(Check(CheckKind.CLAIM))
    if "command" not in valid:
        return tuple(given) or gate.checks
    if not given and any(check.kind is CheckKind.COMMAND for check in gate.checks):
        return _with_command(gate.checks, argv=valid["command"])
    return (*given, Check(CheckKind.COMMAND, argv=valid["command"]))


def _with_command(checks: tuple[Check, ...], **changes: Any) -> tuple[Check, ...]:
    return tuple(replace(check, **changes) if check.kind is CheckKind.COMMAND else check for check in checks)


def how_to(check: Check) -> str:
    """Return the step that makes a check pass."""
    paths, names = ", ".join(check.paths), ", ".join(check.names)
    return {
        CheckKind.FILE_EXISTS: f"Create one of these: {paths}.",
        CheckKind.FILE_READ: f"Read {paths}.",
        CheckKind.TOOL_CALLED: f"Call one of these tools: {names}.",
        CheckKind.COMMAND: f"Make `{shlex.join(check.argv)}` exit with 0.",
        CheckKind.SERENA: "Call Serena's activate_project and initial_instructions.",
        CheckKind.GIT_STATE: "Run git status, so that you know the branch and what is uncommitted.",
        CheckKind.NOT_ON_BRANCH: f"Switch to another branch than {names}.",
        CheckKind.SESSION_LOG: f"Write the log of this session under {paths}.",
        CheckKind.DOCS_CHANGED: f"Change {paths}.",
        CheckKind.REPORT: f"Write a report ({paths}) whose front matter has `session: <session id>`.",
        CheckKind.COMMITTED: "Commit every change.",
        CheckKind.CLAIM: "Say what was done, with record_evidence.",
    }[check.kind]


def inside(path: str) -> bool:
    """Return whether a path is relative and stays in the project."""
    return not (PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or path.startswith("~"))


def unknown(key: str, known: tuple[str, ...]) -> str:
    """Return what is wrong with a key that is none of these."""
    near = get_close_matches(key, known, n=1)
    return f"{key} is not a known setting" + (f"; did you mean {near[0]}?" if near else ".")


def _problem(key: str, value: Any) -> str | None:
    """Return what is wrong with a setting; None if it can be used."""
    if key not in KEYS:
        return unknown(key, KEYS)
    if key in FLAGS:
        return None if isinstance(value, bool) else f"{key} must be true or false."
    if key == "timeout":
        seconds = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_TIMEOUT_S
        return None if seconds else f"timeout must be a whole number of seconds from 1 to {MAX_TIMEOUT_S}."
    if not isinstance(value, list) or not value or not all(isinstance(entry, str) and entry for entry in value):
        shell = ": no shell is involved" if key == "command" else ""
        return f"{key} must be a list of texts such as {EXAMPLES.get(key, PATH_EXAMPLE)}{shell}."
    if len(value) > MAX_ENTRIES or any(len(entry) > MAX_ENTRY or "\0" in entry for entry in value):
        return f"{key} may have up to {MAX_ENTRIES} entries of up to {MAX_ENTRY} characters, without NUL."
    outside = next((path for path in value if key in PATH_CHECKS and not inside(path)), None)
    return f"{key}: {outside} must be relative to the project, without `..` or `~`." if outside else None
