"""Git state of a worktree: branch, head, and what changed since a run began."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from holdfast.files.inside import TooLarge, UnreadableInside, read_inside
from holdfast.git.command import GitFault, GuardedGit
from holdfast.git.directory import TAGGED_OFF_BRANCHES
from holdfast.lazy_dataclass import dataclass

__all__ = ["EVIDENCE", "OWN_FILES", "Git", "GitFault", "GitState", "NewCommit", "Tips"]

OWN_FILES = (
    ".serena/memories/session-current-state.md",
    ".serena/memories/session-history.md",
    ".serena/memories/session-violations-log.md",
    ".agents/sessions/.session-state.json",
    ".holdfast/",
)
"""Files that Holdfast itself keeps in a worktree: never counted as an agent's change."""

_FRESH = re.compile(r"\.(.+)\.[0-9a-f]{16}")
"""Temporary name of a memory while it is being written (`files.write_private`)."""

EVIDENCE = (".agents/sessions/", ".agents/qa/", ".agents/HANDOFF.md", ".serena/memories/")
"""Files about the work, not the work itself: they may change after the work was verified."""

MAX_HASHED = 64 * 1024 * 1024
MAX_SEEN = 500
"""Commits that are searched for files."""
MAX_LOGGED = 200
"""Reflog entries of HEAD that are searched for commits."""
MAX_COMMITS = 5_000
MAX_TIPS = 5_000
"""Branches whose commits are compared."""
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_LOGGED = re.compile(r"\x01([0-9a-f]{40,64})\x02(.*)", re.DOTALL)
_COMMITTING = ("commit", "cherry-pick", "revert", "am:")
"""Reflog prefixes of commits that were made here, and not fetched, merged or checked out."""
_MADE_HERE = re.compile(
    r"(?:commit|cherry-pick|revert|am:|rebase.*\((?:pick|reword|edit|squash|fixup|continue)\)|.*: Merge made)"
)
"""The same, with merges and rebases."""
_MOVED_BY_ID = re.compile(r"(?:reset: moving to [0-9a-f]{40,64})?$")
"""What the reflog says of a commit that plumbing made, and of any other that HEAD was moved to by its id."""
_REFUSED = frozenset({1})
_NOT_THERE = frozenset({1, 128})
_FIELDS_BEFORE_PATH = {"1": 8, "u": 10}
"""Fields before the path in a line of `git status --porcelain=v2`."""


@dataclass(frozen=True, slots=True)
class GitState:
    """Branch, head and uncommitted changes of a worktree."""

    branch: str | None = None
    """None while HEAD is detached."""
    head: str | None = None
    """The full id; None before the first commit."""
    dirty: tuple[str, ...] = ()
    """Uncommitted paths, except Holdfast's own files."""
    problem: str = ""
    """Why the state is unknown: no repository, no git."""


@dataclass(frozen=True, slots=True)
class Tips:
    """The commits that HEAD and branches were at."""

    head: str | None
    """None before the first commit."""
    branches: dict[str, str]
    """By full name, without those that another worktree has checked out."""
    remotes: tuple[str, ...] = ()
    """The commits of remote-tracking branches and of tags."""
    elsewhere: tuple[str, ...] = ()
    """The commits of branches that another worktree has checked out."""
    branch: str | None = None
    """The branch that HEAD is on; None while it is detached, or on a ref that is no branch."""


@dataclass(frozen=True, slots=True)
class NewCommit:
    """A commit that came to HEAD or a branch."""

    ref: str
    before: str | None
    after: str
    how: str = ""
    """What git's reflog says of it; a pull begins with `pull`."""


@dataclass(frozen=True, slots=True)
class Committed:
    """Paths changed by commits that were made in a worktree, and not fetched or checked out."""

    here: frozenset[str] = frozenset()
    """By commits that are reachable from HEAD."""
    elsewhere: frozenset[str] = frozenset()
    """By commits that are only on other branches."""


