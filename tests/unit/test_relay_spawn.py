"""Of all that miss their daemon, one starts it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from holdfast.relay.spawn import start_daemon


def test_nobody_starts_a_daemon_while_another_is_being_started(tmp_path: Path) -> None:
    turn = os.open(tmp_path / "starting", os.O_WRONLY | os.O_CREAT)
    fcntl.flock(turn, fcntl.LOCK_EX)
    assert not start_daemon(str(tmp_path))
    os.close(turn)
    assert [found.name for found in tmp_path.iterdir()] == ["starting"]


def test_a_place_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(FileExistsError) as refused:
        start_daemon(str(tmp_path / "home"))
    assert str(tmp_path / "home") in str(refused.value)
