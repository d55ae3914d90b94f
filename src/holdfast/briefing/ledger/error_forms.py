"""Finds errors in what a program printed: only a line that has the form of an error counts.

The names of errors also occur in source code, listings, search results, names of tests and messages of linters. A
program that reports an error does it in few ways: the name begins the line, perhaps after a word that announces it, and
what went wrong follows.
"""

from __future__ import annotations

import re

SCANNED = 200_000
"""Characters of a result that are searched; of a longer one its beginning and its end."""
LONGEST_LINE = 400
LONGEST_LEAD = 150
"""Characters of a log line before the error."""
NAME = r"(?:[A-Za-z_][\w$]*+(?:\.|::|\\))*+([A-Z][A-Za-z0-9_]{1,40}(?:Error|Exception))\b"
"""An error's name, perhaps with its package."""
_ANNOUNCED = re.compile(
    r"(?:Uncaught|Unhandled(?: rejection| [Ee]xception[.:]?| \w{1,40} error)?|(?:PHP )?(?:Fatal |Parse )?[Ee]rror:"
    r"|ERROR:?|\[(?:ERROR|error|stderr|cause)\]:?|FATAL:?|fatal:|npm (?:ERR!|error)|Caused by:|panic:|thrown:"
    r'|\(in promise\)|Exception in thread "[^"]{0,80}"|stderr:|INTERNALERROR>|●|✗|✘)\s++'
)
"""What announces an error before its name."""
_ANNOUNCED_BY_TEST = re.compile(r"(?:FAILED|ERROR) \S.{0,300}? - ")
_LOGGED = re.compile(r"\b(?:ERROR|CRITICAL|FATAL)\b[\]:]?\s(?:[\w./]{1,60}\s?[-:]\s)?")
_PYTEST = re.compile(r"E\s{1,8}")
_PLACED = re.compile(r"[^\s:]{1,200}+:\d{1,7}: ")
_TOLD = re.compile(NAME + r"(?: \[[\w-]+\])?: +\S")
_BARE = re.compile(NAME + r"(?: \[[\w-]+\])?$")
_VALUE = re.compile(NAME + r"(?= ?[({])")
"""An error as Rust prints a value."""
_IN_WORDS = re.compile(
    rf"`Err` value: (?:\w+\()?{NAME}|:in [`'].{{0,200}}\({NAME}\)$|\*\* \({NAME}\)|An error occurred \({NAME}\)"
    rf"|\bUncaught (?:\(in promise\) )?{NAME}: |throwing an instance of '{NAME}'"
    rf"|^\s*name: '{NAME}'$|failed\.: {NAME} -> "
)
_INSIDE = re.compile(r": " + NAME + r": +\S")

_FAILED = re.compile(
    r"\b[1-9]\d{0,6}(?: tests?)? (?:failed|failing|failures?)\b|\b[1-9]\d{0,6} problems? \((?!0 errors)"
    r"|\b[1-9]\d{0,6} errors?(?: in |\.| generated|,|$)|[:(]\d{1,7}(?:[:,]\d{1,7})?\)?(?::| -) (?:fatal )?error\b"
    r"|^(?:test result: FAILED|FAIL(?:ED)?\b|--- FAIL|[ \t]{0,8}error(?:\[E\d{1,5}\])?:|error TS\d|npm (?:ERR!|error) )"
    r"|\bBUILD FAIL(?:ED|URE)|: \*\*\* |Traceback \(most recent call last\)|^# fail [1-9]",
    re.MULTILINE,
)
"""How tests, compilers and linters say that something is wrong."""
_PASSED = re.compile(
    r"\b[1-9]\d{0,6}(?: tests?)? (?:passed|passing)\b|\bBUILD SUCCESS|\bFound 0 errors|^# pass [1-9]"
    r"|^(?:test result: ok|ok\s|PASS\b|OK\b|All checks passed|Success: no issues)",
    re.MULTILINE,
)


def errors_in(text: str, *, failed: bool) -> list[str]:
    """Return the names of the errors that a program reported, each once, in order."""
    if "Error" not in text and "Exception" not in text:
        return []
    text = scanned(text)
    if not failed and has_passed(text):
        return []  # its tests expect these errors
    raised = "Traceback (most recent call last)" in text
    shows_source = "\nE  " in text  # pytest shows the function that failed, with its documentation
    lines = text.splitlines()
    if "Exception Group Traceback" in text:
        lines = [line.lstrip(" |+") for line in lines]
    names: dict[str, None] = {}
    for number, line in enumerate(lines):
        if "Error" in line or "Exception" in line:
            following = lines[number + 1] if number + 1 < len(lines) else ""
            line = line[:LONGEST_LINE].rstrip()
            name = _error_in(line, following, raised=raised, failed=failed)
            if name is not None and not (shows_source and line.startswith("    ")):
                names[name] = None
    return list(names)


def _error_in(line: str, following: str, *, raised: bool, failed: bool) -> str | None:
    inside = line.lstrip()
    at, announced = len(line) - len(inside), False
    leads = [lead.match(line, at) for lead in (_PYTEST, _PLACED, _ANNOUNCED_BY_TEST)]
    for begins in (*leads, _LOGGED.search(line, 0, LONGEST_LEAD)):
        if begins and (told := _error_name_at(line, begins.end(), announced=True)) is not None:
            return told
    while begins := _ANNOUNCED.match(line, at):
        at, announced = begins.end(), True
    # A name alone on its line may be a heading; after a traceback, or above a stack, it is an error.
    alone = announced or (raised and at == 0) or following.lstrip().startswith("at ")
    name = _error_name_at(line, at, announced=alone)
    if name is not None:
        return name
    if announced and (value := _VALUE.match(line, at)):
        return value[1]
    for other in (_IN_WORDS, *((_INSIDE,) if failed else ())):
        if said := other.search(line):
            return str(next(filter(None, said.groups())))
    return None


def _error_name_at(line: str, at: int, *, announced: bool) -> str | None:
    match = _TOLD.match(line, at) or (_BARE.match(line, at) if announced else None)
    return match[1] if match else None


def shows_failure(text: str) -> bool:
    """Return whether the output of tests, a compiler or a linter says that something is wrong."""
    return _FAILED.search(scanned(text)) is not None


def has_passed(text: str) -> bool:
    """Return whether the output of tests or a linter says that all is well."""
    text = scanned(text)
    return _PASSED.search(text) is not None and _FAILED.search(text) is None


def scanned(text: str) -> str:
    """Return the part of a result that is searched."""
    return text if len(text) <= SCANNED else f"{text[: SCANNED // 2]}\n{text[-SCANNED // 2 :]}"
