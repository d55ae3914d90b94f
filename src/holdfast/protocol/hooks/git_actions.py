"""Finds the commits and pushes that a shell command would run, and in which directory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from posixpath import basename, join

from holdfast.lazy_dataclass import dataclass
from holdfast.protocol.hooks.shell import Command, Word, read

COMMIT = "commit"
PUSH = "push"
MAX_NESTED = 8
"""Limit for shells that start shells; deeper ones are not parsed."""

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
KEYWORDS = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "coproc"})
"""Words that a command can follow."""

WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    "builtin": (frozenset(), 0),
    "chronic": (frozenset(), 0),
    "command": (frozenset(), 0),
    "doas": (frozenset({"-u", "-C"}), 0),
    "exec": (frozenset({"-a"}), 0),
    "flock": (frozenset({"-w", "--timeout", "-E"}), 1),
    "ionice": (frozenset({"-c", "-n"}), 0),
    "nice": (frozenset({"-n", "--adjustment"}), 0),
    "nohup": (frozenset(), 0),
    "setsid": (frozenset(), 0),
    "stdbuf": (frozenset({"-i", "-o", "-e"}), 0),
    "sudo": (
        frozenset({"-u", "-g", "-h", "-p", "-C", "-T", "-R", "-D", "-r", "-t", "--user", "--group", "--host"}),
        0,
    ),
    "time": (frozenset({"-f", "-o"}), 0),
    "timeout": (frozenset({"-k", "--kill-after", "-s", "--signal"}), 1),
    "xargs": (frozenset({"-I", "-n", "-P", "-L", "-d", "-E", "-s", "-a", "--max-args", "--max-procs"}), 0),
}
"""Programs that run the command they are given: options that take a value, and how many arguments come first."""

GIT_OPTIONS_WITH_VALUE = frozenset(
    {"-c", "--namespace", "--work-tree", "--super-prefix", "--config-env", "--attr-source", "--list-cmds"}
)
FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
DRY_RUN_OPTIONS = frozenset({"--dry-run", "--help", "-h"})
"""Options with which git only reports what it would do."""

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_QUOTING = str.maketrans("", "", "'\"\\\n")


@dataclass(frozen=True, slots=True, order=True)
class GitAction:
    """A commit or push that a command would run."""

    name: str
    directory: str = ""
    """Relative to the directory the command starts in; empty for that one, or if unknown until the command runs."""


def git_actions(command: str) -> frozenset[GitAction]:
    """Return the commits and pushes that a shell command would run, also inside `bash -c`, `$(…)` and the like."""
    return frozenset(_in_script(command, "", 0))


def _in_script(text: str, start: str, depth: int) -> Iterator[GitAction]:
    unquoted = text.translate(_QUOTING)
    if depth > MAX_NESTED or "git" not in unquoted or not (COMMIT in unquoted or PUSH in unquoted):
        return
    script = read(text)
    directories = {0: start}
    for command in script.commands:
        here = _directory_of(command.scope, directories, script.parents)
        words = without_keywords(command.words)
        yield from _Invocation(command, here, depth).actions(words)
        directories[command.scope] = _after(words, here)


def _directory_of(scope: int, directories: dict[int, str], parents: Sequence[int]) -> str:
    """Return the directory of a shell; a subshell inherits that of the shell that starts it."""
    known = scope
    while known not in directories:
        known = parents[known]
    return directories[known]


def without_keywords(words: Sequence[Word]) -> list[Word]:
    """Return a command's words without `then`, `do` and the like before them."""
    first = 0
    while first < len(words) and words[first].bare and words[first].text in KEYWORDS:
        first += 1
    return list(words[first:])


def _after(words: Sequence[Word], here: str) -> str:
    """Return the shell's directory after a command."""
    if not words or words[0].text not in ("cd", "pushd"):
        return here
    targets = [word for word in words[1:] if not word.text.startswith("-")]
    if any(word.text == "-" for word in words[1:]) or (targets and not targets[0].literal):
        return ""
    return join(here, targets[0].text if targets else "~")


