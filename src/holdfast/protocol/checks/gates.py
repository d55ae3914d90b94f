"""Verifies a gate: everything it asks for is looked at, and nothing is believed."""

from __future__ import annotations

import asyncio
import fnmatch
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from holdfast.child_environment import command_environment
from holdfast.protocol.checks.command import CannotRun, run
from holdfast.protocol.checks.files import file_exists, file_read, session_log
from holdfast.protocol.checks.findings import Finding, either, failed, passed, shown, skipped
from holdfast.protocol.checks.reports import report
from holdfast.protocol.checks.repository import committed, docs_changed, git_state
from holdfast.protocol.git.state import Git, GitFault
from holdfast.protocol.inside import UnreadableInside
from holdfast.protocol.model import Check, CheckKind, Gate, Status, says_something
from holdfast.protocol.runs import EvidenceKind, Scene, SerenaAnswer, Source, Verdict
from holdfast.quoting import in_quotes

SerenaProbe = Callable[[Path, bool], Awaitable[SerenaAnswer]]
"""Asks the Serena of a worktree; whether the project is trusted decides if it may be started."""

MOST_OUTPUT = 64 * 1024
LAST_LINES = 5
MOST_SAID = 2_000
JUDGING = frozenset({CheckKind.COMMAND, CheckKind.REPORT})
"""Checks whose answer is about the change as it is now, and of no worth after another edit."""

_LOCAL = {CheckKind.FILE_EXISTS: file_exists, CheckKind.FILE_READ: file_read, CheckKind.SESSION_LOG: session_log}


class Checks:
    """Checks gates against the world."""

    def __init__(self, serena: SerenaProbe) -> None:
        self._serena = serena

    async def verify(self, gate: Gate, scene: Scene) -> Verdict:
        """Every check of a gate. One that fails fails the gate; it is skipped only where every check is."""
        if not gate.checks:
            return _nothing_verifies(gate)
        findings = [await self._find(check, gate, scene) for check in gate.checks]
        missing = [one.said for one in findings if one.status is Status.FAIL]
        seen = _line(one.said for one in findings if one.status is not Status.FAIL)
        if missing:
            return Verdict(Status.FAIL, seen, _line(missing))
        every_one_skipped = all(one.status is Status.SKIPPED for one in findings)
        fingerprint = await _fingerprint(gate, scene)
        return Verdict(Status.SKIPPED if every_one_skipped else Status.PASS, seen, fingerprint=fingerprint)

    async def _find(self, check: Check, gate: Gate, scene: Scene) -> Finding:
        try:
            return await self._look(check, gate, scene)
        except (GitFault, UnreadableInside) as failure:
            return failed(str(failure).rstrip("."))
        except OSError as failure:
            what = shown(str(failure.filename)) if failure.filename else "the worktree"
            return failed(f"{what} cannot be looked at: {failure.strerror}")

    async def _look(self, check: Check, gate: Gate, scene: Scene) -> Finding:
        match check.kind:
            case CheckKind.FILE_EXISTS | CheckKind.FILE_READ | CheckKind.SESSION_LOG:
                return await asyncio.to_thread(_LOCAL[check.kind], check, scene)
            case CheckKind.TOOL_CALLED:
                return _tool_called(check, scene)
            case CheckKind.SERENA:
                return await self._serena_answers(check, scene)
            case CheckKind.COMMAND:
                return await _command(check, scene)
            case CheckKind.GIT_STATE:
                return await git_state(scene)
            case CheckKind.DOCS_CHANGED:
                return await docs_changed(check, scene)
            case CheckKind.REPORT:
                return await report(check, scene)
            case CheckKind.COMMITTED:
                return await committed(scene)
            case CheckKind.CLAIM:
                return _claimed(gate, scene)

    async def _serena_answers(self, check: Check, scene: Scene) -> Finding:
        called = _tool_called(check, scene)
        if called.status is Status.PASS:
            return called
        answer = await self._serena(scene.worktree, scene.trusted)
        if answer.answers:
            return passed(answer.detail or "Serena answers")
        if answer.configured:
            return failed(f"Serena is configured and does not answer: {answer.detail}".rstrip(": "))
        return skipped(answer.detail or "Serena is not configured")


def _tool_called(check: Check, scene: Scene) -> Finding:
    for evidence in scene.evidence:
        if evidence.kind != EvidenceKind.TOOL_CALLED or evidence.source != Source.HOOK:
            continue
        if any(fnmatch.fnmatchcase(evidence.subject, name) for name in check.names):
            return passed(f"{shown(evidence.subject)} was called")
    return failed(f"{either(check.names)} was not called, as far as a hook shows")


def _claimed(gate: Gate, scene: Scene) -> Finding:
    for evidence in reversed(scene.evidence):
        said = evidence.subject if says_something(evidence.subject) else evidence.detail
        if evidence.gate == gate.name and says_something(said):
            return passed(f"{evidence.source}: {in_quotes(said, 200)}")
    return failed(f"nothing that says something was recorded for {gate.name} (record_evidence)")


async def _command(check: Check, scene: Scene) -> Finding:
    if not check.argv:
        return skipped("no check command is configured")
    command = in_quotes(" ".join(check.argv), 200)
    if not scene.trusted:
        return failed(f"{command} is not run before the project's owner trusts it: run `holdfast trust` in it")
    try:
        ending = await run(
            check.argv,
            cwd=scene.worktree,
            env=command_environment(),
            timeout_s=check.timeout_s,
            most=MOST_OUTPUT,
            one_stream=True,
        )
    except CannotRun as failure:
        return failed(str(failure).rstrip("."))
    if ending.exit_code == 0:
        return passed(f"{command} exited with 0")
    how = f"did not end within {check.timeout_s} s" if ending.timed_out else f"exited with {ending.exit_code}"
    last = ending.output.decode("utf-8", "replace").strip().splitlines()[-LAST_LINES:]
    return failed(f"{command} {how}" + (f": {in_quotes(' | '.join(last), MOST_SAID)}" if last else ""))


def _nothing_verifies(gate: Gate) -> Verdict:
    if gate.blocking:
        return Verdict(Status.FAIL, "", "nothing verifies this gate, and it may not be claimed")
    return Verdict(Status.SKIPPED, "nothing verifies this step")


async def _fingerprint(gate: Gate, scene: Scene) -> str | None:
    if not any(check.kind in JUDGING for check in gate.checks):
        return None
    try:
        return await Git(scene.worktree).fingerprint(scene.run.starting_commit)
    except GitFault:
        return None  # no repository: there is nothing that tells one change from another


def _line(sayings: Iterable[str]) -> str:
    whole = " ".join("; ".join(sayings).split())
    if len(whole) <= MOST_SAID:
        return whole
    cut = whole[:MOST_SAID]
    return f'{cut}…"' if cut.count('"') % 2 else f"{cut}…"  # what was cut within quotes stays within them
