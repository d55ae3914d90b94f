"""Numbers of processes come from outside: any of them has an answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from holdfast.process.alive import exists, is_running


def test_this_process_is_there() -> None:
    assert (exists(os.getpid()), is_running(os.getpid())) == (True, True)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it")
def test_a_killed_process_that_nobody_waited_for_is_gone() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        assert is_running(process.pid)
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        os.kill(process.pid, 0)  # its number is still taken
        assert (exists(process.pid), is_running(process.pid)) == (False, False)


@pytest.mark.parametrize("pid", [2**22 + 1, 2**31, 10**19])
def test_a_number_that_no_system_gives_is_nobodys(pid: int) -> None:
    assert (exists(pid), is_running(pid)) == (False, False)
