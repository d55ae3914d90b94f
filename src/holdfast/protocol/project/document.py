"""Parses a SESSION-PROTOCOL.md as people write it: phases, checklist, and what cannot be understood. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from holdfast.lazy_dataclass import dataclass
from holdfast.protocol.model import ChecklistItem, Level, Part
from holdfast.protocol.project.table_rows import cells, plain, without_code
from holdfast.text import clipped

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_BYTES = 1024 * 1024
MAX_LINE = 10_000
MAX_HEADING = 200
MAX_TEXT = 500
MAX_PHASES = 64
MAX_ITEMS = 500
MAX_FAULTS = 100
MAX_DEPTH = 3

LEVELS = {
    "MUST NOT": Level.MUST_NOT,
    "SHALL NOT": Level.MUST_NOT,
    "MUST": Level.MUST,
    "SHALL": Level.MUST,
    "REQUIRED": Level.MUST,
    "SHOULD NOT": Level.SHOULD,
    "NOT RECOMMENDED": Level.SHOULD,
    "SHOULD": Level.SHOULD,
    "RECOMMENDED": Level.SHOULD,
    "MAY": Level.MAY,
    "OPTIONAL": Level.MAY,
}
"""The key words of RFC 2119, longest first."""
DISCOURAGED = frozenset({"SHOULD NOT", "NOT RECOMMENDED"})

LEVEL_COLUMNS = frozenset({"req", "level"})
STEP_COLUMNS = frozenset({"step", "requirement"})
MARKDOWN_FENCES = frozenset({"", "markdown", "md"})

_PART = re.compile(r"\bsession\s+(start|end)\b", re.IGNORECASE)
_PHASE = re.compile(r"phase\b\s*+(?:[\w.]++\s*+)?[:–—-]\s*+(?P<title>.*)", re.IGNORECASE)
_LIKE_A_PHASE = re.compile(r"phase\s+\d", re.IGNORECASE)
_SUFFIX = re.compile(r"\((?P<suffix>[^()]*+(?:\([^()]*+\)[^()]*+)*+)\)$")
_LABEL = re.compile(
    r"(\*\*|__)(?P<label>[^*_:]{1,60})(:\1|\1\s*:)|(?P<bare>requirements|verification)\s*:$", re.IGNORECASE
)
_KEY_WORD = re.compile(r"\b(" + "|".join(LEVELS) + r")\b")
_CONTAINER = re.compile(r"^[\s>]*")


class Urgency(StrEnum):
    """How a phase is marked in its heading."""

    BLOCKING = "BLOCKING"
    REQUIRED = "REQUIRED"
    RECOMMENDED = "RECOMMENDED"


class Fault(NamedTuple):
    """A line, counted from 1, that cannot be understood, and why; without a line, what is missing altogether."""

    line: int | None
    message: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """One entry of a phase's requirements."""

    level: Level | None
    """None if it has no key word of its own."""
    text: str


