"""What went wrong in a session and is still open: commands that failed, and errors.

An error is known by a result that failed, or by a line of a command's output that has the form of an error. Both are
forgotten when the same run, or one that covers it, passes.
"""

from __future__ import annotations

import re

from holdfast.agents.transcript_position import CallKind
from holdfast.briefing.ledger.error_forms import errors_in, has_passed, scanned, shows_failure
from holdfast.briefing.ledger.keeping import keep, kept_line
from holdfast.briefing.ledger.model import MAX_ERRORS, MAX_FAILED, MAX_SOURCES, Call, ErrorClass, Failure, Ledger
from holdfast.briefing.ledger.runs import mends

RUNS = (CallKind.RUN, CallKind.OUTPUT)
"""Tools whose result is what a program printed."""
_ERROR_LINE = re.compile(r"^.*(?:Error|Exception|error:|fatal:|FAILED|panicked).*$", re.MULTILINE)
_EXIT_CODE = re.compile(r"\AExit code (\d{1,3})\b")


def note_result(ledger: Ledger, call: Call, text: str, *, failed: bool) -> None:
    """Record what a tool's result says went wrong, and drop what it says is fixed."""
    if call.kind == CallKind.RUN:
        # The exit status of a pipe says nothing about the commands before the last.
        if (failed and not _found_nothing(call, text)) or (
            not failed and call.hides_exit and call.checks and shows_failure(text)
        ):
            _note_failure(ledger, call, text)
        elif not failed and (not call.hides_exit or not text.strip() or has_passed(text)):
            _mend(ledger, call.keys)
    elif not failed:
        _mend(ledger, [_source(call)])
    if (failed or call.kind in RUNS) and not call.shows:
        _note_errors(ledger, errors_in(text, failed=failed), _source(call))


def _found_nothing(call: Call, text: str) -> bool:
    """Return whether a search found nothing, which is not a failure."""
    return call.finds and text.strip() in ("", "Exit code 1")


def _source(call: Call) -> str:
    """Return the source of an error: the last of the programs that a command runs."""
    return call.keys[-1] if call.keys else f"{call.tool} {call.about}"


def _note_errors(ledger: Ledger, names: list[str], source: str) -> None:
    for name in names:
        known = next((one for one in ledger.errors if one.name == name), None)
        if known is not None:
            ledger.errors.remove(known)
        before = [] if known is None else [one for one in known.sources if one != source]
        keep(ledger.errors, ErrorClass(name, [*before, source][-MAX_SOURCES:]), MAX_ERRORS)


def _note_failure(ledger: Ledger, call: Call, text: str) -> None:
    classes = errors_in(text, failed=True)
    code = _EXIT_CODE.match(text)
    error = classes[-1] if classes else f"exit code {code[1]}" if code else "failed"
    lines = _ERROR_LINE.findall(scanned(text))
    spoken = [line for line in text.splitlines() if line.strip() and not _EXIT_CODE.match(line)]
    said = lines[-1] if lines else spoken[-1] if spoken else ""
    ledger.failed = [one for one in ledger.failed if one.command != call.about]
    keep(ledger.failed, Failure(call.about, error, kept_line(said), key=_source(call)), MAX_FAILED)


def _mend(ledger: Ledger, passed: list[str]) -> None:
    def is_mended(failure: str) -> bool:
        return any(mends(success, failure) for success in passed)

    for failure in ledger.failed:
        failure.mended = failure.mended or is_mended(failure.key)
    for error in ledger.errors:
        error.sources = [one for one in error.sources if not is_mended(one)]
    ledger.errors = [error for error in ledger.errors if error.sources]
