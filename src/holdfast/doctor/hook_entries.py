"""Finds Holdfast's hooks in Claude Code's settings, and decides which of those commands are safe to run.

A project's files are not trusted, so of the commands there only one that Holdfast itself would write is run, and only
with programs from outside the project.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from holdfast.agents.claude.settings import LOCAL, SHARED, command, portable_command
from holdfast.doctor.surroundings import Surroundings
from holdfast.setup.json_file import SettingsUnusable, inside, read_settings
from holdfast.setup.server import NAME

CLIENT = "holdfast/relay/hook.py"

_WORD = r"(?:[\w@%+=:,./-]++|'[^']*+'|\"'\")++"
_OURS = re.compile(r"holdfast/relay/hook\.py|\bholdfast hook ")
_WRITTEN = re.compile(
    rf"\[ -x (?P<python>{_WORD}) \] && \[ -f (?P<client>{_WORD}) \] \|\| exit 0; "
    rf"(?:export HOLDFAST_HOME=(?P<home>{_WORD}); )?"
    r"exec (?P=python) -I -S (?P=client) (?P<event>[A-Za-z]+)"
)
_PYTHON = re.compile(r"python[0-9.]*")


class Whose(StrEnum):
    """Owner of a settings file."""

    USER = "user"
    PROJECT = "project"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file of Claude Code."""

    whose: Whose
    path: Path

    @property
    def is_shared(self) -> bool:
        """Whether the file is shared with other machines."""
        return self.whose is Whose.PROJECT


@dataclass(frozen=True, slots=True)
class Entry:
    """One of Holdfast's hooks in a settings file."""

    file: SettingsFile
    event: str
    command: str

    @property
    def parts(self) -> Parts | None:
        """The parts of the command; None if it is not one that Holdfast writes for one machine."""
        found = _WRITTEN.fullmatch(self.command)
        if found is None:
            return None
        home = found["home"]
        return Parts(
            Path(*shlex.split(found["python"])),
            Path(*shlex.split(found["client"])),
            None if home is None else shlex.split(home)[0],
        )

    @property
    def is_portable(self) -> bool:
        """Whether it is what Holdfast writes into shared files."""
        return self.command == portable_command(self.event)

    @property
    def is_current(self) -> bool:
        """Whether this installation of Holdfast would write it."""
        parts = self.parts
        return self.is_portable or (parts is not None and self.command == command(self.event, home=parts.home))

    def may_run(self, project: Path, home: Path) -> bool:
        """Return whether it is safe to run: it runs nothing from the project, and uses this data directory."""
        if self.file.whose is Whose.USER or self.is_portable:
            return True
        parts = self.parts
        if parts is None or (parts.home is not None and Path(parts.home) != home):
            return False
        return parts.is_a_holdfast and not any(_within(path, project) for path in (parts.python, parts.client))


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a hook's command."""

    python: Path
    client: Path
    home: str | None

    @property
    def is_a_holdfast(self) -> bool:
        """Whether it names a Python and a hook client."""
        return _PYTHON.fullmatch(self.python.name) is not None and self.client.match(CLIENT)

    @property
    def gone(self) -> list[Path]:
        """Files that no longer exist; the hook then silently does nothing."""
        return [path for path in (self.python, self.client) if not path.is_file()]


def settings_files(around: Surroundings) -> list[SettingsFile]:
    """The settings files that Claude Code reads in this project; raises SettingsUnusable for a link out of it."""
    files = [SettingsFile(Whose.USER, around.agent_config / "settings.json")]
    # In the user's home directory, the project's file is the user's.
    if around.project / ".claude" != around.agent_config:
        files.append(SettingsFile(Whose.PROJECT, inside(around.project, SHARED)))
    files.append(SettingsFile(Whose.LOCAL, inside(around.project, LOCAL)))
    return files


def entries_in(file: SettingsFile) -> list[Entry]:
    """All of Holdfast's hooks in a file; raises SettingsUnusable if it cannot be read."""
    return [Entry(file, event, text) for event, text in _commands(file.path) if _OURS.search(text)]


def plugin_enabled(around: Surroundings) -> str | None:
    """The name under which Holdfast's plugin is enabled in Claude Code; the project's settings override the user's."""
    enabled: dict[str, Any] = {}
    for file in settings_files(around):
        try:
            said = read_settings(file.path).get("enabledPlugins")
        except SettingsUnusable:
            continue
        enabled |= said if isinstance(said, dict) else {}
    return next((name for name, is_on in enabled.items() if is_on and name.startswith(f"{NAME}@")), None)


def _commands(path: Path) -> Iterator[tuple[str, str]]:
    """(event, command) of every command hook; malformed ones are left to Claude Code."""
    hooks = read_settings(path).get("hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for handler in handlers if isinstance(handlers, list) else ():
                text = handler.get("command") if isinstance(handler, dict) else None
                if isinstance(text, str):
                    yield event, text


def _within(path: Path, project: Path) -> bool:
    """Return whether a path is inside the project, also through links or as a relative path."""
    return not path.is_absolute() or path.resolve().is_relative_to(project.resolve())
