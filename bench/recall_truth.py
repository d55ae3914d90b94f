"""What is true of a session and still matters, and how much of what is told is.

A briefing is read as its reader reads it: every file, request, error, failed command and open todo in its lines is
one thing that is told. It is right when the corpus says so: a file that is as it was before, an error that a later run
mended and a todo that was done are true no more, or do not matter any more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.capability.briefing import Item

KINDS = {
    "request": "requests",
    "modified": "files modified",
    "read": "files read",
    "errors": "errors met",
    "failed": "commands that failed",
    "todos": "open todos",
}
_SAME = {"first": "request", "requests": "request"}
_QUOTED = re.compile(r'"([^"]*)"')
_MORE = re.compile(r"and \d+ more")
_TAMED = str.maketrans('"`<>“”', "''‹›''")
_PROBED = 60
"""Characters of a text by which it is known; lines cut it."""


@dataclass(slots=True)
class Truth:
    """What an agent should know of a session, by kind."""

    things: dict[str, set[str]] = field(default_factory=lambda: {kind: set() for kind in KINDS})

    def add(self, kind: str, thing: str) -> None:
        """It is true and matters."""
        self.things[kind].add(_plain(thing) if kind in ("request", "failed", "todos") else thing)

    def drop(self, kind: str, thing: str) -> None:
        """It does no more."""
        self.things[kind].discard(thing)

    def __len__(self) -> int:
        return sum(map(len, self.things.values()))


@dataclass(slots=True)
class Judgement:
    """Of what is told, what is right; of what matters, what is told."""

    told: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    matters: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """For a person who looks into it."""

    def of(self, kind: str | None) -> tuple[float, float, int]:
        """The wrong part of what is told, the lost part of what matters, and how much is told."""

        def total(counter: Counter[str]) -> int:
            return counter.total() if kind is None else counter[kind]

        told, matters = total(self.told), total(self.matters)
        wrong = 1 - total(self.right) / told if told else 0.0
        return wrong, (1 - total(self.found) / matters if matters else 0.0), told

    def judge(self, name: str, items: Sequence[Item], truth: Truth, project: Path) -> None:
        """Look at one briefing."""
        found: dict[str, set[str]] = {kind: set() for kind in KINDS}
        for kind, thing in told_in(items, project):
            self.told[kind] += 1
            match = next((one for one in truth.things[kind] if _is_same(kind, thing, one)), None)
            if match is None:
                self.wrong.append(f"{name}: {kind}: {thing}")
            else:
                self.right[kind] += 1
                found[kind].add(match)
        for kind, things in truth.things.items():
            self.matters[kind] += len(things)
            self.found[kind] += len(found[kind])


def told_in(items: Sequence[Item], project: Path) -> Iterator[tuple[str, str]]:
    """Everything that the lines of a briefing tell, as kind and thing; files by their whole paths."""
    for item in items:
        kind = _SAME.get(item.kind, item.kind)
        text = item.text.partition(": ")[2]
        if kind in ("modified", "read"):
            yield from ((kind, str(project / path)) for path in _files(text))
        elif kind == "errors":
            yield from ((kind, name) for name in text.split(", ") if not _MORE.fullmatch(name))
        elif kind == "failed":
            commands = (_QUOTED.search(part) for part in text.split("; "))
            yield from ((kind, _plain(found[1])) for found in commands if found)
        elif kind in KINDS:
            yield from ((kind, _plain(thing)) for thing in _QUOTED.findall(text))


def _files(text: str) -> Iterator[str]:
    whole, *folders = text.split("; ")
    yield from (path for path in whole.split(", ") if path and not _MORE.fullmatch(path))
    for part in folders:
        if part.startswith("in "):
            folder, _, names = part.removeprefix("in ").partition(": ")
            yield from (f"{folder}{name}" for name in names.split(", ") if not _MORE.fullmatch(name))


def _is_same(kind: str, told: str, true: str) -> bool:
    if kind in ("request", "failed", "todos"):
        return told.rstrip("…")[:_PROBED] == true[:_PROBED].rstrip("…")[: len(told.rstrip("…"))] and bool(told)
    return told == true


def _plain(text: str) -> str:
    return " ".join(text.translate(_TAMED).split())
