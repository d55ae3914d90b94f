"""Verifies gates: every check is made against the files, git and evidence; an agent's word alone is not enough."""

from __future__ import annotations

import asyncio
import fnmatch
import os
import secrets
import signal
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path

from holdfast.files.inside import UnreadableInside
from holdfast.git.state import Git, GitFault
from holdfast.process.alive import initial_variable
from holdfast.process.child_environment import command_environment
from holdfast.process.command import CannotRun, run
from holdfast.protocol.checks.files import file_exists, file_read, session_log
from holdfast.protocol.checks.findings import Finding, any_of, failed, passed, shown, skipped
from holdfast.protocol.checks.reports import report
from holdfast.protocol.checks.repository import at_start, committed, docs_changed, git_state, not_on_branch
from holdfast.protocol.model import Check, CheckKind, Gate, Status, says_something
from holdfast.protocol.runs import EvidenceKind, Scene, SerenaAnswer, Source, Verdict
from holdfast.text.quoting import in_quotes

SerenaProbe = Callable[[Path, bool], Awaitable[SerenaAnswer]]
"""Asks the Serena of a worktree; it may be started only if the project is trusted."""

MAX_OUTPUT_BYTES = 64 * 1024
LAST_LINES = 5
MARK = "GATE_COMMAND"
"""Variable by which the processes of a command are found."""
MAX_QUOTED_CHARS = 2_000
CHANGE_CHECKS = frozenset({CheckKind.COMMAND, CheckKind.REPORT})
"""Checks whose result holds only for the current change; any further edit outdates it."""


class Checks:
    """Verifies gates against the project's files, git and the evidence of a run."""

    def __init__(self, serena: SerenaProbe) -> None:
        self._serena = serena

    async def verify(self, gate: Gate, scene: Scene) -> Verdict:
        """Run every check of a gate. One failure fails the gate; it is skipped only if every check is."""
        if not gate.checks:
            return _without_checks(gate)
        findings = [await self._find(check, gate, scene) for check in gate.checks]
        missing = [one.text for one in findings if one.status is Status.FAIL]
        seen = _line(one.text for one in findings if one.status is not Status.FAIL)
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
            return failed(f"{what} cannot be read: {failure.strerror}")

    async def _look(self, check: Check, gate: Gate, scene: Scene) -> Finding:
        match check.kind:
            case CheckKind.SESSION_LOG:
                return await asyncio.to_thread(session_log, check, scene)
            case CheckKind.FILE_EXISTS:
                found = await asyncio.to_thread(file_exists, check, scene)
                if found.status is Status.FAIL and check.optional and not await at_start(scene, *check.paths):
                    return skipped(f"{any_of(check.paths)} was not there when the session began")
                return found
            case CheckKind.FILE_READ:
                return await asyncio.to_thread(file_read, check, scene, await at_start(scene, *check.paths))
            case CheckKind.TOOL_CALLED:
                return _tool_called(check, scene)
            case CheckKind.SERENA:
                return await self._serena_answers(check, scene)
            case CheckKind.COMMAND:
                return await _command(check, scene)
            case CheckKind.GIT_STATE:
                return await git_state(scene)
            case CheckKind.NOT_ON_BRANCH:
                return await not_on_branch(check, scene)
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
            return failed(f"Serena is configured but does not answer: {answer.detail}".rstrip(": "))
        return skipped(answer.detail or "Serena is not configured")


def _tool_called(check: Check, scene: Scene) -> Finding:
    for evidence in scene.evidence:
        if evidence.kind != EvidenceKind.TOOL_CALLED or evidence.source != Source.HOOK:
            continue
        if any(fnmatch.fnmatchcase(evidence.subject, name) for name in check.names):
            return passed(f"{shown(evidence.subject)} was called")
    return failed(f"{any_of(check.names)} was not called: no hook saw it")


def _claimed(gate: Gate, scene: Scene) -> Finding:
    for evidence in reversed(scene.evidence):
        statement = evidence.subject if says_something(evidence.subject) else evidence.detail
        if evidence.gate == gate.name and says_something(statement):
            return passed(f"{evidence.source}: {in_quotes(statement, 200)}")
    return failed(f"no meaningful evidence was recorded for {gate.name} (record_evidence)")


async def _command(check: Check, scene: Scene) -> Finding:
    if not check.argv:
        return skipped("no check command is configured")
    command = in_quotes(" ".join(check.argv), 200)
    if not scene.trusted:
        return failed(f"{command} does not run until the project's owner trusts it: run `holdfast trust` there")
    mark = secrets.token_hex(8)
    try:
        ending = await run(
            check.argv,
            cwd=scene.worktree,
            env=command_environment() | {MARK: mark},
            timeout_s=check.timeout_s,
            most=MAX_OUTPUT_BYTES,
            one_stream=True,
        )
    except CannotRun as failure:
        return failed(str(failure).rstrip("."))
    finally:
        await asyncio.to_thread(_end_marked, mark)
    if ending.exit_code == 0:
        return passed(f"{command} exited with 0")
    how = f"did not finish within {check.timeout_s} s" if ending.timed_out else f"exited with {ending.exit_code}"
    last = ending.output.decode("utf-8", "replace").strip().splitlines()[-LAST_LINES:]
    return failed(f"{command} {how}" + (f": {in_quotes(' | '.join(last), MAX_QUOTED_CHARS)}" if last else ""))


def _end_marked(mark: str) -> None:
    """End what a command left behind in a session of its own; where /proc is missing, nothing is found."""
    for entry in Path("/proc").glob("[0-9]*"):
        if initial_variable(int(entry.name), MARK) == mark:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(entry.name), signal.SIGKILL)


def _without_checks(gate: Gate) -> Verdict:
    if gate.blocking:
        return Verdict(Status.FAIL, "", "no check verifies this gate, and it accepts no claim")
    return Verdict(Status.SKIPPED, "no check verifies this step")


async def _fingerprint(gate: Gate, scene: Scene) -> str | None:
    if not any(check.kind in CHANGE_CHECKS for check in gate.checks):
        return None
    try:
        return await Git(scene.worktree).fingerprint(scene.run.starting_commit)
    except GitFault:
        return None  # without a repository, changes cannot be told apart


def _line(texts: Iterable[str]) -> str:
    whole = " ".join("; ".join(texts).split())
    if len(whole) <= MAX_QUOTED_CHARS:
        return whole
    cut = whole[:MAX_QUOTED_CHARS]
    return f'{cut}…"' if cut.count('"') % 2 else f"{cut}…"  # close a quote that was cut
