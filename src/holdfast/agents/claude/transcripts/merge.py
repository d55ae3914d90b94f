"""Merges two copies of one transcript: no line lost, none twice, the order of both kept.

Both are logs of the same conversation, and either may be ahead: a killed agent may have told the copy in the store what
it had not yet written to its file, and a killed daemon leaves in the file what the copy never got.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from holdfast.agents.claude.transcripts import entries
from holdfast.agents.claude.transcripts.queries import Entry
from holdfast.lazy_dataclass import dataclass
from holdfast.text import bounded_json

LOCAL_ONLY = frozenset({"api-request", "api-request-shape", "api-request-blob"})
"""Entries that the agent writes only to its own file, not to the store; a conversation resumes without them."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a transcript and what identifies it."""

    key: str
    text: str
    entry: Entry | None
    """None for a line that is no JSON object; it stays in its file."""

    @property
    def is_stored(self) -> bool:
        """Whether it belongs in the store."""
        return self.entry is not None and self.entry.get("type") not in LOCAL_ONLY

    @property
    def uuid(self) -> str | None:
        """Its id, if it is a part of the conversation itself and not of a subagent's."""
        return None if self.entry is None or self.entry.get("isSidechain") else _text(self.entry, "uuid")

    @property
    def parent(self) -> str | None:
        """The id of the line that it continues."""
        return None if self.entry is None else _text(self.entry, "parentUuid")

    @property
    def timestamp(self) -> str:
        """ISO 8601, or empty."""
        return "" if self.entry is None else _text(self.entry, "timestamp") or ""


def _text(entry: Entry, name: str) -> str | None:
    value = entry.get(name)
    return value if isinstance(value, str) else None


def lines_of(stored: Iterable[Entry]) -> list[Line]:
    """Return entries from the store as lines."""
    return _keyed((text_of(entry), entry) for entry in stored)


def text_of(entry: Entry) -> str:
    """Return an entry from the store as Claude Code writes it into its file."""
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=False)


def lines_in(text: str) -> list[Line]:
    """Return the lines of a transcript file; an end that was cut off in the middle of a line is left out."""
    parsed: list[tuple[str, Entry | None]] = []
    pieces = text.split("\n")
    for number, piece in enumerate(pieces):
        try:
            value = bounded_json.loads(piece)
        except ValueError:
            value = None
        unfinished = number == len(pieces) - 1
        if piece.strip() and not (unfinished and value is None):
            parsed.append((piece, value if isinstance(value, dict) else None))
    return _keyed(parsed)


def _keyed(parsed: Iterable[tuple[str, Entry | None]]) -> list[Line]:
    """Key each line by its uuid, or by its content and how often that came before."""
    seen: Counter[str] = Counter()
    lines = []
    for text, entry in parsed:
        name = _text(entry, "uuid") if entry else None
        if name is not None:
            key = f"uuid {name}"
        else:
            content = json.dumps(entry, sort_keys=True) if entry is not None else text
            seen[content] += 1
            key = f"content {seen[content]} {content}"
        lines.append(Line(key, text, entry))
    return lines


def merge(copy: Sequence[Line], local: Sequence[Line]) -> list[Line]:
    """Merge two copies into one transcript. If they have diverged, the earlier continuation comes first."""
    at_local = {line.key: number for number, line in reversed(list(enumerate(local)))}
    in_copy = {line.key for line in copy}
    merged: dict[str, Line] = {}
    only_copy: list[Line] = []
    done = 0

    def settle(upto: int) -> None:
        only_local = [line for line in local[done:upto] if line.key not in in_copy]
        for block in _in_order(only_copy, only_local):
            for line in block:
                merged.setdefault(line.key, line)
        only_copy.clear()

    for line in copy:
        place = at_local.get(line.key)
        if place is None or place < done:
            only_copy.append(line)
            continue
        settle(place)
        merged.setdefault(line.key, local[place])  # the file's own spelling stays
        done = place + 1
    settle(len(local))
    return list(merged.values())


def _in_order(copy: list[Line], local: list[Line]) -> tuple[list[Line], list[Line]]:
    since = [next((line.timestamp for line in block if line.timestamp), "") for block in (copy, local)]
    return (local, copy) if since[1] and since[0] and since[1] < since[0] else (copy, local)


def one_branch(lines: Sequence[Line], stored: Collection[str]) -> list[Line]:
    """Put turns that another process took beside the stored ones behind them; `stored` are the keys of lines.

    Claude Code reads a conversation from the file's last line to that line's parent, and so on. Where two processes
    went on from the same line, it would leave out what one of them was told and answered.
    """
    known = [line for line in lines if line.key in stored and line.uuid is not None]
    continued = {line.parent for line in known} - {None}
    last = known[-1].uuid if known else None
    first: list[Line] = []
    behind: list[Line] = []
    for line in lines:
        moved, forks = line, False
        if line.uuid is not None and line.key not in stored:
            forks = line.parent != last and line.parent in continued
            if not forks:
                last = line.uuid
            elif _opens_a_turn(line):
                continued.add(last)
                moved, last = _behind(line, last), line.uuid
            else:
                continued.add(line.uuid)  # how the other process made an end of the turn that was under way
        (behind if forks or (behind and line.key not in stored) else first).append(moved)
    return first + behind


def _behind(line: Line, parent: str | None) -> Line:
    entry = {**(line.entry or {}), "parentUuid": parent}
    return Line(line.key, text_of(entry), entry)


def _opens_a_turn(line: Line) -> bool:
    """Return whether it is no part of a turn under way: within one, several lines may have the same parent."""
    entry = line.entry or {}
    answers = any(block.get("type") == "tool_result" for block in entries.blocks(entry))
    return entry.get("type") != "assistant" and not answers