class Git(GuardedGit):
    """Questions to git, for one inspection of one worktree. Raises GitFault."""

    async def state(self) -> GitState:
        """Return branch, head and uncommitted paths. Never raises: failures are reported in `problem`."""
        try:
            answer = await self.ask(
                *("status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-z"),
                *("--untracked-files=all", "--no-renames", "--ignore-submodules=dirty"),
            )
        except GitFault as fault:
            return GitState(problem=str(fault))
        return _state(_words(answer.output))

    async def resolve(self, commit: str) -> str | None:
        """Return the full id of a commit given by at least seven digits; None if there is no such commit."""
        name = commit.strip().lower()
        if not _COMMIT.fullmatch(name):
            return None
        arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        answer = await self.ask(*arguments, refusals=_NOT_THERE)
        if answer.exit_code == 128:
            await self.ask("rev-parse", "--git-dir")  # raises if the repository is the problem, not the name
        found = os.fsdecode(answer.output).strip() if answer.exit_code == 0 else ""
        # A branch may be named like an abbreviated id, but its target is not the commit that was meant.
        return found if found.startswith(name) else None

    async def exists(self, commit: str) -> bool:
        """Return whether this repository has such a commit."""
        return await self.resolve(commit) is not None

    async def changed_since(self, commit: str | None) -> list[str]:
        """Return every path that differs from a commit (None: from an empty tree), except Holdfast's own files."""
        since = await self._known(commit) if commit is not None else await self._empty_tree()
        changed = await self.ask(
            *("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"),
            *("--ignore-submodules=dirty", "--no-relative", since, "--"),
        )
        untracked = await self.ask("ls-files", "--others", "--exclude-standard", "-z")
        paths = {path.rstrip("/") for path in _words(changed.output) + _words(untracked.output)}
        return sorted(path for path in paths if not _is_own(path))

    async def tips(self, *, with_tags: bool = False) -> Tips:
        """Return where HEAD and the branches are, and the tagged commits that are on none; of very many, the latest."""
        # Not the worktree's path itself, which may have a line feed in it.
        form = "%(HEAD)%00%(objectname)%00%(refname)%00%(if)%(worktreepath)%(then)checked out%(end)"
        listed = await self.ask(
            *("for-each-ref", "--sort=-committerdate", f"--count={MAX_TIPS}", f"--format={form}"),
            *("refs/heads", "refs/remotes"),
        )
        head = await self.ask("rev-parse", "--verify", "--quiet", "HEAD", refusals=_NOT_THERE)
        branch, branches = None, {}
        remotes: list[str] = []
        elsewhere: list[str] = []
        for line in os.fsdecode(listed.output).split("\n")[:-1]:
            here, commit, name, checked_out = line.split("\0")
            if here == "*":
                branch = name
            if not name.startswith("refs/heads/"):
                remotes.append(commit)
            elif here == "*" or not checked_out:
                branches[name] = commit
            else:
                elsewhere.append(commit)
        if with_tags:
            tagged = await self.ask("rev-list", *TAGGED_OFF_BRANCHES, "-n", str(MAX_TIPS))
            remotes += os.fsdecode(tagged.output).split()
        at = os.fsdecode(head.output).strip() if head.exit_code == 0 else None
        return Tips(at, branches, tuple(sorted(set(remotes))), tuple(sorted(set(elsewhere))), branch)

    async def new_commits(self, before: Tips, now: Tips) -> list[NewCommit]:
        """Return what came to HEAD, or to a branch that no other worktree has, since `before`.

        Checking out what was there is nothing new. A commit that was there already counts if HEAD's branch was moved
        on to it, and one that a remote-tracking branch has by now counts too: anybody can put it there.
        """
        found: list[NewCommit] = []
        there = (before.head, *before.branches.values(), *before.remotes, *before.elsewhere)
        known = {commit for commit in there if commit}
        was = before.branches.get(now.branch or "")
        if now.head is not None and now.head not in (before.head, was):
            if was is not None:
                is_new = not await self.is_ancestor(now.head, was)
            else:
                is_new = await self._is_new(now.head, known)
            if is_new:
                found.append(NewCommit("HEAD", before.head, now.head, await self._how_moved("HEAD", now.head)))
        for name, commit in now.branches.items():
            was = before.branches.get(name)
            if name != now.branch and commit != was and await self._is_new(commit, known.union(now.elsewhere)):
                found.append(NewCommit(name, was, commit, await self._how_moved(name, commit)))
        return found

    async def _is_new(self, commit: str, known: Iterable[str]) -> bool:
        """Return whether a commit is none of these and no ancestor of one."""
        without = (f"^{one}" for one in sorted(known))
        answer = await self.ask("rev-list", "--ignore-missing", "-n", "1", commit, *without, "--")
        return bool(answer.output)

    async def _how_moved(self, ref: str, commit: str) -> str:
        """Return the reflog's words for how HEAD or a branch came to be at a commit; empty if it has none."""
        answer = await self.ask(
            *("log", "--walk-reflogs", "--no-show-signature", "-n", "1", "--format=%H %gs", ref, "--"),
            refusals=_NOT_THERE,
        )
        at, _, how = answer.output.decode(errors="replace").strip().partition(" ")
        return how if at == commit else ""

    async def moves(self) -> int:
        """Return the number of entries in this worktree's reflog of HEAD."""
        answer = await self.ask("rev-list", "--walk-reflogs", "--count", "HEAD", "--", refusals=_NOT_THERE)
        return int(answer.output) if answer.exit_code == 0 else 0

    async def commits_after(self, ms: int, commit: str | None) -> list[str]:
        """Return the commits that were made here after a time, and not fetched or checked out, oldest first.

        Dates can be set by whoever commits: what came to HEAD after it was last at `commit` counts in any case.
        """
        logged = await self.ask(
            *("log", "--walk-reflogs", "--no-show-signature", "--date=unix", "-z", "--format=%H %h %ct %gd %gs"),
            *("-n", str(MAX_LOGGED), "HEAD", "--"),
            refusals=_NOT_THERE,
        )
        moves = [word.split(" ", 4) for word in _words(logged.output) if logged.exit_code == 0]
        since = next((place for place, move in enumerate(moves) if move[0] == commit), 0)
        found = [
            short
            for place, (_, short, made, moved, how) in enumerate(moves)
            if (place < since or int(moved.strip("HEAD@{}")) * 1000 > ms)
            and (_MADE_HERE.match(how) or (int(made) * 1000 > ms and _MOVED_BY_ID.match(how)))
        ]
        return list(dict.fromkeys(found[::-1]))

    async def committed_since(self, moves: int, commit: str | None) -> Committed:
        """Return the commits in this worktree since its HEAD had `moves` reflog entries and was at `commit`."""
        count = min(await self.moves() - moves, MAX_LOGGED)
        if count <= 0:
            return Committed()
        # Showing signatures, which the repository's configuration can request, would start a program that it names.
        logged = await self.ask(
            *("log", "--walk-reflogs", "--no-show-signature", "--format=%x01%H%x02%gs", "-z", "-n", str(count)),
            *("--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "HEAD", "--"),
        )
        here = await self._commits("HEAD", commit)
        everywhere = here | await self._commits("--branches", commit)
        paths: dict[bool, set[str]] = {True: set(), False: set()}
        found: set[str] | None = None
        for word in _words(logged.output):
            if move := _LOGGED.fullmatch(word):
                made = move[2].startswith(_COMMITTING) and move[1] in everywhere
                found = paths[move[1] in here] if made else None
            elif found is not None and not _is_own(word.removeprefix("\n")):
                found.add(word.removeprefix("\n"))
        return Committed(frozenset(paths[True]), frozenset(paths[False]))

    async def _commits(self, of: str, since: str | None) -> frozenset[str]:
        """Return the commits of HEAD or of all branches that are not reachable from `since`."""
        without = () if since is None else (f"^{since}",)
        answer = await self.ask("rev-list", "-n", str(MAX_COMMITS), of, *without, "--", refusals=_NOT_THERE)
        return frozenset(_words(answer.output.replace(b"\n", b"\0")))

    async def ignored(self, paths: Sequence[str]) -> frozenset[str]:
        """Return those of these files that git ignores."""
        if not paths:
            return frozenset()
        # check-ignore has no literal mode, and a path may look like a pattern.
        arguments = ("ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--", *paths)
        return frozenset(_words((await self.ask(*arguments)).output))

    async def show(self, commit: str, path: str) -> bytes | None:
        """Return the content of a file in a commit; None if it has no such regular file."""
        listed = await self.ask("ls-tree", "-z", await self._known(commit), "--", path)
        for entry in _words(listed.output):
            meta, _, name = entry.partition("\t")
            mode, _, blob = meta.split(" ", 2)
            if name == path and mode.startswith("100"):
                return (await self.ask("cat-file", "blob", blob)).output
        return None

    async def is_ancestor(self, older: str, newer: str) -> bool:
        """Return whether one commit is an ancestor of another, or the same."""
        old, new = await self._known(older), await self._known(newer)
        answer = await self.ask("merge-base", "--is-ancestor", old, new, refusals=_REFUSED)
        return answer.exit_code == 0

    async def committed_at(self, commit: str) -> int:
        """Return when a commit was made, in milliseconds."""
        content = (await self.ask("cat-file", "commit", await self._known(commit))).output
        match = re.search(rb"^committer .*> (\d+) [+-]\d{4}$", content, re.MULTILINE)
        if match is None:
            raise GitFault(f"The commit {commit} has no date.")
        return int(match[1]) * 1000

    async def fingerprint(self, commit: str | None) -> str:
        """Return a hash of all work since a commit: unchanged by committing it, different after any edit."""
        digest = hashlib.sha256()
        for path in await self.changed_since(commit):
            if not _under(EVIDENCE, path):
                content = await asyncio.to_thread(_content, self.worktree, path)
                if content is None:
                    nested = await Git(self.worktree / path).state()
                    content = f"repository {nested.head} {nested.problem}"
                for part in (os.fsencode(path), content.encode("utf-8", "surrogateescape")):
                    digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()

    async def digest(self, commit: str | None) -> str:
        """Return a hash of HEAD, its moves and all work since a commit: the same as long as nothing is done here.

        Empty if git cannot say.
        """
        state = await self.state()
        try:
            parts = [state.head or "", str(await self.moves()), await self.fingerprint(commit), *state.dirty]
        except GitFault:
            return ""
        joined = "\0".join(parts).encode("utf-8", "surrogateescape")
        return "" if state.problem else hashlib.sha256(joined).hexdigest()

    async def uncommitted(self, paths: Sequence[str]) -> frozenset[str]:
        """Return those of these paths whose content is not committed; in a large worktree faster than `state`."""
        answer = await self.ask(
            *("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty"),
            *("--", *paths),
        )
        return frozenset(_state(_words(answer.output)).dirty)

    async def last_commits(self, paths: Sequence[str], since_ms: int) -> dict[str, int]:
        """Return when each of these paths was last committed on any branch, if after `since_ms`.

        In milliseconds, rounded down to the second, which is git's resolution.
        """
        # Showing signatures, which the repository's configuration can request, would start a program that it names.
        answer = await self.ask(
            *("log", "HEAD", "--branches", "--no-show-signature", f"--since=@{since_ms // 1000}", "-n", str(MAX_SEEN)),
            *("--format=%x01%ct", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--", *paths),
            refusals=_NOT_THERE,
        )
        times: dict[str, int] = {}
        at = 0
        for word in _words(answer.output) if answer.exit_code == 0 else ():
            if word.startswith("\x01"):
                at = int(word[1:]) * 1000
            else:
                times.setdefault(word.removeprefix("\n"), at)
        return times

    async def first_commit(self) -> str | None:
        """Return the oldest root commit of HEAD; None if there is none."""
        answer = await self.ask("rev-list", "--max-parents=0", "HEAD", "--", refusals=_NOT_THERE)
        hashes = os.fsdecode(answer.output).split() if answer.exit_code == 0 else []
        return hashes[-1] if hashes else None

    async def _known(self, commit: str) -> str:
        full = await self.resolve(commit)
        if full is None:
            raise GitFault(f"The commit {commit[:64]} is not in this repository.")
        return full

    async def _empty_tree(self) -> str:
        return os.fsdecode((await self.ask("hash-object", "-t", "tree", os.devnull)).output).strip()


def _state(words: list[str]) -> GitState:
    branch: str | None = None
    head: str | None = None
    dirty: set[str] = set()
    for word in words:
        kind, _, rest = word.partition(" ")
        if kind == "#" and rest.startswith("branch.oid "):
            oid = rest.removeprefix("branch.oid ")
            head = None if oid == "(initial)" else oid
        elif kind == "#" and rest.startswith("branch.head "):
            name = rest.removeprefix("branch.head ")
            branch = None if name == "(detached)" else name
        elif kind == "?":
            dirty.add(rest.rstrip("/"))
        elif kind in _FIELDS_BEFORE_PATH:
            dirty.add(word.split(" ", _FIELDS_BEFORE_PATH[kind])[-1])
    return GitState(branch, head, tuple(sorted(path for path in dirty if not _is_own(path))))


def _words(output: bytes) -> list[str]:
    return [os.fsdecode(word) for word in output.split(b"\0") if word]


def _is_own(path: str) -> bool:
    """Return whether this file is Holdfast's own, or its temporary form."""
    folder, slash, name = path.rpartition("/")
    fresh = _FRESH.fullmatch(name)
    return _under(OWN_FILES, f"{folder}{slash}{fresh[1]}" if fresh else path)


def _under(places: tuple[str, ...], path: str) -> bool:
    return any(path == place or (place.endswith("/") and f"{path}/".startswith(place)) for place in places)


def _content(worktree: Path, path: str) -> str | None:
    """Return a digest of a path's content; None for a directory, which is a nested repository."""
    try:
        status = (worktree / path).lstat()
        if stat.S_ISDIR(status.st_mode):
            return None
        if stat.S_ISLNK(status.st_mode):
            return f"link {hashlib.sha256(os.fsencode((worktree / path).readlink())).hexdigest()}"
        content = read_inside(worktree, path, MAX_HASHED)
        runs = "program" if status.st_mode & stat.S_IXUSR else "file"
        return f"{runs} {hashlib.sha256(content or b'').hexdigest()}"
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except TooLarge:
        return f"large {status.st_size} {status.st_mtime_ns}"
    except (OSError, UnreadableInside) as failure:
        return f"unreadable {failure}"
