"""Folders that many tests begin with: made once and then copied, which takes a tenth of the time of asking git."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_made: dict[str, tuple[tempfile.TemporaryDirectory[str], Any]] = {}


def copied(name: str, make: Callable[[Path], T], path: Path) -> T:
    """Have at `path` what `make` makes in a folder, and return what it returned; the first call of a name makes it."""
    if name not in _made:
        folder = tempfile.TemporaryDirectory(prefix="holdfast-made-")
        made = make(Path(folder.name) / "made")
        for sample in Path(folder.name).glob("made/.git/hooks/*.sample"):
            sample.unlink()
        _made[name] = (folder, made)
    folder, made = _made[name]
    shutil.copytree(Path(folder.name) / "made", path, symlinks=True)
    return made
