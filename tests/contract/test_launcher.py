"""The file by which agents start Holdfast: what it starts, what it does when that is gone, and who writes it anew."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.relay import place
from holdfast.setup.hook_command import command
from holdfast.setup.launcher import Launcher, launcher_path, read_launcher, refresh, refresh_quietly, this_installation
from holdfast.setup.server import is_ours, launcher_of, of_this_machine

GONE = Path("/gone/bin/python")


@pytest.fixture(params=["home", 'it\'s a "home" $(touch x)'])
def home(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return tmp_path / str(request.param)


def write(home: Path, starts: Launcher) -> None:
    home.mkdir(exist_ok=True)
    launcher_path(home).write_text(starts.text(home))


def program(path: Path, says: str, *, beside: str = "") -> Path:
    """A `holdfast` that prints how it was called; with another in its folder, the python of an environment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit 0\ncat\necho "{says} $HOLDFAST_LAUNCHER: $*"\n{beside}')
    path.chmod(0o755)
    return path


def run(text: str, user: Path, *path: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command of an agent's settings, as the agent runs it, for a user with these folders on the PATH."""
    env = {"PATH": os.pathsep.join([*map(str, path), "/usr/bin:/bin"]), "HOME": str(user)}
    return subprocess.run(["/bin/sh", "-c", text], input="[]\n", env=env, cwd=cwd, capture_output=True, text=True)


def hook(home: Path, user: Path, *path: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return run(command("SessionStart", home=str(home)), user, *path, cwd=cwd)


def test_it_starts_the_python_and_the_client_that_it_names(home: Path, tmp_path: Path) -> None:
    python = program(tmp_path / "bin" / "python", "python")
    client = tmp_path / "hook.py"
    client.touch()
    write(home, Launcher("1", python, client, ""))
    assert hook(home, tmp_path).stdout == f"[]\npython 1: -I -S {client} SessionStart\n"
    server = of_this_machine(str(home))
    assert server.env == {"HOLDFAST_HOME": str(home)} and is_ours(server.entry())
    assert launcher_of((server.command, *server.args)) == launcher_path(home)
    done = subprocess.run([server.command, *server.args], input="", capture_output=True, text=True, check=True)
    assert done.stdout == "python : -P -m holdfast mcp\n"


@pytest.mark.parametrize("where", [".local/bin", ".local/share/uv/tools/holdfast/bin", "on path"])
def test_where_that_is_gone_it_starts_another_holdfast_and_has_it_repaired(
    home: Path, tmp_path: Path, where: str
) -> None:
    write(home, replace(this_installation(), python=GONE, script="/gone/bin/holdfast"))
    other = program(tmp_path / where / "holdfast", "another")
    done = hook(home, tmp_path, other.parent)
    assert (done.stdout, done.stderr) == ("[]\nanother repair: hook SessionStart\n", "")


def test_the_script_of_a_moved_environment_is_not_needed(home: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved" / "bin"
    script = program(moved / "holdfast", "never")
    script.write_text("#!/gone/bin/python\n")
    (moved.parent / "pyvenv.cfg").touch()
    program(moved / "python", "python", beside="")
    (moved / "python").write_text('#!/bin/sh\n[ "$4" = --version ] && exit 0\necho "python: $*"\n')
    (tmp_path / ".local" / "bin").mkdir(parents=True)
    (tmp_path / ".local" / "bin" / "holdfast").symlink_to(script)
    write(home, replace(this_installation(), python=GONE, script=""))
    assert hook(home, tmp_path).stdout == "python: -P -m holdfast hook SessionStart\n"


@pytest.mark.parametrize("named", ["relative", "absolute"])
def test_a_projects_own_holdfast_is_not_started(home: Path, tmp_path: Path, named: str) -> None:
    write(home, replace(this_installation(), python=GONE, script=""))
    project = tmp_path / "project"
    program(project / "bin" / "holdfast", "the project's")
    path = Path("bin") if named == "relative" else project / "bin"
    assert hook(home, tmp_path, path, cwd=project).stdout == ""


def test_where_there_is_no_holdfast_it_lets_the_agent_go_on_and_notes_that_it_did(home: Path, tmp_path: Path) -> None:
    write(home, replace(this_installation(), client=Path("/gone/hook.py"), script=""))
    done = hook(home, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert Path(place.missed_hook(str(home))).read_text() == "SessionStart\n"
    server = of_this_machine(str(home))
    ended = subprocess.run([server.command, *server.args], env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    assert ended.returncode == 1, "an agent shows a server that does not start"


def test_a_launcher_that_somebody_else_wrote_is_not_run(home: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to somebody else")
    write(home, this_installation())
    os.chown(launcher_path(home), 12345, 12345)
    server = of_this_machine(str(home))
    assert hook(home, tmp_path).stderr == ""
    assert subprocess.run([server.command, *server.args]).returncode == 1
    assert refresh(home) and launcher_path(home).stat().st_uid == os.geteuid()


@pytest.mark.parametrize(
    ("there", "written"),
    [
        ({"python": GONE}, True),
        ({"client": Path("/gone/hook.py")}, True),
        ({"version": "0.0.1"}, True),
        ({"python": Path("/bin/sh"), "version": "999"}, False),
        ({"python": Path("/bin/sh")}, False),
        ({"script": "/gone/holdfast"}, True),
    ],
    ids=lambda value: str(value),
)
def test_it_is_written_anew_where_its_installation_is_gone_or_older(
    home: Path, there: dict[str, object], written: bool
) -> None:
    earlier = replace(this_installation(), **there)  # type: ignore[arg-type]
    write(home, earlier)
    assert refresh(home) is written
    assert read_launcher(launcher_path(home)) == (this_installation() if written else earlier)
    assert refresh(home, takes_over=True) is not written
    assert read_launcher(launcher_path(home)) == this_installation()
    assert not refresh(home, takes_over=True)


@pytest.mark.parametrize("damage", ["open", "link", "cut off"])
def test_one_that_is_not_as_holdfast_leaves_it_is_written_anew(home: Path, tmp_path: Path, damage: str) -> None:
    write(home, this_installation())
    path = launcher_path(home)
    if damage == "open":
        path.chmod(0o666)
    elif damage == "cut off":
        path.write_text(path.read_text()[:200])
    else:
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    refresh_quietly(str(home), create=False)
    assert path.lstat().st_mode & 0o777 == 0o600 and path.read_text() == this_installation().text(home)


def test_a_command_that_has_other_things_to_do_creates_none_and_never_fails(home: Path, tmp_path: Path) -> None:
    refresh_quietly(str(home), create=False)
    assert not home.exists()
    home.mkdir()
    refresh_quietly(str(home), create=False)
    assert not launcher_path(home).exists()
    home.rmdir()
    refresh_quietly(str(home), create=True)
    assert launcher_path(home).exists()
    launcher_path(home).unlink()
    launcher_path(home).mkdir()
    refresh_quietly(str(home), create=True)


def test_the_holdfast_that_was_found_repairs_it(home: Path, tmp_path: Path) -> None:
    write(home, replace(this_installation(), python=GONE, script=str(Path(sys.executable).with_name("holdfast"))))
    done = run(command("Stop", home=str(home)), tmp_path, cwd=tmp_path)
    assert "no daemon is running" in done.stderr, done
    assert read_launcher(launcher_path(home)) == this_installation()


def test_every_shell_of_this_machine_reads_it(home: Path, tmp_path: Path) -> None:
    write(home, replace(this_installation(), python=GONE, script=""))
    other = program(tmp_path / "bin" / "holdfast", "another")
    for shell in filter(None, map(shutil.which, ("dash", "bash", "zsh", "ksh", "busybox"))):
        words = [shell, "sh", "-c"] if shell.endswith("busybox") else [shell, "-c"]
        env = {"PATH": f"{other.parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
        text = command("Stop", home=str(home))
        done = subprocess.run([*words, text], input="", env=env, capture_output=True, text=True, check=True)
        assert done.stdout == "another repair: hook Stop\n", json.dumps([shell, done.stderr])
