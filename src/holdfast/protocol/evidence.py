"""Judges evidence that an agent records: compared with the project's files and git where that is possible."""

from __future__ import annotations

import asyncio
import hashlib
import re
from pathlib import Path

from holdfast.files.inside import UnreadableInside, read_inside
from holdfast.git.state import Git
from holdfast.lazy_dataclass import dataclass
from holdfast.protocol.errors import EvidenceRejected
from holdfast.protocol.model import CheckKind, Gate, says_something
from holdfast.protocol.runs import EvidenceKind, Source
from holdfast.text.quoting import in_quotes, named

MAX_FILE_BYTES = 16 * 1024 * 1024
SHORTEST_HASH = 12

_HASH = re.compile(r"\b[0-9a-fA-F]{12,64}\b")
_COMMIT = re.compile(r"\b[0-9a-fA-F]{7,64}\b")


@dataclass(frozen=True, slots=True)
class Judged:
    """Evidence as it is stored, and its source."""

    kind: str
    subject: str
    detail: str
    source: Source
    message: str


async def judge(gate: Gate, kind: str, text: str, worktree: Path) -> Judged:
    """Judge what an agent records for a gate. Raises EvidenceRejected if it says nothing or is not true here."""
    if not says_something(text):
        raise EvidenceRejected(
            f"evidence: {in_quotes(text, 40)} is not evidence.",
            recovery="Say what was done and where it can be seen: a path, a hash, a commit, an output.",
        )
    plain_kind = kind.strip().lower().replace("-", "_")
    if plain_kind == EvidenceKind.CONTENT_HASH or plain_kind.endswith("_hash"):
        return await asyncio.to_thread(_hashed, gate, text, worktree)
    if plain_kind in (EvidenceKind.REPORT, "qa_report"):
        return await asyncio.to_thread(_report, text.strip(), worktree)
    if plain_kind in ("commit", "commit_sha"):
        return await _commit(text, worktree)
    message = "Stored as your claim."
    if gate.blocking and not any(check.kind is CheckKind.CLAIM for check in gate.checks):
        message += f" Holdfast verifies {gate.name} itself: validate_gate says what it checks."
    return Judged(kind[:64], text.strip(), "", Source.CLAIMED, message)


def _hashed(gate: Gate, text: str, worktree: Path) -> Judged:
    """Accept the hash of a file's content as evidence that the file was read."""
    match = _HASH.search(text)
    if match is None:
        raise EvidenceRejected(
            f"evidence: contains no hash ({SHORTEST_HASH} to 64 hex digits of the file's sha256).",
            recovery='Example: "README.md 3a7bd3e2360a…", as `sha256sum README.md` prints it.',
        )
    digest = match[0].lower()
    paths = [path for check in gate.checks if check.kind is CheckKind.FILE_READ for path in check.paths]
    meant = [path for path in paths if path in text or Path(path).name in text] or paths
    for path in meant:
        content = _content(worktree, path)
        whole = "" if content is None else hashlib.sha256(content).hexdigest()
        if whole.startswith(digest):
            message = f"{named(path, 200)} has this content."
            return Judged(EvidenceKind.CONTENT_HASH.value, path, whole, Source.SERVER, message)
    files = ", ".join(named(path, 200) for path in meant) or "a file of this gate"
    raise EvidenceRejected(
        f"evidence: {digest[:SHORTEST_HASH]}… is not the sha256 of {files}.",
        recovery="Read the file and give the hash of its current content.",
    )


def _report(path: str, worktree: Path) -> Judged:
    if not (_content(worktree, path) or b"").strip():
        raise EvidenceRejected(f"evidence: {named(path, 200)} is not a file with text in this project.")
    message = f"{named(path, 200)} is the report of this session."
    return Judged(EvidenceKind.REPORT.value, path, "", Source.CLAIMED, message)


async def _commit(text: str, worktree: Path) -> Judged:
    match = _COMMIT.search(text)
    if match is None or not await Git(worktree).exists(match[0]):
        raise EvidenceRejected(
            "evidence: there is no such commit in this repository.", recovery="Give the id that `git log` shows."
        )
    return Judged("commit", match[0].lower(), "", Source.SERVER, "The commit is there.")


def _content(worktree: Path, path: str) -> bytes | None:
    try:
        return read_inside(worktree, path, MAX_FILE_BYTES)
    except UnreadableInside:
        return None
