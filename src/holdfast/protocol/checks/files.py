"""Checks of files: they are there, they were read, the run's log is written."""

from __future__ import annotations

import os
import posixpath
import stat
from pathlib import Path

from holdfast.protocol.checks.findings import Finding, either, failed, few, named, passed, shown, skipped
from holdfast.protocol.checks.globs import find, is_pattern
from holdfast.protocol.inside import OutsideWorktree, UnreadableInside, read_inside, real_path
from holdfast.protocol.model import Check
from holdfast.protocol.runs import EvidenceKind, Scene, Source

MOST_TEXT = 4 * 1024 * 1024
"""Of a log or a report; longer ones are no text somebody wrote."""

_PROOF = frozenset({(EvidenceKind.FILE_READ, Source.HOOK), (EvidenceKind.CONTENT_HASH, Source.SERVER)})
"""What shows that a file was read: a hook saw it, or the server compared the hash of its content."""


def file_exists(check: Check, scene: Scene) -> Finding:
    """At least one of the paths is there and not empty."""
    refused: list[str] = []
    for pattern in check.paths:
        try:
            found = next(
                (path for path in find(scene.worktree, pattern) if _holds_something(scene.worktree, path)), None
            )
        except UnreadableInside as failure:
            refused.append(str(failure))
            continue
        if found is not None:
            return passed(f"{shown(found)} is there")
    return failed("; ".join([f"{either(check.paths)} is not there or empty", *refused]))


def file_read(check: Check, scene: Scene) -> Finding:
    """Each of the paths that exists was read."""
    seen = {
        posixpath.normpath(evidence.subject): evidence.detail
        for evidence in scene.evidence
        if (evidence.kind, evidence.source) in _PROOF
    }
    places = {_place(scene.worktree, path): detail for path, detail in seen.items()}
    read: list[str] = []
    unread: list[str] = []
    outside: list[str] = []
    for path in (path for pattern in check.paths for path in _asked_for(scene.worktree, pattern, outside)):
        detail = seen.get(path, places.get(_place(scene.worktree, path)))
        if detail is None:
            unread.append(path)
        else:
            read.append(f"{shown(path)} {detail[:12]}".strip())
    if unread:
        return failed(f"{named(unread)} was not read, as far as a hook or a content hash shows")
    if read:
        return passed(f"read {few(read)}")
    why = "none of the files to read is there"
    return skipped(f"{why} ({named(outside)} leads out of the worktree and is not asked for)" if outside else why)


def session_log(check: Check, scene: Scene) -> Finding:
    """The run's log is there under its id and holds text."""
    empty: list[str] = []
    for folder in check.paths:
        for path in find(scene.worktree, f"{folder.rstrip('/')}/{scene.run.id}*.md"):
            if not is_log_of(scene.run.id, path):
                continue
            if (read_inside(scene.worktree, path, MOST_TEXT) or b"").strip():
                return passed(f"{shown(path)} is there")
            empty.append(path)
    if empty:
        return failed(f"{named(empty)} is empty")
    return failed(either([f"{folder.rstrip('/')}/{scene.run.id}.md" for folder in check.paths]) + " is not there")


def is_log_of(run_id: str, path: str) -> bool:
    """Whether a path is named for a run: its id, or its id and a slug."""
    name = posixpath.basename(path)
    return name == f"{run_id}.md" or (name.startswith(f"{run_id}-") and name.endswith(".md"))


def _asked_for(worktree: Path, pattern: str, outside: list[str]) -> list[str]:
    try:
        found = [posixpath.normpath(path) for path in find(worktree, pattern)]
    except OutsideWorktree:
        # A clone must not be able to send an agent to a file of the user's.
        if is_pattern(pattern) or os.path.lexists(worktree / pattern):
            outside.append(pattern)
        return []
    inside: list[str] = []
    for path in found:
        (outside if _place(worktree, path) is None else inside).append(path)
    return inside


def _place(worktree: Path, path: str) -> Path | None:
    """Where a path really is, so that a file read under one name is read under all of them; None for outside."""
    try:
        return real_path(worktree, path)
    except OutsideWorktree:
        return None


def _holds_something(worktree: Path, path: str) -> bool:
    place = real_path(worktree, path)
    try:
        found = place.stat()
        if stat.S_ISDIR(found.st_mode):
            return next(place.iterdir(), None) is not None
    except OSError as failure:
        raise UnreadableInside(f"{shown(path)} cannot be looked at: {failure.strerror}.") from failure
    return stat.S_ISREG(found.st_mode) and found.st_size > 0
