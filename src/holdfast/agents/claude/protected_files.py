"""Files that a managed agent's own file tools are denied: Holdfast's data, and what says what the agent may do.

They are denied twice: by rules that Claude Code itself keeps, and by asking `forbids` before each use of a file tool.
The rules know paths; `forbids` also knows a place by what it is (device and inode), so that no link, mount or spelling
leads around it. What is left: a second mount that the kernel does not know to be the same file system, and a link that
is put there between the question and the use. A search from above such a place is left to the rules, which leave it out
but not a hard link to a file of it. A command that the agent may run is not held by this: it runs as the user, and the
sandbox around it is not ours.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.lazy_dataclass import dataclass

PATH_ARGUMENTS = ("file_path", "notebook_path", "path")
READING = frozenset({"Read", "NotebookRead", "Grep", "Glob", "LS"})
FILE_TOOLS = READING | {"Write", "Edit", "MultiEdit", "NotebookEdit"}
OTHER_PROCESSES = (Path("/proc"), Path("/dev/fd"))
"""They show the environments of other processes, the daemon's included, under names that differ for each reader."""
MAX_LINKED_FILES = 1000
"""Files of a hidden directory that are compared with one that has several names."""
SETTINGS = ("settings.json", "settings.local.json")
OF_CONFIG = (
    *SETTINGS,
    *(".claude.json", ".credentials.json", "CLAUDE.md", "keybindings.json"),
    *("agents", "commands", "skills", "hooks", "plugins", "rules", "output-styles"),
)
"""What of the agent's configuration directory other sessions of the user follow."""
_WILDCARDS = str.maketrans("?[{", "***")
_SPECIAL = re.compile(r"([\\*?\[\]!#{}])")


@dataclass(frozen=True, slots=True)
class ProtectedFiles:
    """Places that are neither read nor written, and places that are only read."""

    hidden: frozenset[str]
    fixed: frozenset[str]

    @property
    def rules(self) -> list[str]:
        """The places as deny rules of Claude Code, where a path from the root begins with two slashes."""
        rules = []
        for tool, places in (("Read", self.hidden), ("Edit", self.hidden | self.fixed)):
            for place in sorted(places):
                written = "/" + _SPECIAL.sub(r"\\\1", place)
                rules += [f"{tool}({written})", f"{tool}({written}/**)"]
        return rules

    def forbids(self, tool: str, arguments: Mapping[str, Any], project: Path) -> bool:
        """Return whether a tool would reach a protected file, however its arguments spell the path."""
        named = [arguments[name] for name in PATH_ARGUMENTS if isinstance(arguments.get(name), str)]
        if tool == "Glob" and isinstance(arguments.get("pattern"), str):
            start, _, rest = arguments["pattern"].translate(_WILDCARDS).partition("*")
            if ".." in rest:
                return True
            named.append(str(Path(named[0] if named else "", start)))
        denied = self.hidden if tool in READING else self.hidden | self.fixed
        try:
            return any(self._reaches(path, denied, project) for text in named for path in _spellings(text, project))
        except (OSError, ValueError, RuntimeError):  # an impossible name, or one that cannot be resolved
            return True

    def _reaches(self, path: str, denied: frozenset[str], project: Path) -> bool:
        real = os.path.realpath(path)
        if any(_within(_folded(spelling), {_folded(place) for place in denied}) for spelling in (path, real)):
            return True
        places = {_identity(place) for place in denied} - {None}
        if any(_identity(folder) in places for folder in (real, *map(str, Path(real).parents))):
            return True
        return _has_several_names(real) and any(_identity(real) in _files_of(place) for place in self.hidden)


def protected_files(home: Path, config: Path, project: Path) -> ProtectedFiles:
    """Return the files protected from an agent in `project`, with Holdfast's data in `home`."""
    own = Path.home()
    fixed = [config / name for name in OF_CONFIG] + [own / ".claude" / name for name in OF_CONFIG]
    fixed += [own / ".claude.json", project / ".mcp.json"]
    fixed += [project / ".claude" / name for name in (*SETTINGS, "hooks")]
    hidden = [home, *OTHER_PROCESSES, config / ".credentials.json", own / ".claude" / ".credentials.json"]
    return ProtectedFiles(_both_spellings(hidden), _both_spellings(fixed))


def _both_spellings(places: list[Path]) -> frozenset[str]:
    """Return each as it is named and as links lead to it: either may be what the agent asks for."""
    return frozenset(spelling for place in places for spelling in (str(place.absolute()), os.path.realpath(place)))


def _spellings(text: str, project: Path) -> Iterator[str]:
    """Yield the paths that a tool may take a text for: Claude Code trims and composes what it is given."""
    for spelling in dict.fromkeys((text, text.strip(), unicodedata.normalize("NFC", text.strip()))):
        yield os.path.normpath(project / Path(spelling).expanduser())
        yield str(project / Path(spelling).expanduser())  # `link/..` is not where it seems


def _within(path: str, places: Collection[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _folded(path: str) -> str:
    """Fold case and composition, which some file systems ignore when they compare names."""
    return unicodedata.normalize("NFC", path).casefold()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - many of them, and none is needed as a Path
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _has_several_names(path: str) -> bool:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def _files_of(place: str) -> set[tuple[int, int] | None]:
    """Return the files directly in a directory; only files can have hard links."""
    try:
        with os.scandir(place) as entries:
            return {_identity(entry.path) for entry in itertools.islice(entries, MAX_LINKED_FILES)}
    except OSError:
        return set()
