"""Steps of setup: each can be shown before it is done, and undone if a later one fails."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from holdfast.errors import HoldfastError
from holdfast.lazy_dataclass import dataclass
from holdfast.setup.json_file import Change
from holdfast.setup.originals import Original, Originals, digest


class Step(Protocol):
    """One change that setup makes."""

    @property
    def needed(self) -> bool:
        """Whether there is anything to do."""

    def shown(self) -> str:
        """Describe what it would do, for the user to agree to."""

    def apply(self) -> None:
        """Do it."""

    def undo(self) -> None:
        """Undo it after it was done."""


@dataclass(frozen=True, slots=True)
class FileStep:
    """A file to be changed, and its original."""

    change: Change
    originals: Originals
    earlier: Original | None
    """The original stored until now."""
    original: Original | None
    """The original to be stored from now on."""

    @property
    def needed(self) -> bool:
        return self.change.needed

    def shown(self) -> str:
        return self.change.diff()

    def apply(self) -> None:
        # The original first: without it the change could not be undone exactly; stored alone it does no harm.
        self.originals.put(self.change.path, self.original)
        self.change.write()
        if self.change.after is None and self.earlier is not None and self.earlier.folder_made:
            _remove_if_empty(self.change.path.parent)

    def undo(self) -> None:
        Change(self.change.path, self.change.after, self.change.before).write()
        self.originals.put(self.change.path, self.earlier)


def putting_in(originals: Originals, installed: Change, removed: Change) -> FileStep:
    """Return the step that adds Holdfast to a file; `removed` is the same file without it."""
    earlier = originals.of(installed.path)
    original = original_for(originals, installed.path, installed.before, installed.after, ours=removed.needed)
    return FileStep(installed, originals, earlier, original)


def taking_out(originals: Originals, removed: Change) -> FileStep:
    """Return the step that removes Holdfast from a file: restore the original, or remove our entries if it changed."""
    path, now = removed.path, removed.before
    earlier = originals.of(path)
    counting = originals.counting(path, now)
    if counting is not None:
        removed = Change(path, now, counting.text)
    elif removed.needed and earlier is not None and earlier.text is None and _is_empty(removed.after):
        removed = Change(path, now, None)
    return FileStep(removed, originals, earlier, None)


def original_for(
    originals: Originals, path: Path, before: str | None, after: str | None, *, ours: bool
) -> Original | None:
    """Return the original for a file's change; None if Holdfast was in the file before originals were stored."""
    known = originals.counting(path, before)
    if known is not None:
        return Original(str(path), known.text, digest(after), known.folder_made)
    if ours:
        return None
    return Original(str(path), before, digest(after), not path.parent.exists())


def apply(steps: Sequence[Step]) -> None:
    """Do the steps that are needed, all or none."""
    done: list[Step] = []
    try:
        for step in steps:
            if step.needed:
                step.apply()
                done.append(step)
    except BaseException as failure:
        stays = [problem for step in reversed(done) if (problem := _undone(step))]
        if stays:
            raise HoldfastError(f"{failure} These earlier changes could not be undone: {' '.join(stays)}") from failure
        raise


def _undone(step: Step) -> str | None:
    """Undo a step; return why it could not be undone, if so."""
    try:
        step.undo()
    except HoldfastError as problem:
        return str(problem)
    return None


def _is_empty(text: str | None) -> bool:
    return text is None or text.strip() in ("", "{}")


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not empty, so it stays
        folder.rmdir()
