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
KEYS = ("command", "timeout", *PATH_CHECKS, "tool_called", "claim", "blocking", "recovery")
MAX_ENTRIES = 64
MAX_ENTRY = 4096
MAX_TIMEOUT_S = 3600
COMMAND_EXAMPLE = '["make", "check"]'

Complain = Callable[[str, str], None]
"""Reports a key and what is wrong with it."""


def configured(gate: Gate, table: Mapping[str, Any], complain: Complain) -> Gate:
    """Return the gate as the project configures it. Invalid settings are reported and left out."""
    for key in table:
        if key not in KEYS:
            near = get_close_matches(key, KEYS, n=1)
            complain(key, f"{key} is not a known setting" + (f"; did you mean {near[0]}?" if near else "."))
    command = _command(table, complain)
    timeout = _timeout(table, complain)
    given = _other_checks(table, complain)
    checks = gate.checks
    if given or (command is not None and not any(check.kind is CheckKind.COMMAND for check in checks)):
        checks = (*given, *(() if command is None else (Check(CheckKind.COMMAND, argv=command),)))
    elif command is not None:
        checks = tuple(replace(check, argv=command) if check.kind is CheckKind.COMMAND else check for check in checks)
    if timeout is not None:
        if not any(check.kind is CheckKind.COMMAND for check in checks):
            complain("timeout", "timeout applies to a command, and this gate has none.")
        checks = tuple(
            replace(check, timeout_s=timeout) if check.kind is CheckKind.COMMAND else check for check in checks
        )
    recovery = _entries(table, "recovery", '["Run make check."]', complain)
    if recovery is None:
        recovery = gate.recovery if checks == gate.checks else tuple(map(how_to, checks))
    return replace(gate, checks=checks, blocking=_flag(table, "blocking", gate.blocking, complain), recovery=recovery)


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


def _other_checks(table: Mapping[str, Any], complain: Complain) -> tuple[Check, ...]:
    checks: list[Check] = []
    for key, kind in PATH_CHECKS.items():
        paths = _entries(table, key, '["docs/HANDOFF.md"]', complain)
        if paths is not None and all(_stays_inside(path, key, complain) for path in paths):
            checks.append(Check(kind, paths=tuple(PurePosixPath(path).as_posix() for path in paths)))
    names = _entries(table, "tool_called", '["*serena*"]', complain)
    if names is not None:
        checks.append(Check(CheckKind.TOOL_CALLED, names=names))
    if _flag(table, "claim", False, complain):
        checks.append(Check(CheckKind.CLAIM))
    return tuple(checks)


def inside(path: str) -> bool:
    """Return whether a path is relative and stays in the project."""
    return not (PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or path.startswith("~"))


def _stays_inside(path: str, key: str, complain: Complain) -> bool:
    if not inside(path):
        complain(key, f"{key}: {path} must be relative to the project, without `..` or `~`.")
        return False
    return True


def _command(table: Mapping[str, Any], complain: Complain) -> tuple[str, ...] | None:
    if isinstance(table.get("command"), str):
        complain("command", f"command must be a list such as {COMMAND_EXAMPLE}: no shell is involved.")
        return None
    return _entries(table, "command", COMMAND_EXAMPLE, complain)


def _timeout(table: Mapping[str, Any], complain: Complain) -> int | None:
    value = table.get("timeout")
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_TIMEOUT_S:
        complain("timeout", f"timeout must be a whole number of seconds from 1 to {MAX_TIMEOUT_S}.")
        return None
    return value


def _flag(table: Mapping[str, Any], key: str, default: bool, complain: Complain) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        complain(key, f"{key} must be true or false.")
        return default
    return value


def _entries(table: Mapping[str, Any], key: str, example: str, complain: Complain) -> tuple[str, ...] | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not value or not all(isinstance(entry, str) and entry for entry in value):
        complain(key, f"{key} must be a list of texts such as {example}.")
        return None
    if len(value) > MAX_ENTRIES or any(len(entry) > MAX_ENTRY or "\0" in entry for entry in value):
        complain(key, f"{key} may have up to {MAX_ENTRIES} entries of up to {MAX_ENTRY} characters, without NUL.")
        return None
    return tuple(value)
