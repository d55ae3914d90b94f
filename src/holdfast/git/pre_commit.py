"""Installs a git pre-commit hook that asks Holdfast: it covers commits for which an agent's own hooks did not run."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from holdfast.errors import Conflict
from holdfast.files import write_private
from holdfast.git.directory import git_answer, git_directory

MARK = "# Holdfast: the session's gates before a commit. `holdfast protocol init --remove` takes it out."


def script() -> str:
    """Return the hook script. Only an unmet gate (status 1) blocks a commit; without Holdfast the commit proceeds."""
    program = shlex.quote(str(Path(sys.executable).with_name("holdfast")))
    return f"#!/bin/sh\n{MARK}\n[ ! -x {program} ] || {program} protocol validate --pre-commit || [ $? -ne 1 ]\n"


def install(project: Path) -> Path:
    """Install the hook and return its path. Raises Conflict, saying how to chain it, if another hook exists."""
    path = hook_path(project)
    if path.exists() or path.is_symlink():
        if _is_ours(path):
            write_private(path, script(), mode=0o755)
            return path
        raise Conflict(f"{path} already exists and was left unchanged.", recovery=f"Add this line to it: {_line()}")
    path.parent.mkdir(exist_ok=True)
    write_private(path, script(), mode=0o755)
    return path


def remove(project: Path) -> bool:
    """Remove the hook if it is ours, even one in a path that git no longer uses."""
    path = _own_path(project)
    if not _is_ours(path):
        return False
    path.unlink()
    return True


def hook_path(project: Path) -> Path:
    """Return where git looks for the hook. Hooks among a project's own files are left to the project."""
    elsewhere = git_answer(project, "config", "--get", "core.hooksPath")
    if elsewhere:
        raise Conflict(
            f"This repository keeps its hooks in {elsewhere}.", recovery=f"Add this line to its pre-commit: {_line()}"
        )
    return _own_path(project)


def _own_path(project: Path) -> Path:
    return git_directory(project) / "hooks" / "pre-commit"


def _line() -> str:
    return script().splitlines()[-1]


def _is_ours(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and MARK in path.read_text(errors="replace").splitlines()
