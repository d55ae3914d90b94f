"""The command that an agent's settings name as a hook: written, recognised, and judged before it is run.

A command names the launcher in the data directory (`launcher.py`), or, in a file that others share, the `holdfast` on
the PATH. Either does nothing if Holdfast is gone: a missing program would make the agent warn at every call.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from holdfast.lazy_dataclass import dataclass
from holdfast.setup.launcher import is_private, launcher_path, read_launcher

_WORD = r"(?:[\w@%+=:,./-]++|'[^']*+'|\"'\")++"
_EVENT = r"(?P<event>[A-Za-z]+(?: [a-z]+)?)"
_HOME = rf"(?:export HOLDFAST_HOME=(?P<home>{_WORD}); )?"
_OURS = re.compile(r"holdfast/relay/hook\.py'? |(?:^|[\s/;])holdfast hook |; set -- hook [A-Za-z]+(?: [a-z]+)?; \. ")
_LAUNCHED = re.compile(
    rf"\[ -O (?P<launcher>{_WORD}) \] && \[ -f (?P=launcher) \] && \[ -r (?P=launcher) \] \|\| exit 0; {_HOME}"
    rf"set -- hook {_EVENT}; \. (?P=launcher)"
)


def command(event: str, *, home: str | None = None) -> str:
    """Return what a hook runs on this machine. `event`: as the agent names it; the agent's own name may follow."""
    launcher = shlex.quote(str(launcher_path(None if home is None else Path(home))))
    place = "" if home is None else f"export HOLDFAST_HOME={shlex.quote(home)}; "
    # Read by the shell that the agent starts anyway: another one would take a millisecond. A shell cannot see the
    # mode of a file; whoever could write into it without owning it would have to own the data directory.
    return (
        f"[ -O {launcher} ] && [ -f {launcher} ] && [ -r {launcher} ] || exit 0;"
        f" {place}set -- hook {event}; . {launcher}"
    )


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
    def parts(self) -> Launched | None:
        """The parts of the command; None if it is not one that Holdfast writes for one machine."""
        match = _LAUNCHED.fullmatch(self.text)
        if match is None:
            return None
        home = None if match["home"] is None else shlex.split(match["home"])[0]
        return Launched(home, Path(*shlex.split(match["launcher"])))

    @property
    def is_portable(self) -> bool:
        """Whether it is what Holdfast writes into shared files."""
        return self.text == portable_command(self.event)

    @property
    def is_current(self) -> bool:
        """Whether this version of Holdfast would write it."""
        parts = self.parts
        return self.is_portable or (parts is not None and self.text == command(self.event, home=parts.home))

    def is_safe(self, project: Path, home: Path) -> bool:
        """Return whether it runs nothing from the project, and uses this data directory."""
        if self.is_portable:
            return True
        parts = self.parts
        if parts is None or (parts.home is not None and Path(parts.home) != home):
            return False
        return parts.is_a_holdfast(home) and not any(_within(path, project) for path in parts.programs)


@dataclass(frozen=True, slots=True)
class Launched:
    """A command that names a launcher."""

    home: str | None
    launcher: Path

    @property
    def programs(self) -> tuple[Path, ...]:
        """What it runs."""
        there = read_launcher(self.launcher)
        return (self.launcher,) if there is None else (self.launcher, there.python, there.client)

    @property
    def gone(self) -> list[Path]:
        """Files that no longer exist; the hook then does nothing, or looks for another Holdfast each time."""
        return [path for path in self.programs if not path.is_file()]

    def is_a_holdfast(self, home: Path) -> bool:
        """Return whether it is the launcher of this data directory, and nobody else could write it."""
        return self.launcher == launcher_path(home) and is_private(self.launcher)


def _within(path: Path, project: Path) -> bool:
    """Return whether a path is inside the project, also through links or as a relative path."""
    return not path.is_absolute() or path.resolve().is_relative_to(project.resolve())
