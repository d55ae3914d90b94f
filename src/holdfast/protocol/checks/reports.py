"""Checks the review of a run: a report bound to it, or a docs-only change, which needs none."""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
import re

from holdfast.files import bounded_lines
from holdfast.files.in_time import in_time
from holdfast.files.inside import UnreadableInside, read_inside
from holdfast.git.state import Git
from holdfast.protocol.checks.docs_only import why_not_docs_only
from holdfast.protocol.checks.files import MAX_TEXT_BYTES, written
from holdfast.protocol.checks.findings import Finding, any_of, failed, first_few, named, passed, shown, skipped
from holdfast.protocol.checks.globs import find
from holdfast.protocol.model import Check
from holdfast.protocol.runs import EvidenceKind, Scene

DOCS_ONLY = "docs-only"

_FRONT_MATTER = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(?P<head>.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_SESSION = re.compile(r"^session(?:[_-]?id)?[ \t]*:(?P<id>[^\n]*)$", re.IGNORECASE | re.MULTILINE)


def read_report(content: str) -> tuple[frozenset[str], str]:
    """Return the runs that a report's front matter names, and its text without headings and comments."""
    match = _FRONT_MATTER.match(content)
    if match is None:
        return frozenset(), _written(content)
    sessions = frozenset(_value(line["id"]) for line in _SESSION.finditer(match["head"]))
    return sessions, _written(content[match.end() :])


async def report(check: Check, scene: Scene) -> Finding:
    """Check that a report of this run exists, or that the change is docs-only."""
    if scene.skip_qa and await why_not_docs_only(scene) is None:
        return skipped(DOCS_ONLY)
    refused: list[str] = []
    recorded = {posixpath.normpath(one.subject) for one in scene.evidence if one.kind == EvidenceKind.REPORT}
    changed: list[str] | None = None
    candidates = [await asyncio.to_thread(find, scene.worktree, pattern) for pattern in check.paths]
    for path in sorted({path for paths in candidates for path in paths}):
        try:
            content = await asyncio.to_thread(_read, scene, path)
        except UnreadableInside as failure:
            refused.append(str(failure).rstrip("."))
            continue
        sessions, text = await in_time(read_report, content)
        if sessions and sessions != {scene.run.id}:
            if path in recorded:
                refused.append(f"{shown(path)} belongs to {named(sorted(sessions))}")
        elif not written(text):
            refused.append(f"{shown(path)} is empty or says nothing")
        elif sessions:
            return passed(_seen(path, content))
        elif path in recorded:
            if changed is None:
                changed = await Git(scene.worktree).changed_since(scene.run.starting_commit)
            if path in changed:
                return passed(_seen(path, content))
            refused.append(f"{shown(path)} existed before the session began")
    why = await why_not_docs_only(scene)
    if why is None:
        return skipped(DOCS_ONLY)
    wanted = f"no report {any_of(check.paths)} has `session: {scene.run.id}` in its front matter"
    return failed("; ".join([wanted, *([first_few(refused)] if refused else []), f"a report is needed: {why}"]))


def _read(scene: Scene, path: str) -> str:
    content = (read_inside(scene.worktree, path, MAX_TEXT_BYTES) or b"").decode("utf-8", "replace")
    bounded_lines.lines(content, path)  # raises for a line that is too long
    return content


def _written(body: str) -> str:
    outside, *comments = body.split("<!--")
    shown = outside + "".join(comment.partition("-->")[2] for comment in comments)
    return "\n".join(line for line in shown.splitlines() if not line.lstrip().startswith("#")).strip()


def _value(text: str) -> str:
    plain = re.sub(r"(?:^|\s)#.*$", "", text).strip()
    return plain[1:-1] if len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "\"'" else plain


def _seen(path: str, content: str) -> str:
    return f"{shown(path)} {hashlib.sha256(content.encode()).hexdigest()[:12]}"
