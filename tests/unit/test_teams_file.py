"""The file teams.json: followed while it changes, and edited without losing what others wrote."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import BadInput, Busy, Conflict, HoldfastError, NotFound
from holdfast.teams import config_file
from holdfast.teams.config import MAX_BYTES, TeamsConfig
from holdfast.teams.config_file import TeamsFile


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def write(home: Path, document: Any) -> None:
    (home / "teams.json").write_text(document if isinstance(document, str) else json.dumps(document))


def written(home: Path) -> Any:
    return json.loads((home / "teams.json").read_text())


def age(home: Path) -> None:
    """Give the file a time at which the next change is sure to be told from this one."""
    os.utime(home / "teams.json", ns=(10**18, 10**18))


class TestFollowing:
    """What the daemon sees."""

    def test_no_file_is_an_empty_configuration(self, home: Path) -> None:
        file = TeamsFile(home)
        assert file.config == TeamsConfig()
        assert not file.refresh()

    def test_a_change_is_picked_up_once(self, home: Path, project: Path) -> None:
        file = TeamsFile(home)
        write(home, {"teams": {"a": {"project": str(project)}}})
        assert file.refresh()
        assert list(file.config.teams) == ["a"]
        assert not file.refresh()

    def test_a_change_within_one_tick_of_the_clock_is_not_missed(
        self, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(home, {"teams": {"a": {"project": str(project)}}})
        before = (home / "teams.json").stat()
        monkeypatch.setattr(time, "time_ns", lambda: before.st_mtime_ns + 1)
        file = TeamsFile(home)
        write(home, {"teams": {"b": {"project": str(project)}}})
        os.utime(home / "teams.json", ns=(before.st_atime_ns, before.st_mtime_ns))
        assert file.refresh()
        assert list(file.config.teams) == ["b"]

    def test_an_unchanged_file_is_not_read_again(
        self, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(home, {"teams": {"a": {"project": str(project)}}})
        age(home)
        file = TeamsFile(home)
        monkeypatch.setattr(config_file, "read_config", _never)
        assert not file.refresh()

    def test_a_file_put_in_its_place_is_read_though_time_and_size_are_the_same(self, home: Path, project: Path) -> None:
        write(home, {"teams": {"a": {"project": str(project)}}})
        age(home)
        file = TeamsFile(home)
        (home / "teams.json").rename(home / "old.json")
        write(home, {"teams": {"b": {"project": str(project)}}})
        age(home)
        assert file.refresh()
        assert list(file.config.teams) == ["b"]

    @pytest.mark.parametrize("half", ["", '{"teams": {"a": {"proj', "[]", "\ufeff{"])
    def test_a_half_written_file_leaves_the_teams_as_they_were_and_says_so(
        self, home: Path, project: Path, half: str
    ) -> None:
        good = {"settings": {"maxProcesses": 3}, "teams": {"a": {"project": str(project)}}}
        write(home, good)
        file = TeamsFile(home)
        write(home, half)
        assert file.refresh()
        assert list(file.config.teams) == ["a"]
        assert file.config.settings.max_processes == 3
        (fault,) = file.config.faults
        assert fault.field == "teams.json"
        assert fault.repair.endswith("Until then the teams stay as they were.")
        assert not file.refresh()
        write(home, good)
        assert file.refresh()
        assert file.config.faults == ()

    def test_a_file_that_never_was_good_promises_nothing(self, home: Path) -> None:
        write(home, "{")
        (fault,) = TeamsFile(home).config.faults
        assert "stay" not in fault.repair

    def test_a_removed_file_ends_its_teams(self, home: Path, project: Path) -> None:
        write(home, {"teams": {"a": {"project": str(project)}}})
        file = TeamsFile(home)
        (home / "teams.json").unlink()
        assert file.refresh()
        assert file.config == TeamsConfig()

    def test_a_fault_repaired_outside_the_file_is_noticed(self, home: Path, tmp_path: Path) -> None:
        write(home, {"teams": {"a": {"project": str(tmp_path / "later")}}})
        age(home)
        file = TeamsFile(home)
        assert file.config.refused == ("a",)
        assert not file.refresh()
        (tmp_path / "later").mkdir()
        assert file.refresh()
        assert list(file.config.teams) == ["a"]

    def test_what_is_no_file_is_a_fault_and_blocks_nobody(self, home: Path) -> None:
        os.mkfifo(home / "teams.json")
        (fault,) = TeamsFile(home).config.faults
        assert fault.problem == "is not a file"
        (home / "teams.json").unlink()
        (home / "teams.json").mkdir()
        (fault,) = TeamsFile(home).config.faults
        assert fault.problem == "is not a file"

    @pytest.mark.parametrize(
        ("content", "problem"),
        [(b'{"a": "\xff"}', "is not UTF-8 (byte 7)"), ("é".encode() * MAX_BYTES, f"is larger than {MAX_BYTES} bytes")],
        ids=["not UTF-8", "too large"],
    )
    def test_bytes_that_are_no_text_are_a_fault(self, home: Path, content: bytes, problem: str) -> None:
        (home / "teams.json").write_bytes(content)
        (fault,) = TeamsFile(home).config.faults
        assert fault.problem == problem

    def test_a_byte_order_mark_is_no_fault(self, home: Path) -> None:
        write(home, "\ufeff{}")
        assert TeamsFile(home).config == TeamsConfig()


class TestEditing:
    """What `holdfast teams add` and `remove` do."""

    def test_an_added_team_is_served_and_the_file_is_its_owners_alone(self, tmp_path: Path, project: Path) -> None:
        home = tmp_path / "new"
        file = TeamsFile(home)
        team = file.add("a", project, description="Makes A", model="opus", skip_permissions=True, color="#aabbcc")
        assert file.config.teams == {"a": team}
        assert TeamsFile(home).config.teams == {"a": team}
        assert (home / "teams.json").stat().st_mode & 0o777 == 0o600
        assert home.stat().st_mode & 0o777 == 0o700

    def test_an_edit_keeps_what_it_does_not_know_and_is_written_for_people(self, home: Path, project: Path) -> None:
        others: dict[str, Any] = {"b": {"project": "/gone", "note": "\ud800"}}
        document = {"$schema": "x", "mine": ["ü", 1.5, None], "teams": others}
        write(home, document)
        TeamsFile(home).add("a", project)
        assert written(home) == document | {"teams": others | {"a": {"project": str(project)}}}
        TeamsFile(home).remove("a")
        assert written(home) == document
        TeamsFile(home).remove("b")
        assert (home / "teams.json").read_text() == (
            '{\n  "$schema": "x",\n  "mine": [\n    "ü",\n    1.5,\n    null\n  ],\n  "teams": {}\n}\n'
        )

    @pytest.mark.parametrize("document", ["{}", '{"teams": null}', '{"teams": {}}'])
    def test_the_first_team_finds_its_place(self, home: Path, project: Path, document: str) -> None:
        write(home, document)
        TeamsFile(home).add("a", project)
        assert written(home) == {"teams": {"a": {"project": str(project)}}}

    def test_adding_the_same_again_changes_nothing(self, home: Path, project: Path) -> None:
        TeamsFile(home).add("a", project)
        before = (home / "teams.json").stat()
        TeamsFile(home).add("a", project)
        assert (home / "teams.json").stat() == before

    def test_another_team_of_the_same_name_is_refused(self, home: Path, project: Path, tmp_path: Path) -> None:
        TeamsFile(home).add("a", project)
        with pytest.raises(Conflict, match="There is a team a already"):
            TeamsFile(home).add("a", tmp_path)
        assert written(home)["teams"]["a"] == {"project": str(project)}

    @pytest.mark.parametrize(
        ("name", "options", "field"),
        [
            ("a b", {}, "name"),
            ("external", {}, "name"),
            ("a", {"color": "red"}, "color"),
            ("a", {"model": "-x"}, "model"),
            ("a", {"description": ""}, "description"),
            ("a", {"project": Path("relative")}, "project"),
            ("a", {"project": Path("/does/not/exist")}, "project"),
            ("a", {"description": "x" * MAX_BYTES}, "teams.json"),
        ],
    )
    def test_a_team_that_could_not_be_served_is_not_written(
        self, home: Path, project: Path, name: str, options: dict[str, Any], field: str
    ) -> None:
        with pytest.raises(BadInput) as caught:
            TeamsFile(home).add(name, **{"project": project, **options})
        assert caught.value.field == field
        assert not (home / "teams.json").exists()

    def test_a_team_outside_the_allowed_roots_is_not_added(self, home: Path, project: Path) -> None:
        write(home, {"settings": {"allowedRoots": [str(home)]}})
        with pytest.raises(BadInput, match=r"outside settings\.allowedRoots"):
            TeamsFile(home).add("a", project)

    def test_faults_of_other_teams_do_not_keep_one_from_being_added(self, home: Path, project: Path) -> None:
        write(home, {"teams": {"b": {}}})
        TeamsFile(home).add("a", project)
        assert list(written(home)["teams"]) == ["b", "a"]

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ('{"teams": {', "is not JSON"),
            ("[]", "must be a JSON object"),
            ('{"teams": []}', 'must have an object as "teams"'),
            ('{"teams": {"b": {"env": {"X": "1", "X": "2"}}}}', 'has "X" more than once'),
            ('{"x": [{"y": 1, "y": 2}]}', 'has "y" more than once'),
        ],
    )
    def test_a_file_that_an_edit_would_spoil_is_not_overwritten(
        self, home: Path, project: Path, text: str, problem: str
    ) -> None:
        write(home, text)
        with pytest.raises(Conflict, match=problem):
            TeamsFile(home).add("a", project)
        with pytest.raises(Conflict, match=problem):
            TeamsFile(home).remove("b")
        assert (home / "teams.json").read_text() == text

    def test_a_team_with_faults_can_be_removed(self, home: Path) -> None:
        write(home, {"teams": {"no name!": 5}})
        TeamsFile(home).remove("no name!")
        assert written(home) == {"teams": {}}

    def test_removing_what_is_not_there_names_the_nearest(self, home: Path, project: Path) -> None:
        TeamsFile(home).add("frontend", project)
        with pytest.raises(NotFound, match="Did you mean frontend"):
            TeamsFile(home).remove("frontned")

    def test_a_link_stays_a_link(self, home: Path, project: Path, tmp_path: Path) -> None:
        (tmp_path / "dotfiles.json").write_text("{}")
        (home / "teams.json").symlink_to(tmp_path / "dotfiles.json")
        TeamsFile(home).add("a", project)
        assert (home / "teams.json").is_symlink()
        assert "a" in json.loads((tmp_path / "dotfiles.json").read_text())["teams"]

    def test_a_failed_write_leaves_the_old_file_and_nothing_else(
        self, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(home, "{}")
        monkeypatch.setattr(os, "fsync", _full)
        with pytest.raises(HoldfastError, match="cannot be written"):
            TeamsFile(home).add("a", project)
        assert (home / "teams.json").read_text() == "{}"
        assert {entry.name for entry in home.iterdir()} == {"teams.json", "teams.lock"}

    def test_edits_at_the_same_time_all_take_effect(
        self, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(config_file, "LOCK_SECONDS", 120.0)
        names = [f"team-{number}" for number in range(12)]
        threads = [threading.Thread(target=TeamsFile(home).add, args=(name, project)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(written(home)["teams"]) == set(names)

    def test_an_editor_that_never_ends_does_not_hold_the_next_for_ever(
        self, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(config_file, "LOCK_SECONDS", 0.0)
        with (home / "teams.lock").open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            with pytest.raises(Busy, match="Somebody else is editing"):
                TeamsFile(home).add("a", project)


def _never(*_: Any, **__: Any) -> Any:
    raise AssertionError("the file was read again")


def _full(*_: Any) -> None:
    raise OSError(28, "No space left on device")
