"""What an agent says it did, compared with the world where that is possible."""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from holdfast.protocol.errors import EvidenceRejected
from holdfast.protocol.git.state import Git
from holdfast.protocol.inside import UnreadableInside, read_inside
from holdfast.protocol.model import CheckKind, Gate, says_something
from holdfast.protocol.runs import EvidenceKind, Source
from holdfast.quoting import in_quotes
from holdfast.quoting import named as plain_or_quoted

LARGEST = 16 * 1024 * 1024
SHORTEST_HASH = 12

_HASH = re.compile(r"\b[0-9a-fA-F]{12,64}\b")
_COMMIT = re.compile(r"\b[0-9a-fA-F]{7,64}\b")


@dataclass(frozen=True, slots=True)
class Claim:
    """What was said, of which gate."""

    gate: Gate
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What is kept of a claim, and who vouches for it."""

    kind: str
    subject: str
    detail: str
    source: Source
    message: str


async def judge(claim: Claim, worktree: Path) -> Judged:
    """What a claim is worth. One that says nothing, or that the world contradicts, is rejected."""
    if not says_something(claim.text):
        raise EvidenceRejected(
            f"evidence: {in_quotes(claim.text, 40)} says nothing.",
            recovery="Say what was done and where it can be seen: a path, a hash, a commit, an output.",
        )
    kind = claim.kind.strip().lower().replace("-", "_")
    if kind == EvidenceKind.CONTENT_HASH or kind.endswith("_hash"):
        return await asyncio.to_thread(_hashed, claim, worktree)
    if kind in (EvidenceKind.REPORT, "qa_report"):
        return await asyncio.to_thread(_report, claim, worktree)
    if kind in ("commit", "commit_sha"):
        return await _commit(claim, worktree)
    told = "Kept as what you say."
    if claim.gate.blocking and not any(check.kind is CheckKind.CLAIM for check in claim.gate.checks):
        told += f" {claim.gate.name} is verified by the server: validate_gate tells what it looks for."
    return Judged(claim.kind[:64], claim.text.strip(), "", Source.CLAIMED, told)


def _hashed(claim: Claim, worktree: Path) -> Judged:
    """A file's content hash shows that its content was there to be read."""
    given = _HASH.search(claim.text)
    if given is None:
        raise EvidenceRejected(
            f"evidence: there is no hash in it ({SHORTEST_HASH} to 64 hex digits of the file's sha256).",
            recovery='Example: "README.md 3a7bd3e2360a…", as `sha256sum README.md` prints.',
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
        recovery="Read the file and give the hash of what is in it now.",
    )


def _report(claim: Claim, worktree: Path) -> Judged:
    path = claim.text.strip()
    if not (_content(worktree, path) or b"").strip():
        raise EvidenceRejected(f"evidence: {plain_or_quoted(path, 200)} is no file with text in this project.")
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
        return read_inside(worktree, path, LARGEST)
    except UnreadableInside:
        return None
