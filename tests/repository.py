"""Throw-away git repositories for tests."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "A Tester",
    "GIT_AUTHOR_EMAIL": "tester@example.org",
    "GIT_COMMITTER_NAME": "A Tester",
    "GIT_COMMITTER_EMAIL": "tester@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}

AGENTS_FILES = {
    "README.md": "# A project\n",
    ".agents/HANDOFF.md": "# Handoff\n\nNothing is open.\n",
    ".agents/governance/PROJECT-CONSTRAINTS.md": "# Constraints\n\nNone.\n",
    ".claude/skills/github/scripts/list.sh": "echo listed\n",
    ".serena/memories/skill-usage-mandatory.md": "# Use the skills\n",
}


class Repository:
    """A git repository with something in it."""

    def __init__(self, path: Path, files: dict[str, str] | None = None) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")
        for name, text in (files or {"README.md": "# A project\n"}).items():
            self.write(name, text)
        self.commit("first")

    def git(self, *arguments: str) -> str:
        """Run git here; its output."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env={**os.environ, **ENVIRONMENT}, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def write(self, name: str, text: str) -> Path:
        """Write a file."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def commit(self, message: str = "work", *, empty: bool = False) -> str:
        """Commit everything; the commit's id."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message, *(["--allow-empty"] if empty else []))
        return self.head()

    def head(self) -> str:
        """The id of HEAD."""
        return self.git("rev-parse", "HEAD")

    def sha256(self, name: str) -> str:
        """The hash of a file's content."""
        return hashlib.sha256((self.path / name).read_bytes()).hexdigest()

    def worktree(self, path: Path, branch: str) -> Path:
        """A linked worktree on a branch of its own."""
        self.git("worktree", "add", "-q", "-b", branch, str(path))
        return path
