"""A real Serena for tests, in an environment of its own: it pins libraries that Holdfast uses in other versions.

It is made while other tests run: most of its time is spent waiting for a package index.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "2.1.0"
INSTALL_SECONDS = 240


def serena_program() -> Path:
    """The `serena` of an environment that is made on first use and kept; a failure to make it fails the test."""
    place = _place()
    program, complete = place / "bin" / "serena", place / "complete"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes that start at once make it once
        if not complete.exists():
            shutil.rmtree(place, ignore_errors=True)
            _install(place)
            complete.touch()
    assert program.exists(), f"serena-agent {VERSION} has no program `serena` in {place}"
    return program


def make_ahead() -> None:
    """Begin to make it, if it is not there, beside whatever this process does; who needs it then waits for the rest.

    What goes wrong here goes wrong again for who needs it, and is told there.
    """
    if not (_place() / "complete").exists():
        # Not a child of this process: tests look at its children and would take it for one of theirs.
        command = [sys.executable, "-m", "tests.agents.serena_environment"]
        subprocess.run(
            ["sh", "-c", '"$@" >/dev/null 2>&1 &', "sh", *command],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            check=True,
        )


def _place() -> Path:
    cache = os.environ.get("HOLDFAST_TEST_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Path(cache) / "holdfast-tests" / f"serena-{VERSION}-python-{python}"


def _install(place: Path) -> None:
    wanted = f"serena-agent=={VERSION}"
    uv = shutil.which("uv")
    if uv:
        _run(uv, "venv", "--python", sys.executable, str(place))
        _run(uv, "pip", "install", "--python", str(place / "bin" / "python"), wanted)
    else:
        # The pip of this environment installs into that one, so that it needs none of its own.
        _run(sys.executable, "-m", "venv", "--without-pip", str(place))
        python = str(place / "bin" / "python")
        _run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wanted)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    assert done.returncode == 0, f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


if __name__ == "__main__":
    serena_program()
