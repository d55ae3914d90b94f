"""Where a daemon's socket is, for the one who puts it there and for those who look."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.relay import hook_client, place


@pytest.fixture
def deep(tmp_path: Path) -> str:
    home = tmp_path / ("d" * 120)
    home.mkdir()
    return str(home)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """This user's runtime directory, which is not as deep as a test's own may be."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


def test_the_home_is_the_one_given_then_the_environments_then_the_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HOLDFAST_HOME", "~/set")
    assert place.home("~/given") == f"{tmp_path}/given"
    assert place.home() == f"{tmp_path}/set"
    monkeypatch.delenv("HOLDFAST_HOME")
    assert place.home() == f"{tmp_path}/.holdfast"


def test_a_short_home_holds_its_own_socket() -> None:
    assert place.socket_place("/h") == place.socket_path("/h") == "/h/daemon.sock"


@pytest.mark.parametrize(("length", "direct"), [(100, True), (101, False)])
def test_a_hundred_bytes_are_the_longest_path_a_socket_gets(length: int, direct: bool, runtime: Path) -> None:
    room = length - len(str(runtime)) - len("//daemon.sock")
    home = runtime / ("é" * (room // 2) + "x" * (room % 2))
    home.mkdir()
    assert len(os.fsencode(home / "daemon.sock")) == length
    assert (place.socket_place(str(home)) == str(home / "daemon.sock")) is direct


def test_a_deep_homes_socket_is_found_through_the_pointer_by_relay_and_hook(
    deep: str, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.socket_place(deep)
    assert Path(path).parent.parent == runtime
    assert Path(path).parent.stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert place.socket_path(deep) == path
    assert hook_client._socket_path(deep) == path
    assert sorted(os.listdir(deep)) == ["daemon.sock.path"]


def test_a_deep_home_without_a_pointer_has_no_daemon(deep: str) -> None:
    with pytest.raises(FileNotFoundError):
        place.is_ours(place.socket_path(deep))


@pytest.mark.parametrize("runtime", ["", "relative", "/proc/1/none", "/" + "r" * 100])
def test_a_runtime_directory_that_will_not_do_is_passed_over(
    deep: str, runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    path = place.socket_place(deep)
    try:
        assert path.startswith(f"/tmp/holdfast-{os.getuid()}-")
    finally:
        os.rmdir(os.path.dirname(path))


def test_a_directory_somebody_else_prepared_is_refused(deep: str, runtime: Path, tmp_path: Path) -> None:
    path = place.socket_place(deep)
    os.rmdir(os.path.dirname(path))
    os.symlink(tmp_path, os.path.dirname(path))
    with pytest.raises(PermissionError, match="not a directory of this user"):
        place.socket_place(deep)


def test_only_a_socket_of_this_user_is_a_daemons(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not place.is_ours(str(tmp_path / "file"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        assert place.is_ours(str(tmp_path / "s"))


def test_what_a_daemon_leaves_lies_in_its_home() -> None:
    assert place.stopped_marker("/h") == "/h/stopped"
    assert place.last_error("/h") == "/h/daemon.err"


def test_a_socket_of_another_user_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        somebody_else = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: somebody_else)
        assert not place.is_ours(str(tmp_path / "s"))
