"""What a shell command runs, which tells whether a later success fixes an earlier failure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from itertools import dropwhile
from posixpath import basename

from holdfast.briefing.ledger.shell import Command, read, without_keywords
from holdfast.lazy_dataclass import dataclass

MAX_WORDS = 500
MAX_RUNS = 6
MAX_KEY_CHARS = 300
SHOWS_TEXT = frozenset(
    {
        *("cat", "head", "tail", "nl", "bat", "less", "more", "sed", "awk", "grep", "egrep", "fgrep", "rg", "ag"),
        *("find", "fd", "ls", "tree", "wc", "sort", "uniq", "cut", "diff", "man", "jq", "yq", "xxd", "strings", "file"),
        *("ack", "stat", "pydoc", "gh", "glab", "which", "type"),
    }
)
"""Programs that show existing text: an error in it did not occur now."""
SHOWS_OF_GIT = frozenset({"log", "show", "diff", "grep", "blame", "status", "ls-files", "branch", "stash"})
_ASIDE = frozenset({"cd", "pushd", "popd", "export", "source", ".", "set", "echo", "printf", "true", "sleep", "mkdir"})
_WRAPPERS = {
    **dict.fromkeys(("env", "time", "nice", "sudo", "npx", "bunx", "pnpx"), 0),
    **dict.fromkeys(("timeout", "uv", "poetry", "pipenv", "hatch", "rye"), 1),
}
"""Programs that run another one, and how many words they take before it."""
_WITH_SUBCOMMAND = frozenset(
    {"ruff", "cargo", "go", "npm", "pnpm", "yarn", "bun", "make", "gradle", "gradlew", "mvn", "dotnet", "swift"}
)
_RUNNERS = _WITH_SUBCOMMAND | {
    *("pytest", "jest", "vitest", "mocha", "ava", "tsc", "eslint", "mypy", "pyright", "flake8", "pylint", "shellcheck"),
    *("tox", "nox", "unittest", "phpunit", "rspec", "ctest"),
}
"""Programs that check everything unless told otherwise: a wider run covers a narrower one."""
_NARROWS = frozenset({"--lib", "--bins", "--doc", "--changed", "--onlyChanged", "--findRelatedTests", "-short"})
"""Options with which a runner leaves something out."""
_CHECKS = _RUNNERS | {"gcc", "g++", "clang", "clang++", "rustc", "javac", "swiftc", "kotlinc"}
"""Programs whose output says whether they passed."""
_EVERYTHING = frozenset({".", "./...", "..."})
_LAUNCHES = re.compile(r"python[\d.]* -m|(?:pnpm|yarn|bun) exec")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_HIDES_EXIT = re.compile(r"[|;\n]")
_FINDS_NOTHING = frozenset(
    {"grep", "egrep", "fgrep", "rg", "ag", "diff", "cmp", "test", "[", "which", "pgrep", "command"}
)


@dataclass(frozen=True, slots=True)
class Run:
    """What a command runs."""

    keys: list[str] = field(default_factory=list)
    """Its programs with what they are about, in order; without options."""
    shows: bool = False
    """It shows text, and runs nothing."""
    hides_exit: bool = False
    """Its exit status is not, or may not be, that of what it runs."""
    checks: bool = False
    """Its output says whether it passed."""
    finds: bool = False
    """Its exit status says whether something was found."""


def run_of(command: str) -> Run:
    """Return what a command runs."""
    commands = read(command).commands
    heads = [words for one in commands if one.upstream is None and (words := _words(one)) and words[0] not in _ASIDE]
    keys = [" ".join(words)[:MAX_KEY_CHARS] for words in heads[-MAX_RUNS:]]
    last = _words(commands[-1]) if commands else []
    shows = bool(heads) and all(_only_shows_text(words) for words in heads)
    checks = any(words[0] in _CHECKS for words in heads)
    return Run(keys, shows, bool(_HIDES_EXIT.search(command)), checks, bool(last) and last[0] in _FINDS_NOTHING)


def mends(success: str, failure: str) -> bool:
    """Return whether a run that passed, known by its key, covers one that failed."""
    if success == failure:
        return True
    passed, failed = success.split(" "), failure.split(" ")
    if passed[0] != failed[0] or passed[0] not in _RUNNERS:
        return False
    if passed[0] in _WITH_SUBCOMMAND and passed[:2] != failed[:2]:
        return False
    return set(passed) - _EVERYTHING <= set(failed)


def _words(command: Command) -> list[str]:
    """Return a command's program and operands, without assignments and wrappers before it."""
    words = [word.text for word in without_keywords(command.words)[:MAX_WORDS]]
    while words:
        program = basename(words[0])
        if _ASSIGNMENT.match(words[0]):
            del words[0]
        elif program in _WRAPPERS and len(words) > _WRAPPERS[program] + 1:
            words = list(dropwhile(_is_option, words[_WRAPPERS[program] + 1 :]))
        elif len(words) > 2 and _LAUNCHES.fullmatch(f"{program} {words[1]}"):
            del words[:2]
        else:
            return [program, *(word for word in words[1:] if word in _NARROWS or (word and not _is_option(word)))]
    return []


def _is_option(word: str) -> bool:
    return word.startswith("-")


def _only_shows_text(words: Sequence[str]) -> bool:
    if words[0] == "git":
        return len(words) > 1 and words[1] in SHOWS_OF_GIT
    return words[0] in SHOWS_TEXT and not any(map(_is_log, words[1:]))


def _is_log(path: str) -> bool:
    return path.endswith((".log", ".err", ".out")) or "/log/" in path or "/logs/" in path
