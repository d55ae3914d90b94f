"""Runs git so that nothing that a repository contains is executed.

A repository's own configuration can name programs that ordinary, read-only git commands start: a file system monitor,
content filters, hooks, diff viewers, helpers that fetch a missing object. They are disabled for every call. Programs
that the user's own configuration names stay enabled.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.files.in_time import in_time
from holdfast.process.child_environment import command_environment
from holdfast.process.command import CannotRun, Ending, run

TIMEOUT_S = 60.0
MAX_OUTPUT = 32 * 1024 * 1024

KEPT = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"})
"""Locations of the user's own configuration. Other GIT_ variables could point git at another repository or program."""

SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.pager", "cat"),
    ("core.sshCommand", "false"),
    ("core.untrackedCache", "false"),
    ("credential.helper", ""),
    ("protocol.allow", "never"),
    ("safe.bareRepository", "explicit"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
)
ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",  # overrides the repository's protocol.NAME.allow
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_GRAFT_FILE": f"{os.devnull}/none",  # a repository can claim other parents for a commit there
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_OWN_SCOPES = frozenset({b"local", b"worktree"})
_FILTER = re.compile(r"filter\.(?P<driver>.+)\.[^.]+", re.DOTALL)
_EXTRA_FILES = frozenset({"core.attributesfile", "core.excludesfile"})


class GitFault(HoldfastError):
    """A git command failed; the message says why and what to do."""

    code = "E_GIT"


class GuardedGit:
    """Git for one inspection of one worktree. Create a new one for the next: the configuration may have changed."""

    def __init__(self, worktree: Path, *, timeout_s: float = TIMEOUT_S) -> None:
        self.worktree = Path(os.path.realpath(worktree))
        self._timeout_s = timeout_s
        self._settings: tuple[tuple[str, str], ...] | None = None

    async def ask(self, *arguments: str, refusals: frozenset[int] = frozenset(), most: int = MAX_OUTPUT) -> Ending:
        """Run a git command. Raises GitFault if it exits with anything but 0 or one of `refusals`."""
        if self._settings is None:
            self._settings = await self._harmless()
        ending = await self._run(arguments, self._settings, most)
        if ending.exit_code != 0 and ending.exit_code not in refusals:
            raise GitFault(_why(arguments[0], ending))
        return ending

    async def _harmless(self) -> tuple[tuple[str, str], ...]:
        """Return the fixed settings, plus those that empty each filter that the repository itself defines."""
        if not await in_time(os.path.lexists, self.worktree / ".git"):
            raise GitFault("The worktree is not a git repository. Run `git init` in its top directory.")
        listed = await self._run(("config", "--list", "--show-scope", "--name-only", "-z", "--includes"), SETTINGS)
        if listed.exit_code != 0:
            raise GitFault(_why("config", listed))
        words = listed.output.split(b"\0")
        scoped = list(zip(words[::2], words[1::2], strict=False))
        if (b"command", b"core.fsmonitor") not in scoped:
            raise GitFault("This git is too old to be run safely. Install git 2.31 or newer.")
        own = (os.fsdecode(name) for scope, name in scoped if scope in _OWN_SCOPES)
        return (*SETTINGS, *_emptied(own))

    async def _run(
        self, arguments: tuple[str, ...], settings: tuple[tuple[str, str], ...], most: int = MAX_OUTPUT
    ) -> Ending:
        import shutil  # imported late to keep the daemon's start fast

        environment = await asyncio.to_thread(_environment, self.worktree, settings)
        program = await asyncio.to_thread(shutil.which, "git", path=environment["PATH"])
        if program is None:
            raise GitFault("git was not found on the PATH. Install git and start Holdfast again.")
        try:
            ending = await run(
                (program, "--no-pager", *arguments),
                cwd=self.worktree,
                env=environment,
                timeout_s=self._timeout_s,
                most=most,
            )
        except CannotRun as failure:
            raise GitFault(str(failure)) from failure
        if ending.too_long:
            raise GitFault(f"git {arguments[0]} printed more than {most} bytes.")
        if ending.timed_out:
            raise GitFault(f"git {arguments[0]} did not finish within {self._timeout_s:g} s.")
        return ending


def _environment(worktree: Path, settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    kept = {name: value for name, value in command_environment().items() if not name.startswith("GIT_")}
    kept |= {name: os.environ[name] for name in KEPT if name in os.environ} | ENVIRONMENT
    kept["PATH"] = _outside(worktree, kept)
    # With both given, git uses this worktree and no other, whatever core.worktree or a parent directory says.
    kept["GIT_WORK_TREE"] = str(worktree)
    kept["GIT_CEILING_DIRECTORIES"] = str(worktree.parent)
    # Unlike -c, this form accepts names with "=" in them, which a hostile filter could have.
    pairs = list(settings)
    kept["GIT_CONFIG_COUNT"] = str(len(pairs))
    for number, (name, value) in enumerate(pairs):
        kept[f"GIT_CONFIG_KEY_{number}"] = name
        kept[f"GIT_CONFIG_VALUE_{number}"] = value
    return kept


def _outside(worktree: Path, environment: Mapping[str, str]) -> str:
    """Return the PATH without directories inside the worktree: a clone may contain a program called git."""
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    absolute = [Path(folder) for folder in folders if folder.startswith("/")]
    return os.pathsep.join(str(folder) for folder in absolute if not folder.resolve().is_relative_to(worktree))


def _emptied(own: Iterable[str]) -> list[tuple[str, str]]:
    settings: list[tuple[str, str]] = []
    names = list(own)
    drivers = {match["driver"] for name in names if (match := _FILTER.fullmatch(name))}
    for driver in sorted(drivers):
        settings += [(f"filter.{driver}.{key}", "") for key in ("clean", "smudge", "process")]
        settings.append((f"filter.{driver}.required", "false"))
    return settings + [(name, os.devnull) for name in sorted(_EXTRA_FILES.intersection(names))]


def _why(command: str, ending: Ending) -> str:
    lines = [line.strip() for line in ending.errors.decode("utf-8", "replace").splitlines() if line.strip()]
    reason = next((line for line in lines if line.startswith("fatal:")), lines[-1] if lines else "it gave no reason")[
        :300
    ]
    if "dubious ownership" in reason or "unsafe repository" in reason:
        return "The repository belongs to another user, so git does not read it (see git's safe.directory)."
    return f"git {command} failed: {reason.removeprefix('fatal:').strip().rstrip('.')}."
