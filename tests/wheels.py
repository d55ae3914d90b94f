"""Holdfast as its users install it: wheels and source archives, built once, and the programs that install them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ("src", "docs", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml")
"""What a build needs of the repository."""
UV, PIPX = (str(Path(sys.executable).with_name(name)) for name in ("uv", "pipx"))
LIMIT = 600.0


def run(*words: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """One command to its end; what it printed."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=os.environ | (env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def build(source: Path, to: Path, *kinds: str) -> Path:
    """Build from a directory or a source archive; returns the file that was asked for last."""
    run(UV, "build", "--quiet", "--out-dir", to, *(f"--{kind}" for kind in kinds or ("wheel",)), source)
    return sorted(to.glob("*.tar.gz" if kinds[-1:] == ("sdist",) else "*.whl"))[-1]


def copy_of_source(to: Path, version: str | None = None) -> Path:
    """A copy of what a build needs, with another version."""
    to.mkdir(parents=True)
    for name in PARTS:
        part = ROOT / name
        if part.is_dir():
            shutil.copytree(part, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(part, to / name)
    if version is not None:
        path = to / "src" / "holdfast" / "version.py"
        text, found = re.subn(r'__version__ = "[^"]+"', f'__version__ = "{version}"', path.read_text())
        assert found == 1
        path.write_text(text)
    return to


def content_of(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def shared_caches() -> dict[str, str]:
    """Where uv and pip keep what they have downloaded, for somebody with a home directory of their own."""
    pip = run(sys.executable, "-m", "pip", "cache", "dir").strip()
    return {"UV_CACHE_DIR": run(UV, "cache", "dir").strip(), "PIP_CACHE_DIR": pip}
