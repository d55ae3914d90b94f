"""Where a session worked, how its files differ from those here, and what git says of them now.

Every agent that starts waits for it: it reads in threads, within limits, and executes nothing of a repository.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from holdfast.briefing.unfinished import GitNow
from holdfast.identity.project import Checkout, Root, checkout_of, path_of
from holdfast.lazy_dataclass import dataclass

GIT_SECONDS = 1.5
"""How long an agent that starts waits for git; what git does not say in time is not told."""
MAX_FILES = 400
COMPARED = 20
MAX_COMPARED_BYTES = 256 * 1024
"""Bytes of a file that is compared with the same one here; a larger one counts by its size."""


class Relation(StrEnum):
    """How a session's directory relates to the one here."""

    HERE = "here"
    SAME_CHECKOUT = "another directory of this checkout"
    WORKTREE = "another worktree of this repository"
    CLONE = "another clone of this project"
    GONE = "a directory that is gone"
    ANOTHER_MACHINE = "another machine"


@dataclass(frozen=True, slots=True)
class SessionDirectory:
    """Where a session worked."""

    directory: str | None
    relation: Relation
    here: str | None = None
    """The branch that is checked out here."""
    differing: tuple[str, ...] = ()
    """Its files that are different or missing here."""
    compared: int = 0

    @property
    def is_elsewhere(self) -> bool:
        """Whether its files are others than those here."""
        return self.relation not in (Relation.HERE, Relation.SAME_CHECKOUT)


HERE = SessionDirectory(None, Relation.HERE)


def session_directory(root: Root, directory: str | None, files: Sequence[str], same_machine: bool) -> SessionDirectory:
    """Return how a session's directory relates to a root, and which of the files that it modified differ there."""
    here = path_of(root.uri)
    if not same_machine:
        return SessionDirectory(directory, Relation.ANOTHER_MACHINE)
    if here is None or directory is None:
        return HERE
    ours = checkout_of(here)
    branch = ours.branch if ours is not None else None
    if os.path.realpath(directory) == str(here):
        return SessionDirectory(directory, Relation.HERE, branch)
    if not Path(directory).is_dir():
        return SessionDirectory(directory, Relation.GONE, branch)
    theirs = checkout_of(Path(os.path.realpath(directory)))
    if ours is not None and theirs is not None and ours.top == theirs.top:
        return SessionDirectory(directory, Relation.SAME_CHECKOUT, branch)
    if ours is None or theirs is None:
        return SessionDirectory(directory, Relation.CLONE, branch)
    relation = Relation.WORKTREE if ours.common == theirs.common else Relation.CLONE
    differing, compared = _differing(ours, theirs, files)
    return SessionDirectory(directory, relation, ours.branch, differing, compared)


async def git_now(files: Mapping[str, Sequence[str]], since_ms: int) -> dict[str, GitNow]:
    """Return what git says of the files of some directories; of those for which it answers in time.

    It is asked once for each checkout, however many directories of it there are."""
    try:
        async with asyncio.timeout(GIT_SECONDS):
            inside = await asyncio.to_thread(lambda: {name: _inside(name, paths) for name, paths in files.items()})
    except TimeoutError:
        return {}
    checkouts: dict[Path, dict[str, set[str]]] = {}
    for one in inside.values():
        if one is not None:
            top, names = one
            for name, path in names.items():
                checkouts.setdefault(top, {}).setdefault(name, set()).add(path)
    answers = await asyncio.gather(*(_asked(top, names, since_ms) for top, names in checkouts.items()))
    known = dict(zip(checkouts, answers, strict=True))
    now = {name: known.get(one[0], GitNow()) for name, one in inside.items() if one is not None}
    return {name: answer for name, answer in now.items() if answer is not None}


async def _asked(top: Path, names: Mapping[str, set[str]], since_ms: int) -> GitNow | None:
    """Return what git says of a checkout's files, by their names there; None if it does not answer in time."""
    from holdfast.git.state import Git, GitFault  # most starts have nothing to ask git

    asked = list(names)[-MAX_FILES:]
    with contextlib.suppress(TimeoutError, GitFault):
        async with asyncio.timeout(GIT_SECONDS):
            git = Git(top, timeout_s=GIT_SECONDS)
            uncommitted = await git.uncommitted(asked)
            # Where nothing is committed, the log has nothing to add, and the agent waits.
            committed = {} if len(uncommitted) == len(asked) else await git.last_commits(asked, since_ms)
            return GitNow(
                frozenset(path for name in asked if name in uncommitted for path in names[name]),
                {path: at for name, at in committed.items() for path in names.get(name, ())},
            )
    return None


def _inside(directory: str, files: Iterable[str]) -> tuple[Path, dict[str, str]] | None:
    """Return the checkout of a directory, and those of the files that are in it by their names there."""
    checkout = checkout_of(Path(os.path.realpath(directory)))
    if checkout is None:
        return None
    names: dict[str, str] = {}
    for path in list(files)[-MAX_FILES:]:
        folder, slash, name = path.rpartition("/")
        real = f"{os.path.realpath(folder)}{slash}{name}"
        if real.startswith(f"{checkout.top}/"):
            names[os.path.relpath(real, checkout.top)] = path
    return checkout.top, names


def _differing(ours: Checkout, theirs: Checkout, files: Sequence[str]) -> tuple[tuple[str, ...], int]:
    differing: list[str] = []
    compared = 0
    for path in list(reversed(files))[:COMPARED]:
        real = os.path.realpath(path)
        if not real.startswith(f"{theirs.top}/"):
            continue
        name = os.path.relpath(real, theirs.top)
        compared += 1
        if not _is_same(Path(real), ours.top / name):
            differing.append(name)
    return tuple(differing), compared


def _is_same(one: Path, other: Path) -> bool:
    try:
        sizes = {path.stat().st_size for path in (one, other) if path.is_file()}
        if len(sizes) != 1 or one.is_file() != other.is_file():
            return not one.exists() and not other.exists()
        return sizes.pop() > MAX_COMPARED_BYTES or one.read_bytes() == other.read_bytes()
    except OSError:
        return False
