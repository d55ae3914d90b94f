"""What setup does, step by step: each can be shown before it is done, and undone when a later one fails."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from holdfast.errors import HoldfastError
from holdfast.setup.json_file import Change
from holdfast.setup.originals import Original, Originals, digest


class Step(Protocol):
    """One thing that setup changes."""

    @property
    def needed(self) -> bool:
        """Whether there is anything to do."""

    def shown(self) -> str:
        """What it would do, for somebody to agree to."""

    def apply(self) -> None:
        """Do it."""

    def undo(self) -> None:
        """Make it undone, after it was done."""


@dataclass(frozen=True, slots=True)
class FileStep:
    """A file to be changed, and what is then known of its original."""

    change: Change
    originals: Originals
    earlier: Original | None
    """The original that was known until now."""
    original: Original | None
    """The original to be known from now on."""

    @property
    def needed(self) -> bool:
        return self.change.needed

    def shown(self) -> str:
        return self.change.diff()

    def apply(self) -> None:
        # First the original: without it a change could not be taken back to the byte, it alone does no harm.
        self._remember(self.original)
        self.change.write()
        if self.change.after is None and self.earlier is not None and self.earlier.folder_made:
            _remove_if_empty(self.change.path.parent)

    def undo(self) -> None:
        Change(self.change.path, self.change.after, self.change.before).write()
        self._remember(self.earlier)

    def _remember(self, original: Original | None) -> None:
        if original is None:
            self.originals.forget(self.change.path)
        else:
            self.originals.keep(original)


def putting_in(originals: Originals, installed: Change, removed: Change) -> FileStep:
    """The step that puts Holdfast into a file; `removed` is the same file without it."""
    earlier = originals.of(installed.path)
    original = original_for(originals, installed.path, installed.before, installed.after, ours=removed.needed)
    return FileStep(installed, originals, earlier, original)


def taking_out(originals: Originals, removed: Change) -> FileStep:
    """The step that takes Holdfast out of a file: back to its original, else, where others were at it, our entries."""
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
    """The original of a file that goes from one text to another; None where Holdfast was in it before it was known."""
    known = originals.counting(path, before)
    if known is not None:
        return Original(str(path), known.text, digest(after), known.folder_made)
    if ours:
        return None
    return Original(str(path), before, digest(after), not path.parent.exists())


def apply(steps: Sequence[Step]) -> None:
    """Do what is needed of these steps, all or none."""
    done: list[Step] = []
    try:
        for step in steps:
            if step.needed:
                step.apply()
                done.append(step)
    except BaseException as failure:
        stays = [problem for step in reversed(done) if (problem := _undone(step))]
        if stays:
            raise HoldfastError(f"{failure} What was done before that stays: {' '.join(stays)}") from failure
        raise


def _undone(step: Step) -> str | None:
    """Undo a step; what kept it from being undone."""
    try:
        step.undo()
    except HoldfastError as problem:
        return str(problem)
    return None


def _is_empty(text: str | None) -> bool:
    return text is None or text.strip() in ("", "{}")


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # somebody's file is in it, and so it stays
        folder.rmdir()
