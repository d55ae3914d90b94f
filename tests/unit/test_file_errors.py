"""An error of the operating system is told with its file, its cause and the next step."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import apsw
import pytest

from holdfast.errors import StoreError
from holdfast.files import errors as file_errors
from holdfast.files.errors import explain, why_not_writable
from holdfast.store.sqlite import to_store_error


@pytest.mark.parametrize(
    ("number", "reason", "repair"),
    [
        (errno.EROFS, "mounted read-only", "Mount it for writing"),
        (errno.ENOSPC, "the disk is full", "Free disk space"),
        (errno.EDQUOT, "quota", "Free disk space"),
        (errno.EACCES, "permission denied", "ls -ld"),
        (errno.EISDIR, "Is a directory", "/home/lock: "),
    ],
)
def test_an_error_names_its_file_its_cause_and_the_next_step(number: int, reason: str, repair: str) -> None:
    told = str(explain(OSError(number, os.strerror(number), "/home/lock")))
    assert told.startswith("/home/lock") and reason in told and repair in told


def test_an_error_without_a_file_is_told_as_it_is() -> None:
    assert str(explain(TimeoutError("timed out"))) == "timed out."
    assert str(explain(OSError(errno.EROFS, "Read-only file system"))).startswith("A file cannot be written: its file")


def test_a_place_that_can_be_written_has_nothing_against_it(tmp_path: Path) -> None:
    assert why_not_writable(tmp_path / "not" / "there" / "yet") is None


@pytest.mark.parametrize("kind", [apsw.ReadOnlyError, apsw.CantOpenError, apsw.IOError, apsw.PermissionsError])
def test_an_error_of_the_database_file_is_told_by_its_cause(
    kind: type[apsw.Error], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "holdfast.db"
    told = to_store_error(kind("disk I/O error"), path)
    assert isinstance(told, StoreError) and str(path) in str(told) and "dmesg" in str(told)
    monkeypatch.setattr(file_errors, "is_read_only", lambda path: True)
    told = to_store_error(kind("disk I/O error"), path)
    assert f"{path} cannot be written: its file system is mounted read-only." in str(told)
    assert "full" not in str(told)
