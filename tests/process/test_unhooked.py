"""An agent that worked without its hook is reported: by doctor, in the status, and once to the user of the next."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.installation import Installation
from tests.process.hooks import left_behind, starts

from holdfast.relay import place


class Desk:
    """An installation with Claude Code set up."""

    def __init__(self, holdfast: Installation, root: Path) -> None:
        self.holdfast = holdfast
        self.config = root / "claude"
        self.project = root / "fence"
        self.project.mkdir()
        holdfast.settings |= {"HOME": str(root), "CLAUDE_CONFIG_DIR": str(self.config), "PATH": "/usr/bin:/bin"}
        assert holdfast.run("setup", "claude", "--yes").returncode == 0

    @property
    def folder(self) -> Path:
        key = "".join(char if char.isalnum() else "-" for char in str(self.project))
        (self.config / "projects").mkdir(parents=True, exist_ok=True)
        return self.config / "projects" / key

    def reported(self) -> list[str]:
        """What doctor says of missing briefings."""
        found = json.loads(self.holdfast.run("doctor", "--json").stdout)["findings"]
        return [finding["text"] for finding in found if finding["link"] == "briefings"]


@pytest.fixture
def desk(embedded: Installation, tmp_path: Path) -> Desk:
    return Desk(embedded, tmp_path)


def test_a_session_of_which_no_hook_told_is_reported_and_its_user_is_told_once(desk: Desk) -> None:
    assert desk.reported() == []
    hooked = left_behind(desk.folder, desk.project)
    starts(desk.holdfast, desk.project, hooked)
    assert desk.reported() == []
    left_behind(desk.folder, desk.project, "Paint the fence.")
    (line,) = desk.reported()
    assert str(desk.project) in line and "without its hooks" in line
    assert line in desk.holdfast.run("status").stdout
    told = [starts(desk.holdfast, desk.project, left_behind(desk.folder, desk.project))["message"] for _ in range(2)]
    assert "without its hooks" in told[0] and "without its hooks" not in told[1]
    desk.holdfast.run("forget", str(desk.project), "--yes")
    assert desk.reported() == [], "nobody wants to hear of what is forgotten"


def test_a_hook_that_found_no_holdfast_is_reported_and_its_user_is_told_once(desk: Desk) -> None:
    Path(place.missed_hook(str(desk.holdfast.home))).write_text("SessionStart\n")
    (line,) = desk.reported()
    assert "found no Holdfast" in line
    told = [starts(desk.holdfast, desk.project, left_behind(desk.folder, desk.project))["message"] for _ in range(2)]
    assert "found no Holdfast" in told[0] and "found no Holdfast" not in told[1]
    assert desk.reported() == []


def test_sessions_from_before_setup_are_not_reported(desk: Desk) -> None:
    before = left_behind(desk.folder, desk.project)
    for path in (desk.holdfast.home / "setup").glob("*.json"):
        later = before.stat().st_mtime + 60
        os.utime(path, (later, later))
    os.utime(before, (later + 60, later + 60))
    assert desk.reported() == [], "it began before, and went on"
