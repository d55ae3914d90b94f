"""The command that an agent's settings name as a hook: written, recognised, and judged before it is run.

A command names this machine's Python, or, in a file that others share, the `holdfast` on the PATH. Either does nothing
if Holdfast is gone: a missing program would make the agent warn at every call.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import holdfast.relay
from holdfast.lazy_dataclass import dataclass

CLIENT = "holdfast/relay/hook.py"

_WORD = r"(?:[\w@%+=:,./-]++|'[^']*+'|\"'\")++"
_OURS = re.compile(r"holdfast/relay/hook\.py'? |(?:^|[\s/;])holdfast hook ")
_WRITTEN = re.compile(
    rf"\[ -x (?P<python>{_WORD}) \] && \[ -f (?P<client>{_WORD}) \] \|\| exit 0; "
    rf"(?:export HOLDFAST_HOME=(?P<home>{_WORD}); )?"
    r"exec (?P=python) -I -S (?P=client) (?P<event>[A-Za-z]+(?: [a-z]+)?)"
)
_PYTHON = re.compile(r"python[0-9.]*")


def command(event: str, *, home: str | None = None) -> str:
    """Return what a hook runs on this machine. `event`: as the agent names it; the agent's own name may follow."""
    python = shlex.quote(sys.executable)
    client = shlex.quote(str(Path(holdfast.relay.__file__).with_name("hook.py")))
    place = "" if home is None else f"export HOLDFAST_HOME={shlex.quote(home)}; "
    return f"[ -x {python} ] && [ -f {client} ] || exit 0; {place}exec {python} -I -S {client} {event}"


def portable_command(event: str) -> str:
    """Return what a hook runs in settings that others share."""
    return f"command -v holdfast >/dev/null 2>&1 || exit 0; exec holdfast hook {event}"


def is_ours(command: str) -> bool:
    """Return whether a command runs a hook of Holdfast."""
    return _OURS.search(command) is not None


@dataclass(frozen=True, slots=True)
class HookCommand:
    """One of Holdfast's hooks in a settings file."""

    event: str
    text: str

    @property
    def parts(self) -> Parts | None:
        """The parts of the command; None if it is not one that Holdfast writes for one machine."""
        match = _WRITTEN.fullmatch(self.text)
        if match is None:
            return None
        home = match["home"]
        return Parts(
            Path(*shlex.split(match["python"])),
            Path(*shlex.split(match["client"])),
            None if home is None else shlex.split(home)[0],
        )

    @property
    def is_portable(self) -> bool:
        """Whether it is what Holdfast writes into shared files."""
        return self.text == portable_command(self.event)

    @property
    def is_current(self) -> bool:
        """Whether this installation of Holdfast would write it."""
        parts = self.parts
        return self.is_portable or (parts is not None and self.text == command(self.event, home=parts.home))

    def is_safe(self, project: Path, home: Path) -> bool:
        """Return whether it runs nothing from the project, and uses this data directory."""
        if self.is_portable:
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


def _within(path: Path, project: Path) -> bool:
    """Return whether a path is inside the project, also through links or as a relative path."""
    return not path.is_absolute() or path.resolve().is_relative_to(project.resolve())
