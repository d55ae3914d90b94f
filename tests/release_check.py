"""`make release-check`: builds what would be released, and tries it as its users would, in empty environments.

Python 3.11 and the newest on this machine: those on the PATH, pyenv's and uv's are looked at.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.process.hooks import left_behind
from tests.wheels import ROOT, UV, build, content_of, run

OLDEST = (3, 11)
REQUEST = "Mend the fence, north side first."


def main() -> int:
    """Check a release; what fails raises."""
    with tempfile.TemporaryDirectory(prefix="holdfast-release-") as name:
        place = Path(name)
        wheel = _built(place)
        pythons = _pythons()
        if OLDEST not in pythons:
            sys.exit(f"No Python {_dotted(OLDEST)} was found: the oldest one that is promised must be tried.")
        newest = max(pythons)
        if newest == OLDEST:
            print(f"!!! ONLY PYTHON {_dotted(OLDEST)} IS ON THIS MACHINE: NO NEWER ONE WAS TRIED !!!")
        for version in sorted({OLDEST, newest}):
            _try(wheel, pythons[version], place / _dotted(version))
    print("The release is fit.")
    return 0


def _built(place: Path) -> Path:
    run(sys.executable, "-m", "build", "--outdir", place / "dist", ROOT)
    wheel, archive = next((place / "dist").glob("*.whl")), next((place / "dist").glob("*.tar.gz"))
    print(run(sys.executable, "-m", "twine", "check", "--strict", wheel, archive).strip())
    if content_of(build(ROOT, place / "tree", "wheel")) != content_of(wheel):
        sys.exit("The source archive builds another wheel than the repository.")
    print(f"Built {wheel.name} ({wheel.stat().st_size} bytes) and {archive.name} ({archive.stat().st_size} bytes).")
    return wheel


def _try(wheel: Path, python: Path, place: Path) -> None:
    """Install the wheel in an empty environment, play the demo and ask for one briefing."""
    run(python, "-m", "venv", place / "venv")
    program = place / "venv" / "bin" / "holdfast"
    run(program.with_name("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    home, project = place / "home", place / "home" / "fence"
    project.mkdir(parents=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "CLAUDE", "PYTHON"))}
    env |= {"HOME": str(home), "HOLDFAST_PORT": "0"}
    _run(program, "demo", "--fast", env=env)
    print(f"{_run(program, '--version', env=env).strip()} on {python}: the demo came back", end="", flush=True)
    key = re.sub(r"[^A-Za-z0-9]", "-", str(project))
    folder = home / ".claude" / "projects" / key
    folder.parent.mkdir(parents=True)
    cut_off = left_behind(folder, project, REQUEST)
    start = {"session_id": "new", "cwd": str(project), "transcript_path": str(cut_off.with_name("new.jsonl"))}
    payload = json.dumps(start | {"hook_event_name": "SessionStart", "source": "startup"})
    told = _run(program, "hook", "SessionStart", env=env, stdin=payload)
    _run(program, "stop", env=env)
    if REQUEST not in told:
        sys.exit(f"\nThe briefing does not tell of the work that was cut off: {told}")
    print(", and a new session is told of the work that was cut off.")


def _run(*words: str | Path, env: dict[str, str], stdin: str = "") -> str:
    done = subprocess.run([str(word) for word in words], env=env, input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{words} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def _pythons() -> dict[tuple[int, int], Path]:
    """The interpreters of this machine by version, from the oldest that Holdfast needs."""
    found: dict[tuple[int, int], Path] = {}
    for program in _candidates():
        shown = subprocess.run([program, "--version"], capture_output=True, text=True)
        version = re.match(r"Python (\d+)\.(\d+)\.\d+\s*$", shown.stdout)  # a final release
        if shown.returncode == 0 and version and (key := (int(version[1]), int(version[2]))) >= OLDEST:
            found.setdefault(key, program)
    return found


def _candidates() -> Iterator[Path]:
    yield Path(sys.base_prefix) / "bin" / "python3"
    for minor in range(OLDEST[1], OLDEST[1] + 20):
        if named := shutil.which(f"python3.{minor}"):
            yield Path(named)
    yield from Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv").glob("versions/*/bin/python3")
    listed = subprocess.run([UV, "python", "list", "--only-installed", "--output-format", "json"], capture_output=True)
    for one in json.loads(listed.stdout or "[]"):
        yield Path(one["path"])


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


if __name__ == "__main__":
    sys.exit(main())
