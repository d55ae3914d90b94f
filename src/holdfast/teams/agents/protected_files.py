"""Files that a managed agent's own file tools are denied: Holdfast's data, and what says what the agent may do.

A command that the agent may run is not held by this: it runs as the user, and the sandbox around it is not ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATH_ARGUMENTS = ("file_path", "notebook_path", "path")
READING = frozenset({"Read", "Grep", "Glob", "LS"})
SETTINGS = ("settings.json", "settings.local.json")
OF_CONFIG = (
    *SETTINGS,
    *(".claude.json", ".credentials.json", "CLAUDE.md", "keybindings.json"),
    *("agents", "commands", "skills", "hooks", "plugins", "rules", "output-styles"),
)
"""What of the agent's configuration directory other sessions of the user follow."""
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
        """Whether a file tool would reach a protected place; for what no rule of the agent decided."""
        named = [arguments[name] for name in PATH_ARGUMENTS if isinstance(arguments.get(name), str)]
        denied = self.hidden if tool in READING else self.hidden | self.fixed
        return any(_within(os.path.realpath(project / Path(path).expanduser()), denied) for path in named)


def protected_files(home: Path, config: Path, project: Path) -> ProtectedFiles:
    """What is protected from an agent in `project`, with Holdfast's data in `home`."""
    own = Path.home()
    fixed = [config / name for name in OF_CONFIG] + [own / ".claude" / name for name in OF_CONFIG]
    fixed += [own / ".claude.json", project / ".mcp.json", *(project / ".claude" / name for name in SETTINGS)]
    hidden = [home, config / ".credentials.json", own / ".claude" / ".credentials.json"]
    return ProtectedFiles(_both_spellings(hidden), _both_spellings(fixed))


def _both_spellings(places: list[Path]) -> frozenset[str]:
    """Each as it is named and as links lead to it: either may be what the agent asks for."""
    return frozenset(spelling for place in places for spelling in (str(place.absolute()), os.path.realpath(place)))


def _within(path: str, places: frozenset[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)
