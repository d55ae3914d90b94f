"""The log of a daemon that nobody watches: it does not grow for ever, also while the daemon runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.installation import PATIENCE, Installation, wait_until

from holdfast.daemon.log import OLDER_KEPT
from holdfast.relay.spawn import start_daemon

LIMIT = 4096

WRITES = """
import logging, os, sys
from pathlib import Path
from holdfast.daemon.log import DaemonLog

log = DaemonLog(Path(sys.argv[1]), limit=int(sys.argv[2]))
logging.basicConfig(level=logging.INFO, handlers=[log])
for number in range(1000):
    logging.info("line %d", number)
os.write(2, b"not by logging\\n")
"""


def test_a_log_is_begun_anew_while_the_daemon_writes_to_it(tmp_path: Path) -> None:
    log = tmp_path / "daemon.log"
    with log.open("ab") as stderr:
        log.chmod(0o600)
        subprocess.run(
            [sys.executable, "-c", WRITES, str(log), str(LIMIT)], stderr=stderr, check=True, timeout=2 * PATIENCE
        )
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["daemon.log", *(f"daemon.log.{n + 1}" for n in range(OLDER_KEPT))]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert all(file.stat().st_size < LIMIT + 200 for file in files)
    lines = [line for file in (*reversed(files[1:]), files[0]) for line in file.read_text().splitlines()]
    assert lines[-1] == "not by logging"
    numbers = [int(line.split()[-1]) for line in lines[:-1]]
    assert numbers == list(range(numbers[0], 1000)), "no line is lost between the files that are kept"


def test_a_detached_daemon_does_not_go_on_in_the_long_log_that_it_finds(embedded: Installation) -> None:
    embedded.home.mkdir(mode=0o700)
    log = embedded.home / "daemon.log"
    with log.open("wb") as file:
        file.truncate(6 * 1024 * 1024)
    log.chmod(0o600)
    environment = dict(os.environ)
    os.environ.update(embedded.environment())
    try:
        assert start_daemon(str(embedded.home), port=0)
    finally:
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
    wait_until(lambda: embedded.daemon() is not None, "the daemon serves")
    assert embedded.run("stop").returncode == 0
    wait_until(lambda: "stopped, because" in log.read_text(), "the daemon wrote to the new log")
    assert log.stat().st_mode & 0o777 == 0o600
    assert (embedded.home / "daemon.log.1").stat().st_size == 6 * 1024 * 1024
