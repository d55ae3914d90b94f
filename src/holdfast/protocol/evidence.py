"""Judges evidence that an agent records: compared with the project's files and git where that is possible."""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from holdfast.files.inside import UnreadableInside, read_inside
from holdfast.git.state import Git
from holdfast.protocol.errors import EvidenceRejected
from holdfast.protocol.model import CheckKind, Gate, says_something
from holdfast.protocol.runs import EvidenceKind, Source
from holdfast.text.quoting import in_quotes
from holdfast.text.quoting import named as plain_or_quoted

MAX_FILE_BYTES = 16 * 1024 * 1024
SHORTEST_HASH = 12

_HASH = re.compile(r"\b[0-9a-fA-F]{12,64}\b")
_COMMIT = re.compile(r"\b[0-9a-fA-F]{7,64}\b")


@dataclass(frozen=True, slots=True)
class Claim:
    """Evidence that an agent records for a gate."""

    gate: Gate
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim as it is stored, and its source."""

    kind: str
    subject: str
    detail: str
    source: Source
    message: str


async def judge(claim: Claim, worktree: Path) -> Judged:
    """Judge a claim. Raises EvidenceRejected if it is meaningless or does not match the project."""
    if not says_something(claim.text):
        raise EvidenceRejected(
            f"evidence: {in_quotes(claim.text, 40)} is not evidence.",
            recovery="Say what was done and where it can be seen: a path, a hash, a commit, an output.",
        )
    kind = claim.kind.strip().lower().replace("-", "_")
    if kind == EvidenceKind.CONTENT_HASH or kind.endswith("_hash"):
        return await asyncio.to_thread(_hashed, claim, worktree)
    if kind in (EvidenceKind.REPORT, "qa_report"):
        return await asyncio.to_thread(_report, claim, worktree)
    if kind in ("commit", "commit_sha"):
        return await _commit(claim, worktree)
    message = "Stored as your claim."
    if claim.gate.blocking and not any(check.kind is CheckKind.CLAIM for check in claim.gate.checks):
        message += f" Holdfast verifies {claim.gate.name} itself: validate_gate says what it checks."
    return Judged(claim.kind[:64], claim.text.strip(), "", Source.CLAIMED, message)


def _hashed(claim: Claim, worktree: Path) -> Judged:
    """Accept the hash of a file's content as evidence that the file was read."""
    given = _HASH.search(claim.text)
    if given is None:
        raise EvidenceRejected(
            f"evidence: contains no hash ({SHORTEST_HASH} to 64 hex digits of the file's sha256).",
            recovery='Example: "README.md 3a7bd3e2360a…", as `sha256sum README.md` prints it.',
        )
    digest = given[0].lower()
    asked = [path for check in claim.gate.checks if check.kind is CheckKind.FILE_READ for path in check.paths]
    named = [path for path in asked if path in claim.text or Path(path).name in claim.text]
    for path in named or asked:
        content = _content(worktree, path)
        if content is not None and hashlib.sha256(content).hexdigest().startswith(digest):
            whole = hashlib.sha256(content).hexdigest()
            return Judged(
                EvidenceKind.CONTENT_HASH.value,
                path,
                whole,
                Source.SERVER,
                f"{plain_or_quoted(path, 200)} has this content.",
            )
    meant = ", ".join(plain_or_quoted(path, 200) for path in named or asked) or "a file of this gate"
    raise EvidenceRejected(
        f"evidence: {digest[:SHORTEST_HASH]}… is not the sha256 of {meant}.",
        recovery="Read the file and give the hash of its current content.",
    )


def _report(claim: Claim, worktree: Path) -> Judged:
    path = claim.text.strip()
    if not (_content(worktree, path) or b"").strip():
        raise EvidenceRejected(f"evidence: {plain_or_quoted(path, 200)} is not a file with text in this project.")
    return Judged(
        EvidenceKind.REPORT.value,
        path,
        "",
        Source.CLAIMED,
        f"{plain_or_quoted(path, 200)} is the report of this session.",
    )


async def _commit(claim: Claim, worktree: Path) -> Judged:
    given = _COMMIT.search(claim.text)
    if given is None or not await Git(worktree).exists(given[0]):
        raise EvidenceRejected(
            "evidence: there is no such commit in this repository.", recovery="Give the id that `git log` shows."
        )
    return Judged("commit", given[0].lower(), "", Source.SERVER, "The commit is there.")


def _content(worktree: Path, path: str) -> bytes | None:
    try:
        return read_inside(worktree, path, MAX_FILE_BYTES)
    except UnreadableInside:
        return None
