"""Machine-local parts of a checkout: its git directory, and files kept out of git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.files import TooLarge, read_bounded
from holdfast.lazy_dataclass import dataclass

LIMIT_S = 20.0
MAX_LINK_BYTES = 64 * 1024
TAGGED_OFF_BRANCHES = ("--simplify-by-decoration", "--tags", "--not", "--branches", "--remotes")
"""For git rev-list: the tagged commits that are on no branch and no remote-tracking branch."""


class NoRepository(HoldfastError):
    """The directory is not in a git repository."""

    code = "E_NO_REPOSITORY"


@dataclass(frozen=True, slots=True)
class GitDirectories:
    """Where git keeps its files for a worktree: its own, and those that all worktrees of a repository share."""

    own: Path
    common: Path

    @property
    def hooks(self) -> Path:
        return self.common / "hooks"

    def all_worktrees(self) -> list[Path]:
        """Return the git directories of all worktrees."""
        try:
            return [self.common, *(self.common / "worktrees").iterdir()]
        except OSError:
            return [self.common]


def git_directories(worktree: Path) -> GitDirectories | None:
    """Return the git directories of a worktree's top directory, from git's files only; None without a repository."""
    dot_git = worktree / ".git"
    if dot_git.is_dir():
        own = Path(os.path.realpath(dot_git))
    else:
        link = _line(dot_git)
        if link is None or not link.startswith("gitdir:"):
            return None
        own = Path(os.path.realpath(worktree / link.removeprefix("gitdir:").strip()))
    link = _line(own / "commondir")
    common = own if link is None else Path(os.path.realpath(own / link))
    # A file that came with a project may name any directory.
    return GitDirectories(own, common) if (own / "HEAD").is_file() and (common / "objects").is_dir() else None


def _line(path: Path) -> str | None:
    try:
        return os.fsdecode(read_bounded(path, MAX_LINK_BYTES)).rstrip("\n")
    except (OSError, TooLarge, ValueError):
        return None


def git_answer(project: Path, *question: str) -> str | None:
    """Return the one-line answer of a git command that runs no project code; None if it has none."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603 - fixed questions
            ["git", "-C", str(project), *question],  # noqa: S607 - the user's own git
            env=environment,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return os.fsdecode(done.stdout).rstrip("\n") if done.returncode == 0 else None


def git_directory(project: Path) -> Path:
    """Return the directory that all worktrees of a repository share."""
    answer = git_answer(project, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if answer is None:
        raise NoRepository(f"{project} is not in a git repository.", recovery="Run `git init` there first.")
    return Path(answer)


def keep_out_of_git(project: Path, name: str) -> bool:
    """Exclude a machine-local file from git without changing shared files; returns False if it already is."""
    pattern = f"/{name}"
    exclude = git_directory(project) / "info" / "exclude"
    try:
        lines = exclude.read_text(errors="surrogateescape").splitlines()
    except FileNotFoundError:
        lines = []
    if pattern in lines:
        return False
    exclude.parent.mkdir(exist_ok=True)
    with exclude.open("a", errors="surrogateescape") as file:
        file.write(f"{pattern}\n")
    return True
