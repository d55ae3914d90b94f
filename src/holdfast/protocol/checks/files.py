"""Checks of files: they exist, they were read, the run's log is written."""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from holdfast.files.inside import OutsideWorktree, UnreadableInside, read_inside, real_path
from holdfast.protocol.checks.findings import Finding, any_of, failed, first_few, named, passed, shown, skipped
from holdfast.protocol.checks.globs import find, is_pattern
from holdfast.protocol.model import Check, says_something
from holdfast.protocol.protocols import LOG_NAME, SESSIONS
from holdfast.protocol.runs import EvidenceKind, Scene, Source

MAX_TEXT_BYTES = 4 * 1024 * 1024
"""Size limit of a log or report; nobody writes a longer one by hand."""
SHORTEST_TEXT = 3
"""Letters and digits of a log or report below which it says nothing."""

MAX_LOGS = 100_000

_LOG = re.compile(r"(\d{4}-\d{2}-\d{2})-session-(\d{1,6})(?:\D.*)?\.md")
_PROOF = frozenset({(EvidenceKind.FILE_READ, Source.HOOK), (EvidenceKind.CONTENT_HASH, Source.SERVER)})
"""Evidence that a file was read: a hook saw it, or the server compared its content hash."""


def file_exists(check: Check, scene: Scene) -> Finding:
    """Check that at least one of the paths exists and is not empty."""
    refused: list[str] = []
    for pattern in check.paths:
        try:
            found = next((path for path in find(scene.worktree, pattern) if _not_empty(scene.worktree, path)), None)
        except UnreadableInside as failure:
            refused.append(str(failure))
            continue
        if found is not None:
            return passed(f"{shown(found)} exists")
    return failed("; ".join([f"{any_of(check.paths)} does not exist or is empty", *refused]))


def file_read(check: Check, scene: Scene, begun_with: Mapping[str, bool]) -> Finding:
    """Check that each of the paths that exist, or that the run began with (each: is it a link?), was read."""
    seen = {
        posixpath.normpath(evidence.subject): evidence.detail
        for evidence in scene.evidence
        if (evidence.kind, evidence.source) in _PROOF
    }
    resolved = {_resolved(scene.worktree, path): detail for path, detail in seen.items()}
    read: list[str] = []
    unread: list[str] = []
    outside: list[str] = []
    for path in (path for pattern in check.paths for path in _required(scene.worktree, pattern, outside)):
        detail = seen.get(path, resolved.get(_resolved(scene.worktree, path)))
        if detail is None:
            unread.append(path)
        else:
            read.append(f"{shown(path)} {detail[:12]}".strip())
    removed = [path for path, link in begun_with.items() if _is_gone(scene.worktree, path, link)]
    read += [f"{shown(path)} {seen[path][:12]}" for path in removed if path in seen]
    if gone := [path for path in removed if path not in seen]:
        return failed(f"{named(gone)} was there when the session began: restore it and read it")
    if unread:
        return failed(f"{named(unread)} was not read: no hook saw it and no content hash was recorded")
    if read:
        return passed(f"read {first_few(read)}")
    why = "none of the files to read exists"
    return skipped(f"{why} ({named(outside)} is outside the worktree and is ignored)" if outside else why)


def session_log(check: Check, scene: Scene) -> Finding:
    """Check that the run's log exists under its id and is not empty."""
    empty: list[str] = []
    places = [_log_place(path) for path in check.paths]
    for folder, ending in places:
        for path in find(scene.worktree, f"{folder}/{scene.run.id}*{ending}"):
            if not is_log_of(scene.run.id, path, ending):
                continue
            content = (read_inside(scene.worktree, path, MAX_TEXT_BYTES) or b"").decode("utf-8", "replace")
            if written(content):
                return passed(f"{shown(path)} exists")
            empty.append(path)
    if empty:
        return failed(f"{named(empty)} is empty or says nothing")
    return failed(any_of([f"{folder}/{scene.run.id}{ending}" for folder, ending in places]) + " does not exist")


def logged_numbers(worktree: Path) -> list[tuple[str, int]]:
    """Return day and number of each session log on disk."""
    try:
        with os.scandir(real_path(worktree, SESSIONS)) as entries:
            names = [_LOG.fullmatch(entry.name) for entry in islice(entries, MAX_LOGS)]
    except (OSError, OutsideWorktree):
        return []
    return [(log[1], int(log[2])) for log in names if log]


def is_log_of(run_id: str, path: str, ending: str = ".md") -> bool:
    """Return whether a path is named after a run: its id, or its id and a slug."""
    name = posixpath.basename(path)
    return name == f"{run_id}{ending}" or (name.startswith(f"{run_id}-") and name.endswith(ending))


def written(text: str) -> bool:
    """Return whether a log or report has enough text to say something: a word more than a placeholder."""
    return says_something(text) and sum(character.isalnum() for character in text) >= SHORTEST_TEXT


def _log_place(path: str) -> tuple[str, str]:
    """Return the folder of session logs and their ending, from a folder or a name such as YYYY-MM-DD-session-NN.md."""
    folder, name = posixpath.split(path)
    return (folder, posixpath.splitext(name)[1]) if name.startswith(LOG_NAME) else (path.rstrip("/"), ".md")


def _required(worktree: Path, pattern: str, outside: list[str]) -> list[str]:
    try:
        paths = [posixpath.normpath(path) for path in find(worktree, pattern)]
    except OutsideWorktree:
        # A cloned repository must not be able to send an agent to the user's own files.
        if is_pattern(pattern) or os.path.lexists(worktree / pattern):
            outside.append(pattern)
        return []
    real = {path: _resolved(worktree, path) for path in paths}
    outside += [path for path in paths if real[path] is None]
    # A folder or a pipe of that name cannot be read.
    return [path for path, file in real.items() if file is not None and file.is_file()]


def _is_gone(worktree: Path, path: str, link: bool) -> bool:
    """Return whether something else, or nothing, is where a file was."""
    file = _resolved(worktree, path)
    return not os.path.lexists(worktree / path) if link else file is None or not file.is_file()


def _resolved(worktree: Path, path: str) -> Path | None:
    """Resolve a path, so that a file read under one name counts under all its names; None outside the worktree."""
    try:
        return real_path(worktree, path)
    except OutsideWorktree:
        return None


def _not_empty(worktree: Path, path: str) -> bool:
    real = real_path(worktree, path)
    try:
        status = real.stat()
        if stat.S_ISDIR(status.st_mode):
            return next(real.iterdir(), None) is not None
    except OSError as failure:
        raise UnreadableInside(f"{shown(path)} cannot be read: {failure.strerror}.") from failure
    return stat.S_ISREG(status.st_mode) and status.st_size > 0
