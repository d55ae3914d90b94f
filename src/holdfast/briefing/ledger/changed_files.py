"""Decides which files a session modified, from its transcript and from git. Pure, no I/O."""

from __future__ import annotations

from dataclasses import replace

from holdfast.briefing.ledger.model import Ledger, Touched


def changed_files(ledger: Ledger) -> tuple[list[Touched], list[Touched]]:
    """Return the files that a session modified, the latest last, and those that others changed meanwhile.

    If git looked, it decides: files that are as before are left out, and files that no tool or command named are the
    session's only if no other session was running there.
    """
    start, view = ledger.git_start, ledger.git_view
    if start is None or view is None:
        return ledger.modified, []
    changed = {one.path: one for one in view.changed}
    own: list[Touched] = []
    for file in ledger.modified:
        known = changed.get(file.path)
        if known is not None and file.at <= view.at:
            own.append(replace(file, removed=known.removed))
        elif not start.at < file.at <= view.at or file.path in view.undecided:
            own.append(file)
    modified = {file.path for file in ledger.modified}
    others = [Touched(one.path, at=view.at, removed=one.removed) for one in view.changed if one.path not in modified]
    by_us = [one for one in others if view.alone or _is_named(ledger, one.path)]
    return [*by_us, *own], [one for one in others if one not in by_us]


def _is_named(ledger: Ledger, path: str) -> bool:
    folders = (f"{file.path}/" for file in ledger.modified)
    return path in ledger.mentioned or any(path.startswith(folder) for folder in folders)
