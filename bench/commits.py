"""Commits: what git's own hook costs while a session is blocked, and that it costs nothing where none is."""

from __future__ import annotations

import statistics
import subprocess
import time
from pathlib import Path

from bench.report import Effort, Progress, Row, compare, milliseconds
from bench.served import neutral_environment
from bench.workshop import scratch
from holdfast.git import gate

ROUNDS_PER_START = 5
ADDED_TARGET_MS = 10.0
AS_BEFORE = 1.05
IDENTITY = (
    "-c",
    "user.name=Bench",
    "-c",
    "user.email=bench@example.org",
    "-c",
    "gc.auto=0",
    "-c",
    "commit.gpgSign=false",
)


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """Commits in a repository that Holdfast never touched, was opened again, and is blocked, in turn."""
    rounds = effort.starts * ROUNDS_PER_START
    times: dict[str, list[float]] = {"untouched": [], "open": [], "other worktree": [], "refused": []}
    with scratch() as place:
        home, untouched, project, worktree = (place / name for name in ("home", "untouched", "project", "worktree"))
        home.mkdir()
        for repository in (untouched, project):
            subprocess.run(["git", "init", "-q", str(repository)], check=True)
            _commit(repository)
        subprocess.run(["git", "-C", str(project), "worktree", "add", "-q", str(worktree)], check=True)
        for done in range(rounds + 1):  # the first round reads the programs from the disk
            taken = times if done else {name: [] for name in times}
            taken["untouched"].append(_commit(untouched))
            gate.close(project, home, "Too early.", time.time())
            taken["other worktree"].append(_commit(worktree))
            taken["refused"].append(_commit(project, refused=True))
            gate.open_again(project, home)
            taken["open"].append(_commit(project))
            progress("commits", done, rounds)
    what = f"median of {rounds}"
    plain = times["untouched"]
    return [
        compare(
            f"commit where nothing is blocked, {what}", times["open"], plain, theirs_is="untouched", target=AS_BEFORE
        ),
        _added(f"commit beside a blocked worktree, {what}: what the hook adds", times["other worktree"], plain),
        _added(f"commit that is refused, {what}: what the hook adds", times["refused"], plain),
    ]


def _added(what: str, ours: list[float], plain: list[float]) -> Row:
    """The median of the differences, each of one round."""
    added = statistics.median(1000 * (one - other) for one, other in zip(ours, plain, strict=True))
    return Row(
        what,
        milliseconds(statistics.median(ours)),
        f"{milliseconds(statistics.median(plain))} (no hook)",
        added,
        ADDED_TARGET_MS,
        "ms",
        {"holdfast": ours, "without": plain},
    )


def _commit(repository: Path, *, refused: bool = False) -> float:
    command = ["git", *IDENTITY, "commit", "-q", "--allow-empty", "-m", repository.name]
    began = time.perf_counter()
    done = subprocess.run(command, cwd=repository, env=neutral_environment(), capture_output=True)
    taken = time.perf_counter() - began
    if (done.returncode != 0) != refused:
        raise RuntimeError(done.stderr.decode(errors="replace") or "the commit was not refused")
    return taken
