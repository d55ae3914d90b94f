"""Numbers of processes come from outside: any of them has an answer."""

from __future__ import annotations

import os

import pytest

from holdfast.processes import exists, is_running


def test_this_process_is_there() -> None:
    assert (exists(os.getpid()), is_running(os.getpid())) == (True, True)


@pytest.mark.parametrize("pid", [2**22 + 1, 2**31, 10**19])
def test_a_number_that_no_system_gives_is_nobodys(pid: int) -> None:
    assert (exists(pid), is_running(pid)) == (False, False)
