"""Files that a managed agent's file tools are denied, however a path to them is spelt."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.claude.protected_files import FILE_TOOLS, READING, ProtectedFiles, protected_files

WRITING = sorted(FILE_TOOLS - READING)


@dataclass(frozen=True)
class Place:
    """A project, Holdfast's data beside it, and the agent's configuration."""

    top: Path

    @property
    def data(self) -> Path:
        return self.top / "dätä"

    @property
    def config(self) -> Path:
        return self.top / "claude"

    @property
    def project(self) -> Path:
        return self.top / "project"

    @property
    def protected(self) -> ProtectedFiles:
        return protected_files(self.data, self.config, self.project)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path / "Place")
    for folder in (made.data, made.config, made.project / ".claude" / "hooks", made.project / "src"):
        folder.mkdir(parents=True)
    (made.data / "key").write_text("secret")
    (made.config / "settings.json").write_text("{}")
    (made.project / ".claude" / "settings.json").write_text("{}")
    (made.project / "src" / "mine.py").write_text("")
    monkeypatch.setenv("HOME", str(made.top))
    return made


def asks(tool: str, path: str) -> dict[str, Any]:
    """The input with which a tool reaches a path."""
    match tool:
        case "NotebookEdit" | "NotebookRead":
            return {"notebook_path": path, "new_source": ""}
        case "Grep" | "LS":
            return {"path": path, "pattern": "."}
        case "Glob":
            return {"path": path, "pattern": "**/*"}
    return {"file_path": path, "content": ""}


HIDDEN: dict[str, Callable[[Place], str]] = {
    "the directory": lambda at: str(at.data),
    "a file of it": lambda at: str(at.data / "key"),
    "a file that is not there yet": lambda at: str(at.data / "new" / "file"),
    "by ..": lambda at: f"{at.project}/src/../../dätä/key",
    "relative": lambda at: "../dätä/key",
    "relative, deep": lambda at: "src/./../../dätä/./key",
    "doubled slashes": lambda at: f"{at.top}//dätä//key",
    "three slashes first": lambda at: f"//{at.data}/key",
    "a slash at the end": lambda at: f"{at.data}/",
    "from the home directory": lambda at: "~/dätä/key",
    "another case": lambda at: f"{at.top}/DÄTÄ/KEY",
    "another composition": lambda at: unicodedata.normalize("NFD", str(at.data / "key")),
    "spaces around it": lambda at: f" {at.data}/key ",
    "a link to the directory": lambda at: link(at, at.data) + "/key",
    "a link to the file": lambda at: link(at, at.data / "key"),
    "a link to what is not there yet": lambda at: link(at, at.data / "new"),
    "a link to a link": lambda at: link(at, Path(link(at, at.data, "first"))) + "/key",
    "a relative link": lambda at: link(at, Path("../dätä")) + "/key",
    "a link above, and back": lambda at: link(at, at.top) + "/dätä/key",
    "a link elsewhere, and .. from there": lambda at: link(at, at.config) + "/../dätä/key",
    "a hard link": lambda at: hard_link(at, at.data / "key"),
    "another process's directory": lambda at: f"/proc/self/root{at.data}/key",
    "the daemon's environment": lambda at: f"/proc/{os.getpid()}/environ",
    "a descriptor": lambda at: "/dev/fd/3",
    "the sign-in of the agent": lambda at: str(at.config / ".credentials.json"),
    "a name that no file has": lambda at: f"{at.data}/a\0b",
}
FIXED: dict[str, Callable[[Place], str]] = {
    "the user's settings": lambda at: str(at.config / "settings.json"),
    "settings that are not there yet": lambda at: str(at.config / "settings.local.json"),
    "the project's": lambda at: ".claude/settings.json",
    "its local ones, not there yet": lambda at: ".claude/settings.local.json",
    "its servers": lambda at: ".mcp.json",
    "its hooks": lambda at: ".claude/hooks/start.sh",
    "the user's hooks": lambda at: str(at.config / "hooks" / "start.sh"),
    "the user's skills": lambda at: str(at.config / "skills" / "x" / "SKILL.md"),
    "another case": lambda at: ".Claude/Settings.JSON",
    "a link": lambda at: link(at, at.project / ".claude") + "/settings.json",
    "a hard link": lambda at: hard_link(at, at.project / ".claude" / "settings.json"),
}
OWN: dict[str, Callable[[Place], str]] = {
    "a file": lambda at: "src/mine.py",
    "a new file": lambda at: str(at.project / "new" / "file"),
    "what only begins alike": lambda at: f"{at.data}base/key",
    "a file with two names": lambda at: hard_link(at, at.project / "src" / "mine.py"),
    "a command of the project": lambda at: ".claude/commands/go.md",
    "a link inside": lambda at: link(at, at.project / "src") + "/mine.py",
}


def link(at: Place, target: Path, name: str = "link") -> str:
    (at.project / name).symlink_to(target)
    return str(at.project / name)


def hard_link(at: Place, target: Path) -> str:
    (at.project / "other-name").hardlink_to(target)
    return str(at.project / "other-name")


@pytest.mark.parametrize("tool", sorted(FILE_TOOLS))
@pytest.mark.parametrize("case", HIDDEN)
def test_holdfasts_data_is_denied_to_every_file_tool(place: Place, tool: str, case: str) -> None:
    assert place.protected.forbids(tool, asks(tool, HIDDEN[case](place)), place.project)


@pytest.mark.parametrize("tool", sorted(FILE_TOOLS))
@pytest.mark.parametrize("case", FIXED)
def test_the_agents_own_settings_can_be_read_and_not_written(place: Place, tool: str, case: str) -> None:
    assert place.protected.forbids(tool, asks(tool, FIXED[case](place)), place.project) == (tool in WRITING)


@pytest.mark.parametrize("tool", sorted(FILE_TOOLS))
@pytest.mark.parametrize("case", OWN)
def test_the_projects_own_files_are_the_agents(place: Place, tool: str, case: str) -> None:
    assert not place.protected.forbids(tool, asks(tool, OWN[case](place)), place.project)


@pytest.mark.parametrize(
    "pattern", ["{data}/*", "../dätä/*", "{data}/k[e]y", "../dät[ä]/../dätä/*", "~/dätä/{{key,x}}"]
)
def test_a_pattern_of_glob_is_a_path_too(place: Place, pattern: str) -> None:
    asked = {"pattern": pattern.format(data=place.data)}
    assert place.protected.forbids("Glob", asked, place.project)
    assert not place.protected.forbids("Glob", {"pattern": "src/**/*.py"}, place.project)


def test_a_mount_of_the_same_directory_elsewhere_is_known(place: Place) -> None:
    """In a mount namespace of its own, where the system lets a user have one."""
    mounted = place.project / "mounted"
    mounted.mkdir()
    check = (
        "import sys; from pathlib import Path; from holdfast.agents.claude.protected_files import protected_files as p;"
        "data, config, project = map(Path, sys.argv[1:]); guard = p(data, config, project);"
        "print([guard.forbids(t, {'file_path': str(project / 'mounted' / n)}, project)"
        " for t in ('Read', 'Write') for n in ('key', 'new')])"
    )
    command = 'mount --bind "$1" "$2" && exec "$3" -c "$4" "$1" "$5" "$6"'
    words = [place.data, mounted, sys.executable, check, place.config, place.project]
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", command, "sh", *map(str, words)], capture_output=True, text=True, timeout=60
    )
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"no mount is allowed here: {done.stderr.strip()}")
    assert done.stdout.strip() == "[True, True, True, True]", done.stderr
