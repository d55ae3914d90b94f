"""Export: a session as markdown, JSON or a Mermaid graph, with branches and revisions, in pages that stand alone.

What was thought is data: in a document fences are longer than any run of backticks inside, titles and labels are
escaped; what an agent reads as it is, and not within JSON, has every line of it marked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any

from holdfast.lazy_dataclass import dataclass
from holdfast.reasoning.model import Thought
from holdfast.reasoning.results import ThoughtsPage
from holdfast.reasoning.views import branch_view, piece_view, present, session_view, size
from holdfast.text import counted, one_line
from holdfast.text.masking import ANYBODY, Words
from holdfast.text.quoting import in_quotes, marked
from holdfast.times import iso

LABEL = 60

_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~&=:$^@\"'])")


class Format(StrEnum):
    MARKDOWN = "markdown"
    JSON = "json"
    MERMAID = "mermaid"


@dataclass(frozen=True, slots=True)
class Style:
    """Renders user text as markdown: within a line, and as a block."""

    inline: Callable[[str], str]
    block: Callable[[str], str]


def render(form: Format, page: ThoughtsPage, style: Style | None = None) -> str:
    match form:
        case Format.MARKDOWN:
            return markdown(page, style or DOCUMENT)
        case Format.JSON:
            return as_json(page)
        case Format.MERMAID:
            return mermaid([piece.thought for piece in page.pieces if not piece.start], page.line_ends)


def export_view(page: ThoughtsPage, form: Format) -> dict[str, Any]:
    return present(
        success=True,
        sessionId=page.session.id,
        format=form.value,
        text=Words(render(form, page), ANYBODY),
        nextCursor=page.next_cursor,
    )


def export_size(form: Format, style: Style | None = None) -> Callable[[ThoughtsPage], int]:
    """Return a function that measures a page of an export in characters on the wire."""
    return lambda page: size(render(form, page, style))


def markdown(page: ThoughtsPage, style: Style) -> str:
    """Return the session as a document: what it is, its branches, then every thought as a block of its own."""
    session, inline = page.session, style.inline
    lines = [
        f"# {inline(session.title)}",
        "",
        f"- Session: `{session.id}` ({session.status.value})",
        f"- Thoughts: {session.thought_count}, branches: {session.branch_count}",
        f"- Created: {iso(session.created_at)}, last updated: {iso(session.updated_at)}",
    ]
    if session.root_uri:
        lines.append(f"- Root: {inline(session.root_uri)}")
    if session.tags:
        lines.append(f"- Tags: {', '.join(inline(tag) for tag in session.tags)}")
    if session.damage:
        lines.append(f"- Damage: {inline(session.damage)}")
    lines += [
        f"- Branch `{branch.id}`: from thought {branch.from_number}, {counted(branch.thought_count, 'thought')}"
        for branch in page.branches
    ]
    for piece in page.pieces:
        part = "" if piece.whole else f", characters {piece.start + 1}-{piece.end} of {piece.characters}"
        lines += ["", markdown_thought(piece.thought, style, part)]
    return "\n".join(lines) + "\n"


def markdown_thought(thought: Thought, style: Style, part: str = "") -> str:
    """Render one thought under its heading; `part` says which part of the thought it is."""
    heading = f"## Thought {thought.number}"
    if thought.branch_id:
        heading += f", branch `{thought.branch_id}` from {thought.branch_from}"
    elif thought.branch_from:
        heading += f", from {thought.branch_from}"
    if thought.revises or thought.is_revision:
        heading += f", revises {thought.revises or 'earlier thinking'}"
    sent_as = f", sent as {thought.requested_number}" if thought.renumbered else ""
    return "\n".join([heading, "", f"{iso(thought.created_at)}{sent_as}{part}", "", style.block(thought.content)])


def as_json(page: ThoughtsPage) -> str:
    document: dict[str, Any] = {
        "session": session_view(page.session),
        "branches": [branch_view(branch) for branch in page.branches],
        "thoughts": [piece_view(piece) for piece in page.pieces],
    }
    return json.dumps(document, ensure_ascii=False, indent=1)


def mermaid(thoughts: Sequence[Thought], line_ends: Iterable[tuple[str | None, int]]) -> str:
    """Return the shape of the session: solid lines for what follows, dotted ones for what is revised.

    `line_ends` are the last thoughts before this page, of the main line (None) and of each branch.
    """
    ends = dict(line_ends)
    lines = ["graph TD"]
    for thought in thoughts:
        lines.append(f'  t{thought.number}["{thought.number}: {label(thought.content)}"]')
        before = ends.get(thought.branch_id)
        if before is not None:
            lines.append(f"  t{before} --> t{thought.number}")
        elif thought.branch_from is not None:
            lines.append(f'  t{thought.branch_from} -->|"branch {label(thought.branch_id or "")}"| t{thought.number}')
        if thought.revises is not None:
            lines.append(f'  t{thought.number} -.->|"revises"| t{thought.revises}')
        ends[thought.branch_id] = thought.number
    return "\n".join(lines) + "\n"


def inline(text: str) -> str:
    """Return a text for use inside a line of markdown, fully escaped."""
    return _MARKUP.sub(r"\\\1", one_line(text, 1000))


def fenced(text: str) -> str:
    """Return a text in a fence that nothing in it can close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def label(text: str) -> str:
    """Return a text for a quoted Mermaid label, with all but letters, digits and plain punctuation as codes."""
    return "".join(char if char.isalnum() or char in " .,-_" else f"#{ord(char)};" for char in one_line(text, LABEL))


DOCUMENT = Style(inline, fenced)
"""For people and programs."""
FOR_AGENTS = Style(lambda text: in_quotes(text, 1000), marked)
"""For an agent that reads the text as it is: no line of a thought has the form of one of Holdfast's own."""
