"""The guard ends everything an agent started, whoever dies first, and holds its session until then."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from tests.agents.agent_world import WAIT, eventually, gone

from holdfast.process.guard import guarded, launcher
from holdfast.process.guard_process import LOCKED_OUT, hold_lock, release_lock

STUBBORN = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
print("ready", flush=True)
while True:
    signal.pause()
"""
UNTIL_EOF = "import sys; print('ready', flush=True); sys.stdin.read()"

REPORTING = """\
import json, os, sys
print(json.dumps([*sys.argv[1:], os.environ.get("CLAUDE_CODE_SESSION_ID"), os.environ.get("HOLDFAST_SESSION_LOCK")]))
sys.exit(7)
"""

Guarded = subprocess.Popen[str]


@contextmanager
def guard(lock: Path, program: str) -> Iterator[tuple[Guarded, list[psutil.Process]]]:
    """A guarded Python program that is ready, and all processes that came with it."""
    command = guarded([sys.executable, "-c", program])
    environment = {**os.environ, "HOLDFAST_SESSION_LOCK": str(lock)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process, psutil.Process(process.pid).children(recursive=True)
        finally:
            process.kill()


def test_an_agent_that_will_not_end_is_ended_with_what_it_started(tmp_path: Path) -> None:
    # Side by side, because each takes as long as an agent is given to end by itself.
    with ExitStack() as guards:
        asked, hung_up_on, unheard = (
            guards.enter_context(guard(tmp_path / name, STUBBORN)) for name in ("asked", "hung up on", "unheard")
        )
        for _, members in (asked, hung_up_on, unheard):
            assert len(members) == 3, "the guard under its keeper, the agent, what that started"
        asked[0].send_signal(signal.SIGTERM)
        hung_up_on[0].send_signal(signal.SIGHUP)
        assert unheard[0].stdin is not None
        unheard[0].stdin.close()
        for process, members in (asked, hung_up_on):
            assert process.wait(WAIT) == 0
            assert gone(members)
        unheard[0].wait(WAIT)
        assert gone(unheard[1])


def test_what_an_agent_left_behind_ends_with_it(tmp_path: Path) -> None:
    with guard(tmp_path / "lock", STUBBORN) as (process, members):
        members[1].kill()
        assert process.wait(WAIT) == 128 + signal.SIGKILL
        assert gone(members)


@pytest.mark.parametrize("killed", ["the guard", "its keeper", "both"])
def test_an_agent_that_will_not_end_does_not_outlive_a_guard_that_was_killed(tmp_path: Path, killed: str) -> None:
    """Nor does what the agent started, in whatever session of its own, unless both are killed at once."""
    lock = tmp_path / "lock"
    with guard(lock, STUBBORN) as (keeper, members):
        inner, agent, started = members
        if killed != "the guard":
            keeper.kill()
        if killed != "its keeper":
            inner.kill()
        keeper.wait(WAIT)
        expected = members if killed != "both" else [inner, agent]
        try:
            assert eventually(lambda: gone(expected))
            held = hold_lock(lock, WAIT)
            assert held is not None, "the session is free again"
            release_lock(lock, held)
        finally:
            with suppress(psutil.NoSuchProcess):
                started.kill()


def test_a_guard_that_nobody_listens_to_goes_on_until_its_parent_is_gone(tmp_path: Path) -> None:
    unheard, stderr = os.pipe()
    os.close(unheard)
    command = guarded([sys.executable, "-c", UNTIL_EOF])
    environment = {**os.environ, "HOLDFAST_SESSION_LOCK": str(tmp_path / "lock")}
    done = subprocess.run(
        command, input="", stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment, timeout=WAIT, check=False
    )
    os.close(stderr)
    assert (done.stdout, done.returncode) == ("ready\n", 0)


def test_a_session_is_held_for_as_long_as_its_agent_lives(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with guard(lock, UNTIL_EOF) as (process, _):
        assert hold_lock(lock, 0.0) is None
        second = subprocess.run(
            guarded([sys.executable, "-c", "print('must not run')"]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, "HOLDFAST_SESSION_LOCK": str(lock)},
            timeout=WAIT,
            check=False,
        )
        assert (second.returncode, second.stdout) == (LOCKED_OUT, "")
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(WAIT) == 0
    assert not lock.exists()
    held = hold_lock(lock, 0.0)
    assert held is not None
    release_lock(lock, held)


def test_the_launcher_takes_any_path_and_passes_every_argument(tmp_path: Path) -> None:
    program = tmp_path / "it's a $program"
    program.write_text(f"#!{sys.executable}\n{REPORTING}")
    program.chmod(0o755)
    path = launcher(tmp_path / "guard folder", str(program))
    assert path == launcher(tmp_path / "guard folder", str(program))
    arguments = ["--a b", "$HOME", "", "ü"]
    environment = {**os.environ, "HOLDFAST_SESSION_LOCK": str(tmp_path / "lock"), "CLAUDE_CODE_SESSION_ID": "above"}
    done = subprocess.run(
        [str(path), *arguments], stdin=subprocess.PIPE, capture_output=True, env=environment, timeout=WAIT, check=False
    )
    assert (json.loads(done.stdout), done.returncode) == ([*arguments, None, None], 7)


def test_a_program_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        guarded([str(tmp_path / "missing")]),
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        env={**os.environ, "HOLDFAST_SESSION_LOCK": str(tmp_path / "lock")},
        timeout=WAIT,
        check=False,
    )
    assert done.returncode == 127
    assert str(tmp_path / "missing") in done.stderr