class _Invocation:
    """One command, parsed from the outside in: wrappers first, git last."""

    def __init__(self, command: Command, here: str, depth: int) -> None:
        self._command = command
        self._here = here
        self._depth = depth

    def actions(self, words: Sequence[Word], git_dir: str | None = None) -> Iterator[GitAction]:
        """Yield the actions that these words would run; a loop, because a hostile command may nest wrappers deeply."""
        at, directories = 0, [self._here]
        while at < len(words):
            word, at = words[at], at + 1
            if assigned := _ASSIGNMENT.fullmatch(word.text):
                if assigned[1] == "GIT_DIR":
                    git_dir = assigned[2] if word.literal else ""
                continue
            program = basename(word.text)
            if not word.literal or (program == "command" and _text_at(words, at) in ("-v", "-V")):
                return
            if program in WRAPPERS:
                with_value, operands = WRAPPERS[program]
                at = _skip_options(words, at, with_value) + operands
                continue
            if program == "env":
                at, is_script = _skip_env(words, at, directories)
                if not is_script:
                    continue
                program = "eval"
            self._here = join(*directories)
            yield from self._program(program, words[at:], git_dir)
            return

    def _program(self, program: str, arguments: Sequence[Word], git_dir: str | None) -> Iterator[GitAction]:
        if program == "git":
            yield from self._git(arguments, git_dir)
        elif program in SHELLS:
            yield from self._shell(arguments)
        elif program == "eval":
            yield from self._script(" ".join(word.text for word in arguments))
        elif program == "trap":
            yield from self._script(arguments[0].text if arguments else "")
        elif program in ("su", "runuser", "script"):
            yield from self._script(_value_of("-c", arguments) or _value_of("--command", arguments) or "")
        elif program == "find":
            yield from self._find(arguments, git_dir)

    def _script(self, text: str) -> Iterator[GitAction]:
        return _in_script(text, self._here, self._depth + 1)

    def _shell(self, arguments: Sequence[Word]) -> Iterator[GitAction]:
        position, from_argument = 0, False
        while position < len(arguments) and arguments[position].text[:1] in ("-", "+"):
            option = arguments[position].text
            position += 1
            if option == "--":
                break
            if not option.startswith("--"):
                from_argument = from_argument or "c" in option
                position += option[-1] in "oO" if len(option) > 1 else 0
        rest = arguments[position:]
        if from_argument:
            yield from self._script(rest[0].text if rest else "")
        elif not rest or any(word.text in ("-s", "/dev/stdin") for word in arguments):
            for text in _stdin_texts(self._command):
                yield from self._script(text)

    def _find(self, arguments: Sequence[Word], git_dir: str | None) -> Iterator[GitAction]:
        # Each ends where the next begins; otherwise nested finds would double the work per level.
        begins = [position for position, word in enumerate(arguments) if word.text in FIND_RUNS]
        for begin, end in pairwise([*begins, len(arguments)]):
            yield from self.actions(arguments[begin + 1 : end], git_dir)

    def _git(self, arguments: Sequence[Word], git_dir: str | None) -> Iterator[GitAction]:
        directories, aliases = [self._here], dict[str, str]()
        at = 0
        while _text_at(arguments, at).startswith("-"):
            option, at = arguments[at], at + 1
            if option.text in ("-C", "--git-dir", *GIT_OPTIONS_WITH_VALUE) and at < len(arguments):
                value, at = arguments[at], at + 1
                if option.text == "-C":
                    if not value.literal:
                        directories.clear()
                    directories.append(value.text if value.literal else "")
                elif option.text == "--git-dir":
                    git_dir = value.text if value.literal else ""
                elif option.text == "-c" and value.text.lower().startswith("alias."):
                    name, _, meaning = value.text[len("alias.") :].partition("=")
                    aliases[name] = meaning
            elif option.text.startswith("--git-dir="):
                git_dir = option.text.removeprefix("--git-dir=") if option.literal else ""
        rest, directory = arguments[at:], join(*directories)
        if not rest:
            return
        where = directory if git_dir is None else join(directory, git_dir)
        name = rest[0].text
        if name in (COMMIT, PUSH):
            if not any(_is_dry_run(name, word) for word in rest[1:]):
                yield GitAction(name, where)
        elif name in aliases:
            meaning = aliases[name]
            inner = _Invocation(self._command, where, self._depth)
            yield from inner._script(meaning[1:] if meaning.startswith("!") else f"git {meaning}")


def _is_dry_run(action: str, word: Word) -> bool:
    return word.bare and (word.text in DRY_RUN_OPTIONS or (action == PUSH and word.text == "-n"))


def _stdin_texts(command: Command) -> Iterator[str]:
    """Yield the texts a command reads from standard input, as far as they are written out."""
    yield from command.texts
    source = command.upstream
    if source is not None and not command.texts:
        yield from source.texts
        if source.words and basename(source.words[0].text) in ("echo", "printf"):
            yield " ".join(word.text for word in source.words[1:] if not word.text.startswith("-"))


def _skip_options(words: Sequence[Word], at: int, with_value: frozenset[str]) -> int:
    while (option := _text_at(words, at)).startswith("-"):
        at += 1
        if option == "--":
            break
        at += option in with_value
    return at


def _skip_env(words: Sequence[Word], at: int, directories: list[str]) -> tuple[int, bool]:
    """Skip the options of `env`; return where they end and whether a script follows. Adds to `directories`."""
    while (option := _text_at(words, at)).startswith("-"):
        at += 1
        has_value = at < len(words)
        if option in ("-S", "--split-string") and has_value:
            return at, True
        if option in ("-C", "--chdir") and has_value:
            directories.append(words[at].text)
        elif option.startswith("--chdir="):
            directories.append(option.removeprefix("--chdir="))
        at += option in ("-u", "--unset", "-C", "--chdir")
    return at, False


def _text_at(words: Sequence[Word], at: int) -> str:
    return words[at].text if at < len(words) else ""


def _value_of(option: str, words: Sequence[Word]) -> str | None:
    for position, word in enumerate(words):
        if word.text == option:
            return words[position + 1].text if position + 1 < len(words) else None
        if option.startswith("--") and word.text.startswith(f"{option}="):
            return word.text.removeprefix(f"{option}=")
    return None