@dataclass(frozen=True, slots=True)
class DocumentPhase:
    """A phase. Its number is ignored: numbers are neither ordered nor unique."""

    part: Part
    title: str
    urgency: Urgency | None
    line: int
    requirements: list[Requirement] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document. It must not be used if it has faults."""

    phases: tuple[DocumentPhase, ...]
    checklist: tuple[ChecklistItem, ...]
    faults: tuple[Fault, ...]


def parse(text: str) -> Document:
    """Parse a document; never raises."""
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "replace")) > MAX_BYTES:
        return Document((), (), (Fault(None, f"The document is longer than {MAX_BYTES} bytes."),))
    reader = _Reader(re.split(r"\r\n|\r|\n", text))
    reader.read(_blocks_only().parse(text), first=0, part=None, depth=0)
    return reader.document()


@cache
def _blocks_only() -> MarkdownIt:
    from markdown_it import MarkdownIt  # imported late to keep the daemon's start fast

    # We parse inline text by our own rules, and markdown-it's inline parsing is the slow part.
    markdown = MarkdownIt("commonmark").enable("table").disable("reference")
    markdown.core.ruler.enableOnly(["normalize", "block"])
    return markdown


class _Reader:
    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._phases: list[DocumentPhase] = []
        self._items: dict[tuple[Part, Level, str], ChecklistItem] = {}
        self._faults: list[Fault] = []

    def document(self) -> Document:
        for part in Part:
            if not any(phase.part is part for phase in self._phases):
                heading = f"## Session {part.value.capitalize()} Protocol"
                message = f"There is no phase under `{heading}`. Write one like `### Phase 1: Title (BLOCKING)`."
                self._faults.append(Fault(None, message))
        return Document(tuple(self._phases), tuple(self._items.values()), tuple(self._faults[:MAX_FAULTS]))

    def read(self, tokens: Sequence[Token], *, first: int, part: Part | None, depth: int) -> None:
        """Read the blocks of a text whose first line is line `first` (from 0) of the document."""
        trail: list[tuple[int, Part | None]] = [(0, part)]
        phase: DocumentPhase | None = None
        label: str | None = None
        """The label above the list entries that follow."""
        lists = 0
        for index, token in enumerate(tokens):
            line = first + (token.map[0] if token.map else 0)
            if token.type == "heading_open":
                level = int(token.tag[1:])
                trail = [step for step in trail if step[0] < level]
                heading = tokens[index + 1].content[:MAX_LINE]
                named = None if _LIKE_A_PHASE.match(plain(heading)) else _PART.search(plain(heading))
                part = Part(named[1].lower()) if named else trail[-1][1]
                trail.append((level, part))
                label = "another heading"
                if phase is not None and part is not phase.part:
                    phase = None
                if depth == 0 and part is not None and (begun := self._phase(heading, part, line)):
                    phase, label = begun, None
            elif token.type == "paragraph_open" and token.level == 0:
                if match := _LABEL.match(tokens[index + 1].content[:MAX_LINE]):
                    label = (match["label"] or match["bare"]).strip().lower()
            elif token.type in ("bullet_list_open", "ordered_list_open"):
                lists += 1
            elif token.type in ("bullet_list_close", "ordered_list_close"):
                lists -= 1
            elif token.type == "list_item_open" and lists == 1 and phase is not None:
                if tokens[index + 1].type == "paragraph_open" and label in (None, "requirements"):
                    entry = tokens[index + 2].content[:MAX_LINE]
                    word = _KEY_WORD.search(without_code(entry))
                    asked = LEVELS[word[1]] if word else None
                    phase.requirements.append(Requirement(asked, clipped(plain(entry), MAX_TEXT)))
            elif token.type == "table_open" and part is not None:
                self._table(tokens, index, first, part)
            elif token.type == "fence" and depth < MAX_DEPTH and token.info.strip().lower() in MARKDOWN_FENCES:
                self.read(_blocks_only().parse(token.content), first=line + 1, part=part, depth=depth + 1)

    def _phase(self, heading: str, part: Part, line: int) -> DocumentPhase | None:
        text = plain(heading)
        match = _PHASE.fullmatch(text)
        if match is None:
            if _LIKE_A_PHASE.match(text):
                self._fault(line, "A phase needs a title: `### Phase 1: Title (BLOCKING)`.")
            return None
        if len(text) > MAX_HEADING:
            self._fault(line, f"The heading is longer than {MAX_HEADING} characters.")
            return None
        title, urgency = self._suffix(match["title"].strip(), line)
        if not title:
            self._fault(line, "A phase needs a title: `### Phase 1: Title (BLOCKING)`.")
            return None
        earlier = next((one for one in self._phases if (one.part, one.title.lower()) == (part, title.lower())), None)
        if earlier is not None:
            self._fault(line, f"{title} is already defined in line {earlier.line}.")
            return None
        if len(self._phases) == MAX_PHASES:
            self._fault(line, f"There are more than {MAX_PHASES} phases.")
            return None
        phase = DocumentPhase(part, title, urgency, line + 1)
        self._phases.append(phase)
        return phase

    def _suffix(self, title: str, line: int) -> tuple[str, Urgency | None]:
        """Split a title into its text and the urgency after it, which may have a condition: `(BLOCKING when …)`."""
        match = _SUFFIX.search(title)
        if match is None:
            return title, None
        words = match["suffix"].strip()
        urgency = next((one for one in Urgency if re.search(rf"\b{one}\b", words) or words.upper() == one), None)
        if urgency is not None:
            return title[: match.start()].strip(), urgency
        if get_close_matches(words.upper(), Urgency, n=1, cutoff=0.8):
            self._fault(line, f"({words}) must be one of {', '.join(Urgency)}.")
        return title, None

    def _table(self, tokens: Sequence[Token], start: int, first: int, part: Part) -> None:
        header: list[str] = []
        rows: list[int] = []
        for index in range(start, len(tokens)):
            token = tokens[index]
            if token.type == "table_close":
                break
            if token.type == "th_open":
                header.append(plain(tokens[index + 1].content[:MAX_LINE]).lower())
            elif token.type == "tr_open" and token.map:
                rows.append(first + token.map[0])
        columns = self._columns(header, rows[0])
        if columns is None:
            return
        for line in rows[1:]:
            self._row(self._lines[line], line, len(header), columns, part)

    def _columns(self, header: Sequence[str], line: int) -> tuple[int, int] | None:
        level, step = (
            next((number for number, name in enumerate(header) if name in names), None)
            for names in (LEVEL_COLUMNS, STEP_COLUMNS)
        )
        if level is not None and step is not None:
            return level, step
        if level is not None:
            self._fault(line, "The table has levels but no column Step or Requirement.")
        elif step is not None and "status" in header:
            self._fault(line, "The table has steps but no column Req or Level.")
        return None

    def _row(self, source: str, line: int, width: int, columns: tuple[int, int], part: Part) -> None:
        if len(source) > MAX_LINE:
            self._fault(line, f"The row is longer than {MAX_LINE} characters.")
            return
        row = cells(_CONTAINER.sub("", source), width)
        if not any(row):
            return
        if len(row) > width:
            self._fault(line, f"The row has {len(row)} cells, its header {width}. Write \\| for a pipe within a cell.")
            return
        row += [""] * (width - len(row))
        word = " ".join(plain(row[columns[0]]).strip("*_ ").upper().split())
        step = clipped(plain(row[columns[1]]), MAX_TEXT)
        if word not in LEVELS:
            found = f'"{row[columns[0]][:40]}"' if row[columns[0]] else "An empty cell"
            self._fault(line, f"{found} must be a requirement level: MUST, MUST NOT, SHOULD or MAY.")
        elif not step:
            self._fault(line, "The row names no step.")
        elif len(self._items) == MAX_ITEMS:
            self._fault(line, f"The checklist has more than {MAX_ITEMS} rows.")
        else:
            step = f"Do not: {step}" if word in DISCOURAGED else step
            item = ChecklistItem(part, LEVELS[word], step)
            # A template often repeats the checklist.
            self._items.setdefault((part, item.level, step.lower()), item)

    def _fault(self, line: int, message: str) -> None:
        self._faults.append(Fault(line + 1, message))
