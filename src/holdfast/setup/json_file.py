"""Edits a JSON settings file of another program: strict reading, atomic writing, its own formatting kept."""

from __future__ import annotations

import copy
import difflib
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import Conflict, HoldfastError
from holdfast.files import TooLarge, read_bounded, write_private
from holdfast.lazy_dataclass import dataclass
from holdfast.text import bounded_json
from holdfast.text.terminal import one_line

MAX_SETTINGS_BYTES = 16 * 1024 * 1024
REPAIR = "Repair it; it was not changed."

_INDENT = re.compile(r"^[{\[]\s*\n([ \t]+)\S")

Settings = dict[str, Any]
Edit = Callable[[Settings], None]
"""Changes settings in place; raises Misshapen if they do not have the expected form."""


class SettingsUnusable(HoldfastError):
    """A settings file cannot be changed without losing data."""

    code = "E_SETTINGS_UNUSABLE"


class Misshapen(ValueError):
    """Raised when settings do not have the form that their agent documents."""


@dataclass(frozen=True, slots=True)
class Change:
    """A file's current and its new text."""

    path: Path
    before: str | None
    """None if there is no file yet."""
    after: str | None
    """None to remove the file."""

    @property
    def needed(self) -> bool:
        """Whether there is anything to do."""
        return self.after != self.before

    def diff(self) -> str:
        """Return the change as `diff -u` shows it."""
        lines = difflib.unified_diff(
            (self.before or "").splitlines(keepends=True),
            (self.after or "").splitlines(keepends=True),
            one_line(str(self.path)) if self.before is not None else os.devnull,
            one_line(str(self.path)) if self.after is not None else os.devnull,
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def write(self) -> None:
        """Write the change atomically. Raises Conflict if the file was changed since it was read."""
        if not self.needed:
            return
        try:
            if self.after is None:
                self._check_unchanged()
                self.path.unlink()
            else:
                self._replace(self.after.encode())
        except OSError as failure:
            raise HoldfastError(f"{self.path} cannot be written: {failure.strerror}.") from failure

    def _replace(self, content: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        mode = self.path.stat().st_mode & 0o777 if self.before is not None else 0o644
        write_private(self.path, content, mode=mode, check=self._check_unchanged)

    def _check_unchanged(self) -> None:
        if read_text(self.path) != self.before:
            raise Conflict(f"{self.path} was changed meanwhile.", recovery="Run the command again.")


def edited(path: Path, *edits: Edit) -> Change:
    """Return the change that these edits make; an unchanged file is not rewritten, and keeps its indentation."""
    before = read_text(path)
    settings = parsed(path, before)
    changed = copy.deepcopy(settings)
    try:
        for edit in edits:
            edit(changed)
    except Misshapen as problem:
        raise SettingsUnusable(f"{path}: {problem}.", recovery=REPAIR) from problem
    return Change(path, before, before if changed == settings else _rendered(changed, before))


def read_settings(path: Path) -> Settings:
    """Read a settings file; empty if there is none."""
    return parsed(path, read_text(path))


def read_text(path: Path) -> str | None:
    """Read a file's exact text; None if there is no file."""
    try:
        content = read_bounded(path, MAX_SETTINGS_BYTES)
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise SettingsUnusable(f"{path} cannot be read: {failure.strerror}.") from failure
    except TooLarge as failure:
        raise SettingsUnusable(str(failure)) from failure
    try:
        return content.decode()
    except UnicodeDecodeError as failure:
        raise SettingsUnusable(f"{path} is not UTF-8 ({failure.reason} at byte {failure.start}).") from failure


def parsed(path: Path, text: str | None) -> Settings:
    """Parse the settings in a text; raises SettingsUnusable if that would lose something."""
    try:
        settings = bounded_json.loads(text, object_pairs_hook=_once) if text is not None and text.strip() else {}
    except json.JSONDecodeError as failure:
        raise SettingsUnusable(f"{path}, line {failure.lineno}: {failure.msg}.", recovery=REPAIR) from failure
    except ValueError as failure:  # a duplicate name, nesting too deep, a number with thousands of digits
        raise SettingsUnusable(f"{path}: {failure}.", recovery=REPAIR) from failure
    if not isinstance(settings, dict):
        raise SettingsUnusable(f"{path} must contain a JSON object.", recovery=REPAIR)
    return settings


def inside(project: Path, file: str) -> Path:
    """Resolve a file of a project. A link in a cloned repository must not lead outside it."""
    root, path = Path(os.path.realpath(project)), Path(os.path.realpath(project / file))
    if not path.is_relative_to(root):
        raise SettingsUnusable(
            f"{project / file} leads out of the project through a symbolic link.", recovery="Replace it with a file."
        )
    return path


class _DuplicateName(ValueError):
    """Raised for a name that occurs twice in one object: reading it would lose the first."""


def _once(pairs: Sequence[tuple[str, Any]]) -> Settings:
    settings: Settings = {}
    for name, value in pairs:
        if name in settings:
            raise _DuplicateName(f"{json.dumps(name)} occurs twice in one object")
        settings[name] = value
    return settings


def _rendered(settings: Settings, like: str | None) -> str:
    match = _INDENT.match(like or "")
    indent: int | str = 2 if match is None else "\t" * len(match[1]) if "\t" in match[1] else len(match[1])
    text = json.dumps(settings, indent=indent, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which must be escaped
        text = json.dumps(settings, indent=indent)
    if like is None or not like.strip() or like.endswith("\n"):
        text += "\n"
    return text.replace("\n", "\r\n") if "\r\n" in (like or "") else text
