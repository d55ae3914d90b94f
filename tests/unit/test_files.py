"""Small files: read within a bound and only where they are files, written for their owner alone and in one step."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from holdfast.files import NotRegular, TooLarge, make_private, open_regular, read_bounded, write_private


def test_a_file_is_read_up_to_its_bound_and_a_larger_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_bounded(path, 5) == b"12345"
    with pytest.raises(TooLarge, match=f"{path} has over 4 bytes"):
        read_bounded(path, 4)
    with pytest.raises(FileNotFoundError):
        read_bounded(tmp_path / "none", 5)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_only_stands_in_the_place_of_a_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / "it"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(NotRegular):
        read_bounded(path, 5)


def test_a_link_is_followed_only_where_that_is_meant(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"it")
    (tmp_path / "link").symlink_to("file")
    assert read_bounded(tmp_path / "link", 5) == b"it"
    with pytest.raises(NotRegular):
        open_regular(tmp_path / "link", follow=False)


def test_a_file_is_replaced_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_private(path, "öne")
    assert (path.read_text("utf-8"), stat.S_IMODE(path.stat().st_mode)) == ("öne", 0o600)
    write_private(path, b"two", mode=0o700)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"two", 0o700)
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_was_not_written_or_is_not_to_be_replaced_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("before")

    def refuse(*_: object) -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        write_private(path, "after", check=lambda: refuse())
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="no"):
        write_private(path, "after")
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["file"]


def test_whoever_makes_a_file_first_made_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    make_private(path, "first")
    make_private(path, "second")
    assert path.read_text() == "first" and os.listdir(tmp_path) == ["file"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
