"""The file in the data directory by which agents start Holdfast: hooks and the MCP server name it in every version.

Settings keep their text when Holdfast is upgraded to another path or its environment is moved; this file is written
anew instead: by every newer daemon and command, by setup and doctor, and by the installation that it finds by itself
when the one it names is gone (`launcher.sh`).
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import stat
import sys
from dataclasses import replace
from pathlib import Path

import holdfast.relay
from holdfast.files import read_bounded, write_private
from holdfast.lazy_dataclass import dataclass
from holdfast.relay.place import foreign_owner
from holdfast.version import __version__, is_newer

NAME = "launcher.sh"
MAX_BYTES = 64 * 1024
OTHERS_WRITE = 0o022
_FIELDS = ("version", "python", "client", "script")


@dataclass(frozen=True, slots=True)
class Launcher:
    """What a launcher starts."""

    version: str
    python: Path
    client: Path
    script: str
    """The `holdfast` that was on the PATH, to be tried when the rest is gone."""

    @property
    def gone(self) -> list[Path]:
        """Files that no longer exist."""
        return [path for path in (self.python, self.client) if not path.is_file()]

    def text(self, home: Path) -> str:
        """Return the file's text."""
        values = (self.version, str(self.python), str(self.client), self.script)
        named = zip((*_FIELDS, "home"), (*values, str(home)), strict=True)
        head = "".join(f"{name}={shlex.quote(value)}\n" for name, value in named)
        return head + Path(__file__).with_name(NAME).read_text()


def launcher_path(home: Path | None) -> Path:
    """Return where the launcher of a data directory is; None stands for the default one."""
    return (Path.home() / ".holdfast" if home is None else home) / NAME


def this_installation() -> Launcher:
    """Return the launcher that starts the Holdfast that runs now."""
    client = Path(holdfast.relay.__file__).with_name("hook.py")
    beside = Path(sys.executable).with_name("holdfast")
    script = shutil.which("holdfast") or ""
    is_this = bool(script) and Path(script).resolve() == beside.resolve()
    return Launcher(__version__, Path(sys.executable), client, script if is_this else str(beside))


def read_launcher(path: Path) -> Launcher | None:
    """Return what a launcher starts; None if there is none, or it is not one that Holdfast wrote."""
    try:
        lines = read_bounded(path, MAX_BYTES).decode().splitlines()[: len(_FIELDS)]
        values = dict(shlex.split(line)[0].split("=", 1) for line in lines)
        version, python, client, script = (values[name] for name in _FIELDS)
    except (OSError, ValueError, KeyError, IndexError):
        return None
    return Launcher(version, Path(python), Path(client), script)


def is_private(path: Path) -> bool:
    """Return whether nobody but this user can have written a launcher, if there is one."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & OTHERS_WRITE


def is_due(home: Path, *, takes_over: bool = False) -> bool:
    """Return whether the launcher of a data directory should be rewritten.

    One of a newer version, or of the same one elsewhere, is left alone unless this installation `takes_over`.
    """
    path, own = launcher_path(home), this_installation()
    there = read_launcher(path)
    if there is None or there.gone or not is_private(path) or is_newer(own.version, there.version):
        return True
    if not takes_over and there.python != own.python:
        return False
    if Path(there.script).is_file():  # what is on the PATH differs from shell to shell
        own = replace(own, script=there.script)
    return read_bounded(path, MAX_BYTES) != os.fsencode(own.text(home))


def refresh(home: Path, *, takes_over: bool = False) -> bool:
    """Write the launcher of a data directory if that is due; return whether it was. Raises OSError."""
    if not is_due(home, takes_over=takes_over):
        return False
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(launcher_path(home), os.fsencode(this_installation().text(home)))
    return True


def refresh_quietly(home: str, *, create: bool) -> None:
    """Do the same for a command that has something else to do: what does not work is left to the next one."""
    if foreign_owner(home) is None and (create or os.path.lexists(launcher_path(Path(home)))):
        with contextlib.suppress(OSError):
            refresh(Path(home))


@dataclass(frozen=True, slots=True)
class LauncherStep:
    """The step of setup that writes the launcher."""

    home: Path
    before: bytes | None

    @property
    def needed(self) -> bool:
        return is_due(self.home, takes_over=True)

    def shown(self) -> str:
        return f"{launcher_path(self.home)} will start {sys.executable}\n"

    def apply(self) -> None:
        refresh(self.home, takes_over=True)

    def undo(self) -> None:
        path = launcher_path(self.home)
        if self.before is None:
            path.unlink(missing_ok=True)
        else:
            write_private(path, self.before)


def launcher_step(home: Path) -> LauncherStep:
    """Return the step that has a data directory's launcher start this installation."""
    try:
        before = read_bounded(launcher_path(home), MAX_BYTES)
    except (OSError, ValueError):
        before = None
    return LauncherStep(home, before)
