"""Files in the data directory that may contain forgotten data: copies of the store, and logs.

Also the note of what is being forgotten, with which an interrupted removal is finished.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from holdfast.errors import StoreError
from holdfast.forgetting.model import Scope
from holdfast.store.files import beside, publish, sync

COPIES = (
    "backups/before-*",
    "backups/daily-*",
    "holdfast.db.corrupt-*",
    "holdfast.db.before-restore-*",
    "holdfast.db.replaced-*",
    "salvage-*.txt*",
)
"""Copies of the whole store that Holdfast makes on its own: before migrations, daily, and of a replaced store."""
ANSWERS = "answers/*"
"""Cached answers of relays, for when no daemon is running; they are fetched again."""
LOGS = "daemon.log*", "daemon.err"
DATABASE_FILES = ("holdfast.db", "holdfast.db-wal", "holdfast.db-shm")
_ENTRY = re.compile(rb"(?m)^(?=\d{4}-\d{2}-\d{2} )")
"""Beginning of a log entry."""
MAX_SEARCHED_BYTES = 64 * 1024 * 1024


def note_path(home: Path, engine: str) -> Path:
    """Return the path of the note; per engine, because one data directory can serve either in turn."""
    return home / f"forgetting-{engine}.json"


def write_note(file: Path, scope: Scope) -> None:
    """Write down what is being forgotten, durably, before the first row is deleted."""
    draft = beside(file, ".partial")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as written:
        written.write(scope.written())
    publish(draft, file)


def read_note(file: Path) -> Scope | None:
    """Return the scope of an interrupted removal, if there is one."""
    try:
        return Scope.read(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{file}, the note of an interrupted removal, cannot be read.",
            recovery="Delete it, and forget the same project or session again.",
        ) from error


def remove_note(file: Path) -> None:
    """Remove the note: the removal is complete."""
    file.unlink(missing_ok=True)
    sync(file.parent)


def found(home: Path) -> list[Path]:
    """Return the existing copies of the store."""
    return sorted(path for pattern in COPIES for path in home.glob(pattern) if path.is_file())


def remove(home: Path) -> list[Path]:
    """Delete every copy of the store and the relays' cached answers; returns the copies.

    A copy that was begun before the erasing may only now get its final name, so this repeats until none is found.
    """
    removed: list[Path] = []
    while paths := found(home):
        for path in paths:
            path.unlink(missing_ok=True)
        removed += paths
    for path in home.glob(ANSWERS):
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in removed}:
        sync(folder)
    return removed


def scrub_logs(home: Path, scope: Scope) -> int:
    """Remove log entries that name a root or the session, with their tracebacks; returns how many.

    In place, because a daemon appends to the same file.
    """
    names, gone = scope.names(), 0
    for pattern in LOGS:
        for path in home.glob(pattern):
            with path.open("r+b") as file:
                entries = _ENTRY.split(file.read())
                kept = [
                    entry for entry in entries if not _mentions_scope(entry.decode("utf-8", "replace"), scope, names)
                ]
                if len(kept) == len(entries):
                    continue
                file.seek(0)
                file.write(b"".join(kept))
                file.truncate()
            sync(path)
            gone += len(entries) - len(kept)
    return gone


def _mentions_scope(entry: str, scope: Scope, names: re.Pattern[str] | None) -> bool:
    named = names is not None and names.search(entry) is not None
    return named or (scope.session is not None and scope.session in entry)


def still_naming(home: Path, scope: Scope) -> list[Path]:
    """Return files that still name a root but are not Holdfast's to change: the owner's settings."""
    names = scope.names()
    if names is None:
        return []
    forms = {text for path in scope.paths | scope.uris for text in (path, json.dumps(path)[1:-1])}
    paths: list[Path] = []
    for path in home.rglob("*"):
        if (
            path.name in DATABASE_FILES
            or path.is_symlink()
            or not path.is_file()
            or path.stat().st_size > MAX_SEARCHED_BYTES
        ):
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        if any(name in text for name in forms) and names.search(text):
            paths.append(path)
    return sorted(paths)
