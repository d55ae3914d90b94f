"""Which shell commands would commit or push, and in which directory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from posixpath import basename, join

from holdfast.protocol.hooks.shell import Command, Word, read

COMMIT = "commit"
PUSH = "push"
MAX_NESTED = 8
"""Shells that start shells; deeper ones are not looked into."""

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
KEYWORDS = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "coproc"})
"""Words after which a command begins."""

WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    "builtin": (frozenset(), 0),
    "chronic": (frozenset(), 0),
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
"""Programs that run the command they are given: their options that take a value, and how many words come first."""

GIT_OPTIONS_WITH_VALUE = frozenset(
    {"-c", "--namespace", "--work-tree", "--super-prefix", "--config-env", "--attr-source", "--list-cmds"}
)
ONLY_TOLD = frozenset({"--dry-run", "--help", "-h"})
"""Options with which git only says what it would do."""

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_QUOTING = str.maketrans("", "", "'\"\\\n")


@dataclass(frozen=True, slots=True, order=True)
class GitAction:
    """A commit or push that a command would run."""

    name: str
    directory: str = ""
    """Where, seen from the directory the command starts in; empty for that one, or where only a run could tell."""


def git_actions(command: str) -> frozenset[GitAction]:
    """The commits and pushes that a shell command would run, also inside `bash -c`, `$(…)` and the like."""
    return frozenset(_in_script(command, "", 0))


def _in_script(text: str, start: str, depth: int) -> Iterator[GitAction]:
    unquoted = text.translate(_QUOTING)
    if depth > MAX_NESTED or "git" not in unquoted or not (COMMIT in unquoted or PUSH in unquoted):
        return
    script = read(text)
    directories = {0: start}
    for command in script.commands:
        here = _directory_of(command.scope, directories, script.parents)
        words = _without_keywords(command.words)
        yield from _Invocation(command, here, depth).actions(words)
        directories[command.scope] = _after(words, here)


def _directory_of(scope: int, directories: dict[int, str], parents: Sequence[int]) -> str:
    """A subshell begins where the shell that starts it is at that time."""
    known = scope
    while known not in directories:
        known = parents[known]
    return directories[known]


def _without_keywords(words: Sequence[Word]) -> list[Word]:
    first = 0
    while first < len(words) and words[first].bare and words[first].text in KEYWORDS:
        first += 1
    return list(words[first:])


def _after(words: Sequence[Word], here: str) -> str:
    """The shell's directory after a command."""
    if not words or words[0].text not in ("cd", "pushd"):
        return here
    targets = [word for word in words[1:] if not word.text.startswith("-")]
    if any(word.text == "-" for word in words[1:]) or (targets and not targets[0].literal):
        return ""
    return join(here, targets[0].text if targets else "~")


class _Invocation:
    """One command, looked at from the outside in: wrappers first, git last."""

    def __init__(self, command: Command, here: str, depth: int) -> None:
        self._command = command
        self._here = here
        self._depth = depth

    def actions(self, words: Sequence[Word], git_dir: str | None = None) -> Iterator[GitAction]:
        """What these words would run."""
        while words and (assigned := _ASSIGNMENT.fullmatch(words[0].text)):
            if assigned[1] == "GIT_DIR":
                git_dir = assigned[2] if words[0].literal else ""
            words = words[1:]
        if not words or not words[0].literal:
            return
        program, arguments = basename(words[0].text), words[1:]
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
        elif program == "env":
            yield from self._env(arguments, git_dir)
        elif program == "command":
            if not (arguments and arguments[0].text in ("-v", "-V")):
                yield from self.actions(_past_options(arguments, frozenset()), git_dir)
        elif program == "find":
            yield from self._find(arguments, git_dir)
        elif program in WRAPPERS:
            with_value, operands = WRAPPERS[program]
            yield from self.actions(_past_options(arguments, with_value)[operands:], git_dir)

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
            for text in _fed(self._command):
                yield from self._script(text)

    def _env(self, arguments: Sequence[Word], git_dir: str | None) -> Iterator[GitAction]:
        rest = list(arguments)
        while rest and rest[0].text.startswith("-"):
            option = rest.pop(0).text
            if option in ("-u", "--unset") and rest:
                rest.pop(0)
            elif option in ("-C", "--chdir") and rest:
                self._here = join(self._here, rest.pop(0).text)
            elif option.startswith("--chdir="):
                self._here = join(self._here, option.removeprefix("--chdir="))
            elif option in ("-S", "--split-string") and rest:
                yield from self._script(" ".join(word.text for word in rest))
                return
        yield from self.actions(rest, git_dir)

    def _find(self, arguments: Sequence[Word], git_dir: str | None) -> Iterator[GitAction]:
        for position, word in enumerate(arguments):
            if word.text in ("-exec", "-execdir", "-ok", "-okdir"):
                yield from self.actions(arguments[position + 1 :], git_dir)

    def _git(self, arguments: Sequence[Word], git_dir: str | None) -> Iterator[GitAction]:
        directory, aliases = self._here, dict[str, str]()
        rest = list(arguments)
        while rest and rest[0].text.startswith("-"):
            option = rest.pop(0)
            if option.text in ("-C", "--git-dir", *GIT_OPTIONS_WITH_VALUE) and rest:
                value = rest.pop(0)
                if option.text == "-C":
                    directory = join(directory, value.text) if value.literal else ""
                elif option.text == "--git-dir":
                    git_dir = value.text if value.literal else ""
                elif option.text == "-c" and value.text.lower().startswith("alias."):
                    name, _, meaning = value.text[len("alias.") :].partition("=")
                    aliases[name] = meaning
            elif option.text.startswith("--git-dir="):
                git_dir = option.text.removeprefix("--git-dir=") if option.literal else ""
        if not rest:
            return
        where = directory if git_dir is None else join(directory, git_dir)
        name = rest[0].text
        if name in (COMMIT, PUSH):
            if not any(_only_tells(name, word) for word in rest[1:]):
                yield GitAction(name, where)
        elif name in aliases:
            meaning = aliases[name]
            inner = _Invocation(self._command, where, self._depth)
            yield from inner._script(meaning[1:] if meaning.startswith("!") else f"git {meaning}")


def _only_tells(action: str, word: Word) -> bool:
    return word.bare and (word.text in ONLY_TOLD or (action == PUSH and word.text == "-n"))


def _fed(command: Command) -> Iterator[str]:
    """What a command finds on its standard input, as far as it stands in the text."""
    yield from command.texts
    source = command.upstream
    if source is not None and not command.texts:
        yield from source.texts
        if source.words and basename(source.words[0].text) in ("echo", "printf"):
            yield " ".join(word.text for word in source.words[1:] if not word.text.startswith("-"))


def _past_options(words: Sequence[Word], with_value: frozenset[str]) -> Sequence[Word]:
    position = 0
    while position < len(words) and words[position].text.startswith("-"):
        option = words[position].text
        position += 1
        if option == "--":
            break
        if option in with_value:
            position += 1
    return words[position:]


def _value_of(option: str, words: Sequence[Word]) -> str | None:
    for position, word in enumerate(words):
        if word.text == option:
            return words[position + 1].text if position + 1 < len(words) else None
        if option.startswith("--") and word.text.startswith(f"{option}="):
            return word.text.removeprefix(f"{option}=")
    return None
