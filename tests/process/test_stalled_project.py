"""A project on a file system that stopped answering keeps nobody but itself waiting, and nobody for long."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.installation import Installation, wait_until
from tests.process.agent import Agent
from tests.process.hooks import left_behind, starts
from tests.repository import Repository

MANY = 40
"""More calls than a pool of threads has threads, on any machine that runs this."""


@pytest.fixture
def stalling(embedded: Installation, tmp_path: Path) -> Installation:
    """A daemon that runs on such a file system; `tmp_path / "flag"` stops it."""
    library, compiler = tmp_path / "stalled.so", shutil.which("cc") or shutil.which("gcc")
    assert compiler is not None, "this test needs a C compiler"
    source = Path(__file__).with_name("stalled.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    embedded.settings |= {"LD_PRELOAD": str(library), "STALLED": str(tmp_path / "flag")}
    embedded.serve()
    del embedded.settings["LD_PRELOAD"]  # the clients' own system calls are none of this
    return embedded


def test_a_stalled_project_keeps_no_other_waiting_and_is_told_why(stalling: Installation, tmp_path: Path) -> None:
    stalled = Repository(tmp_path / "stalled")
    flag, folder = tmp_path / "flag", tmp_path / "transcripts"
    with Agent(stalling, stalled.path) as stuck, Agent(stalling, Repository(tmp_path / "other").path) as other:
        flag.touch()
        asked = [stuck.ask("tools/call", _thought(number)) for number in range(MANY)]
        for number in range(1, 4):
            assert other.think(f"Thought {number} while it stalls")["thoughtNumber"] == number
        for one in asked:
            (content,) = stuck.answer(one)["result"]["content"]
            assert content["text"].startswith("E_PROJECT_TOO_SLOW: The project's files"), content
        starts(stalling, stalled.path, left_behind(folder, stalled.path))  # may give up before it is told
        assert "still being read" in starts(stalling, stalled.path, left_behind(folder, stalled.path))["message"]
        told = starts(stalling, tmp_path / "other", left_behind(folder, tmp_path / "other"))
        assert "still being read" not in told["message"], "its threads are its own"
        flag.unlink()
        wait_until(lambda: not stuck.request("tools/call", _thought(MANY)).get("isError"), "it answers again")


def test_a_daemon_ends_while_a_project_stalls(stalling: Installation, tmp_path: Path) -> None:
    stalled = Repository(tmp_path / "stalled")
    with Agent(stalling, stalled.path) as stuck:
        (tmp_path / "flag").touch()
        stuck.answer(stuck.ask("tools/call", _thought(0)))
        assert stalling.run("stop").returncode == 0
        assert stalling.daemon() is None


def _thought(number: int) -> dict[str, object]:
    return {"name": "thought", "arguments": {"thought": f"Stalled {number}", "nextThoughtNeeded": True}}
