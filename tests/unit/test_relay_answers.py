"""What a relay tells before a daemon is there: what a daemon answered last, else what the package ships."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.relay.answers import ABANDONED_SECONDS, KEPT_FILES, Answers, folder_of, prune
from holdfast.version import __version__

ASKED = ("tools/list", "legacy", "2025-11-25")
OTHER = {"result": {"tools": [{"name": "another", "inputSchema": {"type": "object"}}]}}


def answers(
    home: Path, *, toolsets: str = "auto", root: str = "/project", recognised: bool = True, version: str = __version__
) -> Answers:
    return Answers(str(home), version, toolsets, root, recognised=recognised)


def names(found: Answers) -> list[str]:
    answer = found.find(ASKED)
    assert answer is not None
    return [tool["name"] for tool in answer["result"]["tools"]]


def test_what_a_daemon_answered_is_told_to_the_next_caller_of_its_kind_alone(tmp_path: Path) -> None:
    answers(tmp_path).keep([(ASKED, OTHER)])
    assert names(answers(tmp_path)) == ["another"]
    for different in (
        answers(tmp_path, toolsets="all"),
        answers(tmp_path, root="/another"),
        answers(tmp_path, recognised=False),
        answers(tmp_path, version="9.9"),
    ):
        assert "thought" in names(different)
    assert answers(tmp_path).find(("tools/list", "legacy", "2024-11-05")) != OTHER


def test_what_is_shipped_is_not_kept_and_replaces_what_was_kept(tmp_path: Path) -> None:
    shipped = answers(tmp_path).shipped(ASKED)
    assert shipped is not None
    answers(tmp_path).keep([(ASKED, shipped)])
    assert not Path(folder_of(str(tmp_path))).exists()
    answers(tmp_path).keep([(ASKED, OTHER)])
    answers(tmp_path).keep([(ASKED, shipped)])
    assert answers(tmp_path).find(ASKED) == shipped


def test_files_are_private_and_name_no_project(tmp_path: Path) -> None:
    answers(tmp_path, root="/the/secret-project").keep([(ASKED, OTHER)])
    (file,) = Path(folder_of(str(tmp_path))).iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert "secret" not in file.name + file.read_text()


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"legacy 2025-11-25 tools/list": 7}', b"\xff"])
def test_a_damaged_file_counts_for_nothing_and_is_mended(tmp_path: Path, damage: bytes) -> None:
    answers(tmp_path).keep([(ASKED, OTHER)])
    (file,) = Path(folder_of(str(tmp_path))).iterdir()
    file.write_bytes(damage)
    assert "thought" in names(answers(tmp_path))
    answers(tmp_path).keep([(ASKED, OTHER)])
    assert names(answers(tmp_path)) == ["another"]


def test_toolsets_and_recognition_decide_which_shipped_tools_are_listed(tmp_path: Path) -> None:
    assert "teams_ask" not in names(answers(tmp_path))
    assert "teams_ask" in names(answers(tmp_path, toolsets="core,teams"))
    assert "thought" not in names(answers(tmp_path, toolsets="teams"))
    assert {"thought", "teams_ask", "take_message", "session_start"} <= set(names(answers(tmp_path, toolsets="all")))
    assert "reconnect_session" not in names(answers(tmp_path))
    assert "reconnect_session" in names(answers(tmp_path, recognised=False))


def test_an_unknown_version_gets_the_latest_handshake_and_no_modern_answer(tmp_path: Path) -> None:
    shaken = answers(tmp_path).find(("initialize", "legacy", "1999-01-01"))
    assert shaken is not None and shaken["result"]["protocolVersion"] == "2025-11-25"
    assert answers(tmp_path).find(("tools/list", "modern", "2027-01-01")) is None
    assert answers(tmp_path).find(("ping", "modern", "2026-07-28")) is None


def test_other_versions_and_the_oldest_files_are_removed(tmp_path: Path) -> None:
    answers(tmp_path, version="0.0.1").keep([(ASKED, OTHER)])
    for number in range(KEPT_FILES + 5):
        answers(tmp_path, root=f"/{number}").keep([(ASKED, OTHER)])
    for number, file in enumerate(sorted(Path(folder_of(str(tmp_path))).iterdir())):
        os.utime(file, (number, number))
    folder = Path(folder_of(str(tmp_path)))
    now = 2.0 * KEPT_FILES + ABANDONED_SECONDS
    for name, written in (("left.json.1", 0.0), ("being-written.json.2", now)):
        (folder / name).write_text("half of it")
        os.utime(folder / name, (written, written))
    prune(str(tmp_path), __version__, now)
    assert {file.name for file in folder.iterdir() if not file.name.endswith(".json")} == {"being-written.json.2"}
    (folder / "being-written.json.2").unlink()
    left = list(Path(folder_of(str(tmp_path))).iterdir())
    assert len(left) == KEPT_FILES
    assert not [file for file in left if file.name.startswith("0.0.1-")]
    prune(str(tmp_path / "not there"), __version__, now)
