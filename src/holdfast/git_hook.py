"""A git pre-commit hook that asks Holdfast: it holds for every commit, also where an agent's own hooks did not run."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from pathlib import Path

from holdfast.errors import Conflict
from holdfast.git_place import git_answer, git_directory

MARK = "# Holdfast: the session's gates before a commit. `holdfast protocol init --remove` takes it out."


def script() -> str:
    """The hook. Only an unmet gate (status 1) stops a commit; where Holdfast is gone or cannot tell, git goes on."""
    program = shlex.quote(str(Path(sys.executable).with_name("holdfast")))
    return f"#!/bin/sh\n{MARK}\n[ ! -x {program} ] || {program} protocol validate --pre-commit || [ $? -ne 1 ]\n"


def install(project: Path) -> Path:
    """Put the hook in its place, and say where. Raises Conflict, with how to chain it, where there is another."""
    path = hook_path(project)
    if path.exists() or path.is_symlink():
        if _is_ours(path):
            _replace(path)
            return path
        raise Conflict(f"{path} is there already and was left as it is.", recovery=f"Add this line to it: {_line()}")
    path.parent.mkdir(exist_ok=True)
    _replace(path)
    return path


def remove(project: Path) -> bool:
    """Take the hook out, if it is ours; also one that git no longer looks at."""
    path = _own_path(project)
    if not _is_ours(path):
        return False
    path.unlink()
    return True


def hook_path(project: Path) -> Path:
    """Where git looks for the hook. Hooks that a project keeps among its own files are the project's to change."""
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


def _replace(path: Path) -> None:
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755), "w") as file:
            file.write(script())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
