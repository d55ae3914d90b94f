"""The files of the data directory that may hold what is forgotten: copies of the store, and logs.

Also the note of what is being forgotten, by which a removal that was cut off is finished.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

from holdfast.errors import StoreError
from holdfast.forgetting.scope import Scope
from holdfast.store.files import beside, publish, sync
from holdfast.teams.agents.echo import FOLDER

COPIES = (
    "backups/before-*",
    "backups/daily-*",
    "holdfast.db.corrupt-*",
    "holdfast.db.before-restore-*",
    "holdfast.db.replaced-*",
    "salvage-*.txt*",
)
"""What Holdfast keeps of the whole store by itself: before changes of the schema, daily, and when one was replaced."""
ANSWERS = "answers/*"
"""What relays tell while no daemon serves; a daemon is asked again."""
LOGS = "daemon.log*", "daemon.err"
OURS = ("holdfast.db", "holdfast.db-wal", "holdfast.db-shm")
_ENTRY = re.compile(rb"(?m)^(?=\d{4}-\d{2}-\d{2} )")
"""Where an entry of a log begins."""
LARGEST_SEARCHED = 64 * 1024 * 1024


def under_way(home: Path, engine: str) -> Path:
    """Where it is written what is being forgotten; one data directory can serve a store of either engine in turn."""
    return home / f"forgetting-{engine}.json"


def note(file: Path, scope: Scope) -> None:
    """Write down what is being forgotten, durably, before the first row goes."""
    draft = beside(file, ".partial")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as written:
        written.write(scope.written())
    publish(draft, file)


def noted(file: Path) -> Scope | None:
    """What was being forgotten when it was cut off."""
    try:
        return Scope.read(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{file} says what was being forgotten when it was cut off, and cannot be read.",
            recovery="Delete it, and forget the same project or session again.",
        ) from error


def close_note(file: Path) -> None:
    """It is forgotten."""
    file.unlink(missing_ok=True)
    sync(file.parent)


def found(home: Path) -> list[Path]:
    """The copies of the store that there are."""
    return sorted(path for pattern in COPIES for path in home.glob(pattern) if path.is_file())


def remove(home: Path) -> list[Path]:
    """Remove every copy, and what relays were answered; returns the copies.

    A copy that was begun before the erasing may get its name just now, so it is looked for until there is none.
    """
    removed: list[Path] = []
    while some := found(home):
        for path in some:
            path.unlink(missing_ok=True)
        removed += some
    for path in home.glob(ANSWERS):
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in removed}:
        sync(folder)
    return removed


def remove_echoes(home: Path, session_ids: Iterable[str]) -> None:
    """Remove what echo agents kept of these conversations; the transcripts of other agents are not Holdfast's."""
    for session_id in session_ids:
        (home / FOLDER / f"{Path(session_id).name}.jsonl").unlink(missing_ok=True)


def scrub_logs(home: Path, scope: Scope) -> int:
    """Take the entries that name a root or a session out of the logs, with their tracebacks; how many there were.

    In place, because a daemon writes to the end of the same file.
    """
    names, gone = scope.names(), 0
    for pattern in LOGS:
        for path in home.glob(pattern):
            with path.open("r+b") as file:
                entries = _ENTRY.split(file.read())
                kept = [entry for entry in entries if not _tells(entry.decode("utf-8", "replace"), scope, names)]
                if len(kept) == len(entries):
                    continue
                file.seek(0)
                file.write(b"".join(kept))
                file.truncate()
            sync(path)
            gone += len(entries) - len(kept)
    return gone


def _tells(entry: str, scope: Scope, names: re.Pattern[str] | None) -> bool:
    named = names is not None and names.search(entry) is not None
    return named or (scope.session is not None and scope.session in entry)


def still_naming(home: Path, scope: Scope) -> list[Path]:
    """The files that still name a root, and that are not Holdfast's to change: the owner's settings."""
    names = scope.names()
    if names is None:
        return []
    spelled = {text for path in scope.paths | scope.uris for text in (path, json.dumps(path)[1:-1])}
    found: list[Path] = []
    for path in home.rglob("*"):
        if path.name in OURS or path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_SEARCHED:
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        if any(name in text for name in spelled) and names.search(text):
            found.append(path)
    return sorted(found)
