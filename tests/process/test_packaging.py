"""What users install: built from the repository or its source archive, in each way, and extended by the named line."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.wheels import PIPX, ROOT, UV, build, content_of, copy_of_source, run, shared_caches

LINE = "from holdfast.setup.extras import install_line; print(install_line('telegram'))"
HAS_EXTRA = "import telegram"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with what a build needs."""
    place = copy_of_source(tmp_path_factory.mktemp("source") / "holdfast")
    run("git", "init", "--quiet", "-b", "main", cwd=place)
    _commit(place)
    return place


@pytest.fixture(scope="module")
def wheel(source: Path) -> Path:
    return build(source, source.parent / "wheel", "wheel")


@pytest.fixture(scope="module")
def archive(source: Path) -> Path:
    return build(source, source.parent / "archive", "sdist")


def test_the_source_archive_holds_what_its_build_needs_and_builds_the_same_wheel(
    wheel: Path, archive: Path, tmp_path: Path
) -> None:
    assert content_of(build(archive, tmp_path, "wheel")) == content_of(wheel)
    with tarfile.open(archive) as files:
        tops = {name.split("/")[1] for name in files.getnames()}
    assert tops == {"src", "docs", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "PKG-INFO"}


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    package = ROOT / "src" / "holdfast"
    files = {f"holdfast/{path.relative_to(package)}" for path in package.rglob("*") if path.is_file()}
    named = {name for name in content_of(wheel) if name.startswith("holdfast/")}
    assert named == {name for name in files if "__pycache__" not in name}


Install = Callable[[Path, Path, Path], list[str]]

WAYS: dict[str, Install] = {
    "uv-tool-wheel": lambda wheel, _archive, _source: [UV, "tool", "install", str(wheel)],
    "pipx-git": lambda _wheel, _archive, source: [PIPX, "install", f"git+file://{source}"],
    "uv-pip-archive": lambda _wheel, archive, _source: [UV, "pip", "install", "--python", "venv", str(archive)],
}
"""Each with another form of the package; `make install` and its pip are in `agents/test_newcomer.py`."""


@pytest.mark.early
@pytest.mark.parametrize("way", WAYS)
def test_the_line_that_is_named_for_a_missing_part_adds_it_to_each_kind_of_installation(
    way: str, wheel: Path, archive: Path, source: Path, tmp_path: Path
) -> None:
    path = f"{tmp_path}/.local/bin:{Path(UV).parent}:{os.environ['PATH']}"
    env = {"HOME": str(tmp_path), "PATH": path, "PIPX_DEFAULT_PYTHON": sys.executable, **shared_caches()}
    env |= {"UV_PYTHON": sys.executable, "XDG_DATA_HOME": str(tmp_path / ".local/share"), "VIRTUAL_ENV": ""}
    run(UV, "venv", "--quiet", "venv", cwd=tmp_path, env=env)
    run(*WAYS[way](wheel, archive, source), cwd=tmp_path, env=env)
    scripts = (*tmp_path.glob(".local/bin/holdfast"), *tmp_path.glob("venv/bin/holdfast"))
    (script,) = {path.resolve() for path in scripts}
    python = script.with_name("python")
    assert run(script, "--version", env=env).startswith("holdfast ")
    heavy = [name for name in ("claude_agent_sdk", "psycopg", "telegram") if (_site(python, env) / name).exists()]
    assert not heavy, "installed without being asked for"
    line = run(python, "-c", LINE, env=env).strip()
    run(*shlex.split(line), cwd=tmp_path, env=env)
    run(python, "-c", HAS_EXTRA, env=env)


@pytest.mark.early
@pytest.mark.parametrize("way", ["uv", "pipx", "pip,", "a clone"])
def test_the_documented_lines_install_upgrade_and_remove(way: str, tmp_path: Path) -> None:
    lines = _documented(way)
    source, next_one = (copy_of_source(tmp_path / name, name) for name in ("0.1.0", "0.2.0"))
    shutil.copy(ROOT / "Makefile", source)
    run("git", "init", "--quiet", "-b", "main", cwd=source)
    _commit(source)
    run("git", "clone", "--quiet", source, tmp_path / "clone")
    bin_path = f"{tmp_path}/venv/bin:{tmp_path}/.local/bin:{Path(UV).parent}:{os.environ['PATH']}"
    env = {"HOME": str(tmp_path), "PATH": bin_path, "PIPX_DEFAULT_PYTHON": sys.executable, **shared_caches()}
    env |= {"UV_PYTHON": sys.executable, "XDG_DATA_HOME": str(tmp_path / ".local/share"), "VIRTUAL_ENV": ""}
    env |= {"PIP_NO_INPUT": "1", "EXTRAS": "postgres"}
    if way == "pip,":
        run(sys.executable, "-m", "venv", "venv", cwd=tmp_path, env=env)
    for line, version in zip(lines, ("0.1.0", "0.2.0", None), strict=True):
        asked = line.replace("git+URL", f"git+file://{source}") + (" --yes" if line == "pip uninstall holdfast" else "")
        run("sh", "-c", asked, cwd=tmp_path / "clone", env=env)
        found = shutil.which("holdfast", path=f"{tmp_path}/venv/bin:{tmp_path}/.local/bin")
        assert (found and run(found, "--version", env=env).strip()) == (version and f"holdfast {version}"), line
        shutil.copy(next_one / "src/holdfast/version.py", source / "src/holdfast/version.py")
        _commit(source)


def _documented(way: str) -> list[str]:
    """What docs/setup.md says for a way to install: the lines that install, upgrade and remove."""
    rows = (ROOT / "docs/setup.md").read_text().split("## Installing")[1].splitlines()
    (row,) = (row for row in rows if row.removeprefix("| ").removeprefix("[").startswith(way) and "Install" not in row)
    return re.findall(r"`([^`]+)`", row)


def _commit(source: Path) -> None:
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    run("git", "add", ".", cwd=source)
    run("git", *identity, "commit", "--quiet", "--allow-empty", "-m", "All of it", cwd=source)


def _site(python: Path, env: dict[str, str]) -> Path:
    return Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", env=env).strip())
