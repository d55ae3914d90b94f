"""Database files are moved so that there is always one under the name."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.store.files import publish, replace_database, utc_stamp


def test_a_stamp_is_utc_and_sorts_by_time() -> None:
    assert utc_stamp(0) == "19700101T000000000Z"
    assert utc_stamp(1_785_233_700_123) == "20260728T101500123Z"
    assert utc_stamp(999) < utc_stamp(1000)


@pytest.mark.parametrize("links", [True, False])
def test_the_old_database_is_kept_with_its_log_and_the_new_one_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError("no hard links here")

    if not links:
        monkeypatch.setattr(Path, "hardlink_to", refuse)
    for name in ("a.db", "a.db-wal", "a.db-shm"):
        (tmp_path / name).write_text(f"old {name}")
    (tmp_path / "finished").write_text("new")
    replace_database(tmp_path / "a.db", tmp_path / "finished", tmp_path / "aside.db")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a.db": "new",
        "aside.db": "old a.db",
        "aside.db-wal": "old a.db-wal",
    }


def test_the_database_keeps_its_name_when_the_last_step_fails(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("old")
    with pytest.raises(FileNotFoundError):
        replace_database(tmp_path / "a.db", tmp_path / "never finished", tmp_path / "aside.db")
    assert (tmp_path / "a.db").read_text() == "old"


def test_publishing_replaces_in_one_step(tmp_path: Path) -> None:
    (tmp_path / "draft").write_text("new")
    (tmp_path / "target").write_text("old")
    publish(tmp_path / "draft", tmp_path / "target")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]
