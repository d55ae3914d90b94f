"""`holdfast demo` is real, leaves nothing behind, and touches nothing of the user's."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import psutil
import pytest
from tests.installation import HOLDFAST, PATIENCE, Installation, kill_all, wait_until
from tests.shared_daemon import Guest

from holdfast.cli.control import ask_daemon
from holdfast.cli.demo import NAMES
from holdfast.demo import stage
from holdfast.demo.demos import DEMOS
from holdfast.demo.killed import NEXT, STEPS
from holdfast.demo.picture import pictured
from holdfast.doctor.mcp_client import StdioClient

DOCS = Path(__file__).parents[2] / "docs"
RECORDED = DOCS / "demo.md"
PICTURE = DOCS / "pictures" / "cut-off.svg"
VARYING = (
    (r"\S*/shop", "/shop"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "SESSION"),
    (r'dismiss: "[0-9a-f]{8}"', "dismiss: SESSION"),
    (r"20\d\d-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"(process|kill -9) \d+", r"\1 PID"),
)
"""What differs from run to run, and how it is written to be compared."""
WIDTH = "96"
ASCII = {"├─": "|-", "└─": "`-", "│": "|"}


def recorded(name: str) -> str:
    """What docs/demo.md says that a demo prints."""
    block = RECORDED.read_text().partition(f"\n$ holdfast demo {name} --fast\n")[2]
    return block.partition("\n```\n")[0]


def comparable(said: str) -> str:
    """An output without what differs from run to run, with terminal and with encoding."""
    for fancy, plain in ASCII.items():
        said = said.replace(fancy, plain)
    said = " ".join(word for word in said.split() if word != "|")
    for varying, name in VARYING:
        said = re.sub(varying, name, said)
    return said


def played_lines(said: str) -> list[str]:
    """An output without what is said after the play."""
    return said.partition("\n\n   For your own agent")[0].splitlines()


class Theatre:
    """A user who calls the demo: a home of their own, and a place for temporary files that can be looked at."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        self.temporary = temporary
        self.user = folder / "user"
        self.user.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "CLAUDE"))}
        self.env = {**kept, "HOME": str(self.user), "TMPDIR": str(self.temporary), "PYTHONIOENCODING": "utf-8"}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Begin a demo."""
        return subprocess.Popen(
            [str(HOLDFAST), "demo", *arguments],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )

    def play(self, *arguments: str) -> str:
        """A whole demo; all that it said."""
        demo = self.start(*arguments)
        said, _ = demo.communicate(timeout=PATIENCE * 4)
        assert demo.returncode == 0, said
        return said

    def processes(self) -> list[psutil.Process]:
        """Every process that works in our place for temporary files."""
        return [process for process in psutil.process_iter() if self._belongs(process)]

    def _belongs(self, process: psutil.Process) -> bool:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            return process.environ().get("HOLDFAST_HOME", "").startswith(str(self.temporary))
        except (psutil.NoSuchProcess, psutil.AccessDenied):  # gone meanwhile, or another user's
            return False


@pytest.fixture
def theatre(tmp_path: Path) -> Iterator[Theatre]:
    """Whatever a test leaves running is ended, and fails it."""
    with tempfile.TemporaryDirectory() as short:  # a test's own path is too long for a socket
        theatre = Theatre(tmp_path, Path(short))
        yield theatre
    left = theatre.processes()
    kill_all(left)
    assert not left


def test_the_work_comes_back_after_agent_and_daemon_were_killed_and_nothing_is_left(
    theatre: Theatre, shared_embedded: Guest
) -> None:
    """Covered a Holdfast that is in use, and where nothing but ASCII can be shown."""
    theatre.env |= shared_embedded.settings | {"PYTHONIOENCODING": "ascii"}
    before = shared_embedded.daemon()
    said = theatre.play("--fast")
    agents, daemons = re.findall(r"agent: process (\d+)", said), re.findall(r"daemon: process (\d+)", said)
    assert re.findall(r"kill -9 (\d+)", said) == [agents[0], daemons[0]]
    assert len({*agents, *daemons}) == 4
    told = said[said.index("3. A new agent") : said.index("4. It continues")]
    assert "Orders are charged twice" in told and "session-start hook" in told
    assert comparable(said) == comparable(recorded("killed")), "HOLDFAST_WRITE_GOLDEN=1 writes docs/demo.md anew"
    picture = said[said.index("4. It continues") :]
    for step in (*STEPS, NEXT):
        assert f" {step.thought}" in picture
    assert f"{len(STEPS)} thoughts before the kills, {len(STEPS)} after them" in picture
    assert said.isascii() and "|- 1  " in said and "\x1b" not in said
    assert list(theatre.temporary.iterdir()) == []
    assert list(theatre.user.iterdir()) == []
    assert theatre.processes() == []
    assert shared_embedded.daemon() == before
    backup = theatre.temporary / "backup"
    assert shared_embedded.run("backup", str(backup)).returncode == 0
    assert STEPS[0].thought.encode() not in backup.read_bytes()


def test_an_agent_that_was_cut_off_in_an_edit_is_continued_as_the_documents_show(theatre: Theatre) -> None:
    theatre.env["COLUMNS"] = WIDTH
    said = theatre.play("cut-off", "--fast")
    assert comparable(said) == comparable(recorded("cut-off")), "HOLDFAST_WRITE_GOLDEN=1 writes docs/demo.md anew"
    (killed,) = re.findall(r"kill -9 (\d+)", said)
    assert re.findall(r"agent: process (\d+)", said)[0] == killed
    assert "Played: the agents." in said and "Real: " in said
    drawn = pictured(played_lines(recorded("cut-off")), "cut-off", DEMOS["cut-off"].pictured)
    assert drawn == PICTURE.read_text(), "HOLDFAST_WRITE_GOLDEN=1 draws it anew"
    assert list(theatre.temporary.iterdir()) == []
    assert list(theatre.user.iterdir()) == []
    assert theatre.processes() == []


def test_every_demo_is_listed_and_recorded(theatre: Theatre) -> None:
    if os.environ.get("HOLDFAST_WRITE_GOLDEN"):
        record(theatre)
    assert list(DEMOS) == list(NAMES)
    listed = theatre.play("--list")
    assert [line.split()[0] for line in listed.splitlines()] == list(NAMES)
    assert all(recorded(name) for name in NAMES)


def record(theatre: Theatre) -> None:
    """Write docs/demo.md and the picture anew."""
    theatre.env |= {"TMPDIR": "/tmp", "COLUMNS": WIDTH}
    for name in NAMES:
        said = theatre.play(name, "--fast").rstrip("\n")
        RECORDED.write_text(RECORDED.read_text().replace(recorded(name), said))
    PICTURE.write_text(pictured(played_lines(recorded("cut-off")), "cut-off", DEMOS["cut-off"].pictured))


# Everything is put away where the block of the stage ends, whatever ended it: so each signal is sent at one of the two
# moments, SIGINT on a terminal below. The whole of it sends both at both.
@pytest.mark.parametrize(
    ("name", "number", "moment"),
    [
        pytest.param("killed", signal.SIGTERM, "thought 1", id="SIGTERM-at-work"),
        pytest.param("killed", signal.SIGINT, "thought 1", id="SIGINT-at-work", marks=pytest.mark.long),
        pytest.param("killed", signal.SIGTERM, "Real processes", id="SIGTERM-at-its-start", marks=pytest.mark.long),
        pytest.param("killed", signal.SIGINT, "Real processes", id="SIGINT-at-its-start", marks=pytest.mark.long),
        pytest.param("cut-off", signal.SIGINT, "reads charge.py", id="SIGINT-at-work-on-files", marks=pytest.mark.long),
    ],
)
def test_ended_early_it_puts_everything_away(theatre: Theatre, name: str, number: signal.Signals, moment: str) -> None:
    demo = theatre.start(name)
    assert demo.stdout is not None
    assert any(moment in line for line in demo.stdout)
    assert len(list(theatre.temporary.iterdir())) == 1
    expected = 1 if name == "killed" else 0  # in the other demo there is no daemon yet
    wait_until(lambda: len(theatre.processes()) > expected, "an agent is there, and the daemon that it starts")
    demo.send_signal(number)
    rest = demo.communicate(timeout=PATIENCE * 2)[0]
    assert demo.returncode == 128 + number
    assert "Traceback" not in rest
    assert theatre.processes() == []
    assert list(theatre.temporary.iterdir()) == []


def test_a_terminal_gets_colour_and_ctrl_c_at_its_start_puts_everything_away(theatre: Theatre) -> None:
    with OnTerminal(theatre, columns=64) as demo:
        assert "\x1b[1m1. An agent works in a project\x1b[0m" in demo.said_until("1. An agent works")
        wait_until(lambda: len(theatre.processes()) > 1, "an agent is there, and the daemon that it starts")
        demo.process.send_signal(signal.SIGINT)
        assert "Traceback" not in demo.rest()
        assert demo.process.wait(PATIENCE) == 128 + signal.SIGINT
    assert theatre.processes() == []
    assert list(theatre.temporary.iterdir()) == []


def test_a_terminal_gets_its_width_no_colour_where_none_is_wanted_and_what_is_to_be_kept(theatre: Theatre) -> None:
    theatre.env["NO_COLOR"] = "1"
    with OnTerminal(theatre, "--keep", columns=64) as demo:
        said = demo.rest()
        assert demo.process.wait(PATIENCE) == 0
    assert "\x1b" not in said and "Traceback" not in said
    shown = said.splitlines()
    assert any("\u251c\u2500 1  " in line for line in shown)
    copied = ("For your own agent", "Kept: ")  # not broken into lines
    told = [line for line in shown if line.startswith("   ") and not any(words in line for words in copied)]
    assert max(map(len, told)) <= 64
    (kept,) = re.findall(r"Kept: (\S+)", said)
    assert (Path(kept) / "holdfast.db").exists() and Path(kept).is_relative_to(theatre.temporary)
    installation = Installation(Path(kept))
    try:
        assert "Nothing was lost or changed" in installation.run("verify").stdout
    finally:
        installation.close()


class OnTerminal:
    """A demo on a terminal of this width."""

    def __init__(self, theatre: Theatre, *arguments: str, columns: int) -> None:
        theatre.env.pop("COLUMNS", None)
        self._terminal, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (40, columns))
        command = [str(HOLDFAST), "demo", "--fast", *arguments]
        self.process = subprocess.Popen(command, env=theatre.env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self._said = b""

    def said_until(self, words: str) -> str:
        """What it says up to the line with these words."""
        while words.encode() not in self._said or not self._said.endswith(b"\n"):
            assert self._read(), self._said
        return self._said.decode().replace("\r\n", "\n")

    def rest(self) -> str:
        """All that it has said when it is over."""
        while self._read():
            pass
        return self._said.decode().replace("\r\n", "\n")

    def _read(self) -> bool:
        with contextlib.suppress(OSError):  # Linux tells so that nobody is at the other end any more
            chunk = os.read(self._terminal, 1 << 16)
            self._said += chunk
            return bool(chunk)
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._terminal)
        self.process.wait(PATIENCE)


def test_ctrl_c_while_an_agent_is_being_started_leaves_no_relay(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[StdioClient] = []

    class InterruptedClient(StdioClient):
        """A client whose user gives up right after its process began."""

        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            started.append(self)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(stage, "StdioClient", InterruptedClient)
    with pytest.raises(KeyboardInterrupt), stage.Stage(ask_daemon, os.environ) as demo:
        demo.agent()
    assert [client.process.poll() is not None for client in started] == [True]
    assert not demo.folder.exists()
