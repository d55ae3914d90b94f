"""A JSON settings file of somebody else's: read without guessing, changed in one step, in its own form."""

from __future__ import annotations

import copy
import difflib
import json
import os
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast import bounded_json
from holdfast.errors import Conflict, HoldfastError
from holdfast.terminal import one_line

LARGEST = 16 * 1024 * 1024
REPAIR = "Repair it; it was left as it is."

_INDENT = re.compile(r"^[{\[]\s*\n([ \t]+)\S")

Settings = dict[str, Any]
Edit = Callable[[Settings], None]
"""Changes settings in place; raises Misshapen where they are not what it knows."""


class SettingsUnusable(HoldfastError):
    """A settings file that cannot be changed without losing what is in it."""

    code = "E_SETTINGS_UNUSABLE"


class Misshapen(ValueError):
    """Settings hold something else than the agent that reads them says they do."""


@dataclass(frozen=True, slots=True)
class Change:
    """A file as it is, and as it is to be."""

    path: Path
    before: str | None
    """None where there is no file yet."""
    after: str | None
    """None where there is to be no file."""

    @property
    def needed(self) -> bool:
        """Whether there is anything to do."""
        return self.after != self.before

    def diff(self) -> str:
        """The change as `diff -u` shows it."""
        lines = difflib.unified_diff(
            (self.before or "").splitlines(keepends=True),
            (self.after or "").splitlines(keepends=True),
            one_line(str(self.path)) if self.before is not None else os.devnull,
            one_line(str(self.path)) if self.after is not None else os.devnull,
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def write(self) -> None:
        """Make the change in one step. Raises Conflict when somebody else changed the file since it was read."""
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
        fresh = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        mode = self.path.stat().st_mode & 0o777 if self.before is not None else 0o644
        try:
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            self._check_unchanged()
            fresh.replace(self.path)
        finally:
            fresh.unlink(missing_ok=True)

    def _check_unchanged(self) -> None:
        if read_text(self.path) != self.before:
            raise Conflict(f"{self.path} was changed meanwhile.", recovery="Run the command again.")


def edited(path: Path, *edits: Edit) -> Change:
    """The file with these edits made; it is rewritten only when its meaning changes, in its own indentation."""
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
    """What a settings file holds; nothing where there is none."""
    return parsed(path, read_text(path))


def read_text(path: Path) -> str | None:
    """A file's text, to the byte; None where there is no file."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise SettingsUnusable(f"{path} cannot be read: {failure.strerror}.") from failure
    if len(content) > LARGEST:
        raise SettingsUnusable(f"{path} has over {LARGEST} bytes.")
    try:
        return content.decode()
    except UnicodeDecodeError as failure:
        raise SettingsUnusable(f"{path} is not UTF-8 ({failure.reason} at byte {failure.start}).") from failure


def parsed(path: Path, text: str | None) -> Settings:
    """The settings in a text; raises SettingsUnusable where reading them would lose something."""
    try:
        settings = bounded_json.loads(text, object_pairs_hook=_once) if text is not None and text.strip() else {}
    except json.JSONDecodeError as failure:
        raise SettingsUnusable(f"{path}, line {failure.lineno}: {failure.msg}.", recovery=REPAIR) from failure
    except ValueError as failure:  # a name twice, nested too deeply, a number of thousands of digits
        raise SettingsUnusable(f"{path}: {failure}.", recovery=REPAIR) from failure
    if not isinstance(settings, dict):
        raise SettingsUnusable(f"{path} must hold a JSON object.", recovery=REPAIR)
    return settings


def inside(project: Path, file: str) -> Path:
    """The file of a project that is really meant. A link in a clone must not lead to a file outside it."""
    root, path = Path(os.path.realpath(project)), Path(os.path.realpath(project / file))
    if not path.is_relative_to(root):
        raise SettingsUnusable(
            f"{project / file} leads out of the project through a symbolic link.", recovery="Replace it with a file."
        )
    return path


class _Twice(ValueError):
    """A name that stands twice in one object: reading it would lose the first."""


def _once(pairs: Sequence[tuple[str, Any]]) -> Settings:
    found: Settings = {}
    for name, value in pairs:
        if name in found:
            raise _Twice(f"{json.dumps(name)} stands twice in one object")
        found[name] = value
    return found


def _rendered(settings: Settings, like: str | None) -> str:
    found = _INDENT.match(like or "")
    indent: int | str = 2 if found is None else "\t" * len(found[1]) if "\t" in found[1] else len(found[1])
    text = json.dumps(settings, indent=indent, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair, which only an escape can hold
        text = json.dumps(settings, indent=indent)
    if like is None or not like.strip() or like.endswith("\n"):
        text += "\n"
    return text.replace("\n", "\r\n") if "\r\n" in (like or "") else text
