"""What an agent knew at one moment, taken from its ledger: small, masked, and with paths relative to the project."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

from holdfast.briefing.ledger.changed_files import changed_files
from holdfast.briefing.ledger.model import Ledger, Touched
from holdfast.briefing.ledger.wording import ERRORS, paths_in, relative, told_paths
from holdfast.lazy_dataclass import dataclass
from holdfast.text import clipped
from holdfast.text.masking import without_secrets
from holdfast.text.quoting import quoted

MOST_FILES = 12
MOST_STEPS = 12
MOST_FAILED = 6
MAX_WORDS = 400
MAX_LINE = 120
MAX_PATH = 200
BEGINNING = 30
"""Characters by which a text is recognised in a briefing."""
MARGIN = 200
"""Characters beyond those kept that are searched for secrets."""


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file that it read or changed."""

    path: str
    times: int
    at: int
    """When it did so last."""


@dataclass(frozen=True, slots=True)
class KnownStep:
    """An entry of its list."""

    text: str
    status: str


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A command that had failed."""

    command: str
    error: str
    mended: bool


@dataclass(frozen=True, slots=True)
class KnownCount:
    """How many things of a kind it knew, and how many of them were told."""

    kind: str
    """request, changed, read, error, step or answer."""
    had: int
    told: int


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What an agent knew: what it was asked, what it had looked at, changed and planned, and what had failed."""

    session_id: str
    request: str | None = None
    """The latest."""
    first_request: str | None = None
    turns: int = 0
    words: str | None = None
    """Its last ones."""
    doing: str | None = None
    """The call that was not answered."""
    changed: tuple[KnownFile, ...] = ()
    """The latest first, like those read."""
    changed_in_all: int = 0
    read: tuple[KnownFile, ...] = ()
    read_in_all: int = 0
    steps: tuple[KnownStep, ...] = ()
    failed: tuple[KnownFailure, ...] = ()
    commits: int = 0
    started_at: int = 0
    last_at: int = 0
    active: tuple[int, ...] = ()
    """The intervals in which it did something."""
    context: int | None = None
    """Tokens of its context, if its transcript says."""
    counts: tuple[KnownCount, ...] = ()
    """What was told of what it knew; empty if nothing was told yet, or by a version that did not count."""

    @property
    def steps_done(self) -> int:
        """How many entries of its list were done."""
        return sum(step.status == "completed" for step in self.steps)

    @property
    def errors(self) -> tuple[KnownFailure, ...]:
        """What had failed and was not fixed."""
        return tuple(one for one in self.failed if not one.mended)

    def to_json(self) -> str:
        """Serialize it, in ASCII."""
        return json.dumps(self, default=vars, separators=(",", ":"))

    @classmethod
    def from_stored(cls, stored: dict[str, Any]) -> Self:
        """Return what was stored, parsed from JSON; members that this version does not know are left out."""
        names = {one.name for one in fields(cls)}
        known = {name: value for name, value in stored.items() if name in names}
        parts = {name: tuple(kind(**part) for part in known.get(name, ())) for name, kind in _PARTS.items()}
        return cls(**known | parts | {"active": tuple(known.get("active", ()))})


_PARTS: dict[str, type[Any]] = {
    "changed": KnownFile,
    "read": KnownFile,
    "steps": KnownStep,
    "failed": KnownFailure,
    "counts": KnownCount,
}


def knowledge_of(ledger: Ledger, project: Path | None, *, since: int = 0, most: int = MOST_FILES) -> Knowledge:
    """Return what an agent knows according to its ledger; files and commits only since a time."""
    changed = [file for file in changed_files(ledger)[0] if file.at >= since]
    names = {file.path for file in changed}
    read = [file for file in ledger.read if file.path not in names and file.at >= since]
    call = next((one for one in reversed(ledger.calls) if not one.side), None)
    about = relative(call.about, project, ledger.cwd) if call is not None else ""
    return Knowledge(
        ledger.session_id,
        _words(ledger.latest_request, MAX_WORDS),
        _words(ledger.first_request, MAX_WORDS),
        ledger.turns,
        _words(ledger.last_words, MAX_WORDS),
        None if call is None else _words(f"{call.tool}: {about}" if about else call.tool, MAX_LINE),
        _files(changed[-most:], project, ledger.cwd),
        len(changed),
        _files(read[-most:], project, ledger.cwd),
        len(read),
        tuple(KnownStep(_words(one.text, MAX_LINE) or "", one.status) for one in ledger.todos[:MOST_STEPS]),
        tuple(
            KnownFailure(_words(one.command, MAX_LINE) or "", clipped(one.error, MAX_LINE), one.mended)
            for one in ledger.failed[-MOST_FAILED:]
        ),
        sum(one.at >= since for one in ledger.commits),
        ledger.started_at,
        ledger.last_at,
        tuple(ledger.active),
        ledger.context,
    )


def counts_of(ledger: Ledger, project: Path | None, told: str) -> tuple[KnownCount, ...]:
    """Return how many things a ledger knows of each kind, and how many of them stand in a briefing's text."""
    changed = changed_files(ledger)[0]
    names = {file.path for file in changed}
    read = [file.path for file in ledger.read if file.path not in names]
    asked = [one for one in (ledger.first_request, *ledger.requests) if one is not None]
    steps = [one.text for one in ledger.todos if one.status != "completed"]
    told_files = frozenset(paths_in(told))
    counts = (
        KnownCount("request", max(ledger.turns, len(asked)), _quoted(asked, told)),
        *(
            KnownCount(kind, len(paths), sum(one in told_files for one in told_paths(paths, project, ledger.cwd)))
            for kind, paths in (("changed", [one.path for one in changed]), ("read", read))
        ),
        _named_errors([one.name for one in ledger.errors if one.sources], told),
        KnownCount("step", len(steps), _quoted(steps, told)),
        KnownCount("answer", len(ledger.decisions), _quoted([one.answer for one in ledger.decisions], told)),
    )
    return tuple(one for one in counts if one.had)


def _quoted(texts: Sequence[str], told: str) -> int:
    """Return how many of these texts are quoted, at least with their beginning."""
    return sum(quoted(text, BEGINNING)[1:-1].removesuffix("…") in told for text in texts)


def _named_errors(names: Sequence[str], told: str) -> KnownCount:
    listed = next((line for line in told.splitlines() if ERRORS in line), "").partition(ERRORS)[2]
    return KnownCount("error", len(names), len(set(names) & set(listed.split(", "))))


def _files(files: Sequence[Touched], project: Path | None, cwd: str | None) -> tuple[KnownFile, ...]:
    return tuple(
        KnownFile(clipped(relative(file.path, project, cwd), MAX_PATH), file.times, file.at) for file in reversed(files)
    )


def _words(text: str | None, most: int) -> str | None:
    if text is None:
        return None
    return clipped(" ".join(without_secrets(text[: most + MARGIN]).split()), most)
