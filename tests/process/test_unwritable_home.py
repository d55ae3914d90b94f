"""A data directory that cannot be written is named with the reason and the next step, never with a traceback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.installation import HOLDFAST, PATIENCE, Installation
from tests.process.agent import Agent

COMMANDS = [
    ["serve"],
    ["backup", "{elsewhere}/new.backup"],
    ["restore", "{elsewhere}/old.backup"],
    ["forget", "/nowhere", "--yes"],
    ["pause", "/nowhere"],
    ["key", "create", "phone"],
    [],
    ["show"],
    ["resume"],
    ["inbox"],
    ["import", "claude", "--all"],
    ["saved"],
    ["handoff", "."],
    ["send", "homelab", "hello"],
    ["queue"],
    ["teams", "add", "homelab", "--project", "."],
    ["protocol", "show"],
    ["approve", "nobody"],
]

READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
"""A shell's own file systems, in which the directory $0 is read-only for the command that follows."""

WITHOUT_PRIVILEGE = """
import ctypes, os, sys
if os.geteuid() == 0 and ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) != 0:  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
    sys.exit("cannot become a root that obeys permissions")
os.execv(sys.argv[1], sys.argv[1:])
"""


def _mounted_read_only(home: Path) -> list[str]:
    prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c", READ_ONLY, str(home)]
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True, timeout=PATIENCE)
    if tried.returncode != 0:
        pytest.skip(
            f"no file system can be mounted here ({tried.stderr.strip()}): the same commands run without permission,"
            " and tests/unit/test_file_errors.py has the words for a read-only file system"
        )
    return prefix


def _without_permission(home: Path) -> list[str]:
    for path in sorted(home.iterdir()):
        path.chmod(0o400)
    home.chmod(0o500)
    return [sys.executable, "-c", WITHOUT_PRIVILEGE]


def _run(prefix: Sequence[str], holdfast: Installation, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, str(HOLDFAST), *command],
        env={**holdfast.environment(), "HOLDFAST_DAEMON_WAIT": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=holdfast.home.parent,
    )


@pytest.mark.parametrize(
    ("prepare", "reason", "repair"),
    [
        (_mounted_read_only, "its file system is mounted read-only", "Mount it for writing"),
        (_without_permission, "permission denied", "ls -ld"),
    ],
    ids=["read-only", "no permission"],
)
def test_every_command_says_in_one_line_why_nothing_can_be_written(
    embedded: Installation,
    project: Path,
    tmp_path: Path,
    prepare: Callable[[Path], list[str]],
    reason: str,
    repair: str,
) -> None:
    with Agent(embedded, project) as agent:
        agent.think("what is to be kept")
        assert embedded.run("backup", str(tmp_path / "old.backup")).returncode == 0
    assert embedded.run("stop").returncode == 0
    (embedded.home / "stopped").unlink()
    kept = {path.name: path.read_bytes() for path in embedded.home.iterdir() if path.is_file()}
    prefix = prepare(embedded.home)
    try:
        for words in COMMANDS:
            told = _run(prefix, embedded, *(word.format(elsewhere=tmp_path) for word in words))
            (line,) = told.stderr.splitlines() or ["nothing"]
            assert (told.returncode, line.startswith(f"holdfast: {embedded.home}/")) == (1, True), (words, told)
            assert reason in line and repair in line, (words, line)
        verified = _run(prefix, embedded, "verify")  # which looks at a copy, wherever that can be written
        assert (verified.returncode, verified.stderr) == (0, ""), verified
        stopped = _run(prefix, embedded, "stop")
        assert stopped.returncode == 1 and "No daemon was running" in stopped.stdout
        assert f"{embedded.home}/stopped" in stopped.stderr and reason in stopped.stderr
        examined = _run(prefix, embedded, "doctor")
        assert examined.returncode == 1
        assert f"{embedded.home} cannot be written: {reason}" in examined.stdout
        for wrong in ("full", "Traceback", "bug of Holdfast"):
            assert wrong not in examined.stdout + examined.stderr
    finally:
        embedded.home.chmod(0o700)
        for path in embedded.home.iterdir():
            path.chmod(0o600)
    assert kept == {path.name: path.read_bytes() for path in embedded.home.iterdir() if path.is_file()}


def test_an_agent_is_told_that_the_disk_is_read_only(embedded: Installation, project: Path) -> None:
    embedded.home.mkdir(mode=0o700)
    prefix = _mounted_read_only(embedded.home)
    env = {"HOLDFAST_DAEMON_WAIT": "0.5"}
    with Agent(embedded, project, command=[*prefix, str(HOLDFAST), "mcp"], env=env) as agent:
        refused = agent.answer(agent.ask("tools/call", {"name": "init", "arguments": {"operation": "get_state"}}))
        assert f"Read-only file system: {embedded.home}/" in refused["error"]["message"]


DISK_BECOMES_READ_ONLY = """
"$1" serve >/dev/null & daemon=$!
until "$1" status --json | grep -q '"ready": true'; do :; done
mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" || exit 90
"$1" backup "$0/new.backup"; echo "backup $?"
"$1" stop; echo "stop $?"
wait $daemon; echo "daemon $?"
"""


def test_stop_ends_a_daemon_whose_disk_became_read_only(embedded: Installation) -> None:
    embedded.home.mkdir(mode=0o700)
    prefix = _mounted_read_only(embedded.home)
    within = [*prefix[: prefix.index("-c") + 1], DISK_BECOMES_READ_ONLY, str(embedded.home), str(HOLDFAST)]
    done = subprocess.run(
        within, env=embedded.environment(), capture_output=True, text=True, timeout=2 * PATIENCE, check=False
    )
    told = done.stdout.splitlines()
    assert told == ["backup 1", "Stopped.", "stop 1", "daemon 0"], (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    failed, unmarked = [line for line in done.stderr.splitlines() if line.startswith("holdfast: ")]
    assert "new.backup" in failed and "read-only" in failed
    assert f"{embedded.home}/stopped" in unmarked and "mounted read-only" in unmarked
