"""Whether a team's project is where teams.json says: there, readable, spelt exactly, within the allowed roots."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from holdfast.teams.config_fields import Refused, shown

Entries = Callable[[Path], Collection[str]]


def names_in(folder: Path) -> Collection[str]:
    """Return the names in a directory; none if it may be entered but not listed."""
    try:
        return {entry.name for entry in folder.iterdir()}
    except OSError:
        return ()


def true_spelling(path: Path, entries: Entries = names_in) -> Path:
    """Return `path` as its directories spell it.

    A case-insensitive file system opens any spelling, but agents file their transcripts under the one they were
    started with: two spellings would be two projects.
    """
    spelt = Path(path.anchor)
    for part in path.parts[1:]:
        spelt /= _as_listed(part, entries(spelt))
    return spelt


def check_project(project: Path) -> None:
    """Refuse a project that no agent could be started in."""
    try:
        is_directory = stat.S_ISDIR(project.stat().st_mode)
    except FileNotFoundError:
        raise Refused(
            f"{shown(str(project), 200)} does not exist", "Correct the path (case counts), or create the directory."
        ) from None
    except OSError as error:
        raise Refused(
            f"{shown(str(project), 200)} cannot be reached ({error.strerror})",
            "Correct the path, or its parents' permissions.",
        ) from error
    if not is_directory:
        raise Refused(f"{shown(str(project), 200)} is not a directory", "Name the project's directory.")
    if not os.access(project, os.R_OK | os.X_OK):
        raise Refused(f"{shown(str(project), 200)} cannot be read", "Give yourself permission to read and enter it.")
    spelt = true_spelling(project)
    if spelt != project:
        raise Refused("is spelt differently on disk", f'Write "{shown(str(spelt), 200)}".')


def check_allowed(project: Path, allowed_roots: Sequence[Path]) -> None:
    """Refuse a project outside the roots; symlinks do not lead out of them."""
    real = Path(os.path.realpath(project))
    if allowed_roots and not any(real.is_relative_to(os.path.realpath(root)) for root in allowed_roots):
        raise Refused(
            f"{shown(str(real), 200)} is outside settings.allowedRoots",
            "Move the project, or add its directory to settings.allowedRoots.",
        )


def _as_listed(part: str, names: Collection[str]) -> str:
    # Some file systems list é in two characters; that is no other spelling.
    if part in names or any(_composed(name) == _composed(part) for name in names):
        return part
    alike = [name for name in names if _folded(name) == _folded(part)]
    return alike[0] if len(alike) == 1 else part


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _folded(name: str) -> str:
    return _composed(name).casefold()
