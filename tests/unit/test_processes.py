"""Numbers of processes come from outside: any of them has an answer."""

from __future__ import annotations

import os

import pytest

from holdfast.processes import exists, is_running


@pytest.mark.parametrize(("pid", "there"), [(os.getpid(), True), (2**22 + 1, False), (2**31, False), (10**19, False)])
def test_every_number_is_a_process_or_none(pid: int, there: bool) -> None:
    assert (exists(pid), is_running(pid)) == (there, there)
