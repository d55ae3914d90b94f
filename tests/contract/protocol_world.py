"""A real git repository, a run in it, and the checks that look at both."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.contract.copies import copied

from holdfast.protocol.checks.gates import Checks
from holdfast.protocol.model import Check, CheckKind, Gate, Level
from holdfast.protocol.runs import Evidence, EvidenceKind, Run, Scene, SerenaAnswer, Source, Verdict

RUN_ID = "2026-01-02-session-03"
OTHER_RUN = "2026-01-02-session-02"
LONG_AGO = "2001-01-01T00:00:00Z"
STARTED_AT = 1_767_312_000_000
"""2026-01-02, in milliseconds."""

_PLAIN = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


@dataclass
class Repository:
    """A worktree that git made."""

    path: Path

    @classmethod
    def new(cls, path: Path) -> Repository:
        path.mkdir(parents=True)
        repository = cls(path)
        repository.git("init", "--quiet", "--initial-branch=main")
        return repository

    @classmethod
    def begun(cls, path: Path, *commits: tuple[str, str], date: str = "") -> tuple[Repository, str]:
        """One with these files, each with a commit of its own, and its head."""

        def make(folder: Path) -> str:
            repository = cls.new(folder)
            return [repository.commit(name, content, date=date) for name, content in commits][-1]

        return cls(path), copied(repr((commits, date)), make, path)

    def git(self, *arguments: str, date: str = "", check: bool = True) -> str:
        """Plain git, as a person would call it."""
        env = {**os.environ, **_PLAIN}
        if date:
            env |= {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        done = subprocess.run(["git", *arguments], cwd=self.path, env=env, capture_output=True, text=True, check=check)
        return done.stdout.strip()

    def write(self, path: str, content: str | bytes = "text\n") -> Path:
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def commit(self, path: str = "README.md", content: str = "text\n", *, date: str = "") -> str:
        """Write a file and commit everything."""
        self.write(path, content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", f"Change {path}", date=date)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD")


def run_from(starting_commit: str | None) -> Run:
    """A run that began at a commit."""
    return Run(
        row_id=1,
        id=RUN_ID,
        root="file:///project",
        project="project",
        protocol="agents",
        definition="{}",
        objective="Try it",
        branch="main",
        starting_commit=starting_commit,
        phase="INIT",
        held_from=None,
        held_by=None,
        status="active",
        started_at=STARTED_AT,
        touched_at=STARTED_AT,
    )


def seen(kind: str, subject: str, detail: str = "", *, source: str = Source.HOOK, gate: str | None = None) -> Evidence:
    """A piece of evidence."""
    return Evidence(gate, str(kind), subject, detail, str(source), STARTED_AT)


def read_by_hook(path: str, digest: str = "0" * 64) -> Evidence:
    """A hook saw a file being read."""
    return seen(EvidenceKind.FILE_READ, path, digest)


async def no_serena(worktree: Path, trusted: bool) -> SerenaAnswer:
    """There is no Serena."""
    return SerenaAnswer(configured=False, answers=False, detail="")


@dataclass(frozen=True)
class World:
    """A repository with a run in it."""

    repository: Repository
    start: str | None
    trusted: bool = False
    skip_qa: bool = False

    async def verify(
        self, *checks: Check, evidence: tuple[Evidence, ...] = (), serena: SerenaAnswer | None = None
    ) -> Verdict:
        """What a blocking gate with these checks says."""
        scene = Scene(self.repository.path, run_from(self.start), evidence, self.trusted, self.skip_qa)

        async def probe(worktree: Path, trusted: bool) -> SerenaAnswer:
            return serena or await no_serena(worktree, trusted)

        return await Checks(probe).verify(Gate("A_GATE", Level.MUST, True, checks, ()), scene)


def check(
    kind: CheckKind, *paths: str, names: tuple[str, ...] = (), argv: tuple[str, ...] = (), timeout_s: int = 300
) -> Check:
    """One check."""
    return Check(kind, paths, names, argv, timeout_s)
