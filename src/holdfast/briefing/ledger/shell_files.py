"""Files that a shell command names: what it shows, writes and removes, as far as the command itself tells.

Agents read and edit through the shell as well. Only plain uses of a few programs are understood: a ledger rather leaves
out a file than names one that was never opened. Where git saw what changed (git_view.py), git decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from itertools import pairwise
from posixpath import basename, isabs, join, normpath, splitext

from holdfast.briefing.ledger.shell import Word, read, without_keywords
from holdfast.lazy_dataclass import dataclass

SHOWS = frozenset({"cat", "head", "tail", "nl", "bat", "less"})
_VALUED = frozenset({"-n", "-c", "-e", "-f", "-l"})
"""Options of the programs that show files whose value is the next word."""
_OPTIONS_WITH_VALUE = {
    "cp": frozenset({"-t", "-S"}),
    "mv": frozenset({"-t", "-S"}),
    "install": frozenset({"-m", "-o", "-g", "-t", "-S"}),
    "touch": frozenset({"-d", "-r", "-t"}),
    "truncate": frozenset({"-s", "-r"}),
}
_NO_FILE = re.compile(r"-|/dev/|/proc/|.*[*?\[{~]")
_SED_IN_PLACE = re.compile(r"-[a-zA-Z]*i|--in-place")
_SED_SUFFIX = re.compile(r"|\.[\w~-]+")
_PERL_IN_PLACE = re.compile(r"-(?![MI])[a-zA-Z0-9]*i")
_PERL_CODE = re.compile(r"-[a-zA-Z0-9]*[eE]")
_OUTPUT_OPTION = {"curl": ("-o", "--output"), "wget": ("-O", "--output-document"), "sort": ("-o", "--output")}
_FORMATTERS = {
    "black": (),
    "isort": (),
    "gofmt": ("-w",),
    "goimports": ("-w",),
    "rustfmt": (),
    "prettier": ("--write", "-w"),
    "clang-format": ("-i",),
}
"""Programs that rewrite the files they are given, and the option without which they do not."""
_TEMPORARY = ("/tmp/", "/var/tmp/", "/private/tmp/", "/private/var/", "/var/folders/")  # noqa: S108
MOST = 10
MAX_NAMED = 40


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one command, with absolute paths."""

    shown: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    mentioned: list[str] = field(default_factory=list)
    """Every path given to a program that does more than show files."""


def files_in(command: str, cwd: str) -> Files:
    """Return what a command shows, writes and removes when it is run in `cwd`."""
    named = Files()
    script = read(command)
    places: dict[int, str | None] = {0: cwd}
    for one in script.commands:
        # A subshell begins where the shell that starts it is.
        scope = one.scope
        while scope not in places:
            scope = script.parents[scope]
        at = places[one.scope] = places[scope]
        _add(named.written, [word.text for word in one.outputs if word.literal], at)
        words = without_keywords(one.words)
        if not words or not words[0].literal:
            continue
        program, arguments = words[0].text, words[1:]
        if program in ("cd", "pushd"):
            folders = _operands(arguments)
            places[one.scope] = normpath(join(at, folders[0])) if at and len(words) == 2 and folders else None
            continue
        effect = _effect(program, arguments)
        _add(named.shown, effect.shown, at)
        _add(named.written, effect.written, at)
        _add(named.removed, effect.removed, at)
        if not effect.shown:
            _add(named.mentioned, [word.text for word in arguments if word.literal], at, MAX_NAMED)
    shown, written, removed = (_lasting(paths, cwd) for paths in (named.shown, named.written, named.removed))
    return Files(shown, written, removed, named.mentioned)


def _effect(program: str, arguments: list[Word]) -> Files:
    if program == "git" and arguments and arguments[0].text in ("mv", "rm"):
        program, arguments = arguments[0].text, arguments[1:]
        if any(word.text == "--cached" for word in arguments):
            return Files()  # only the index forgets it
    known = _EFFECTS.get(program)
    if known is not None:
        return known(program, arguments)
    if program in SHOWS:
        return Files(shown=_operands(arguments, _VALUED))
    if program in _OUTPUT_OPTION:
        return Files(written=_values(arguments, _OUTPUT_OPTION[program]))
    if program in _FORMATTERS:
        needed = _FORMATTERS[program]
        texts = [word.text for word in arguments]
        rewrites = "--check" not in texts and (not needed or any(one in texts for one in needed))
        return Files(written=_operands(arguments) if rewrites else [])
    return Files()


def _sed(program: str, arguments: list[Word]) -> Files:
    is_edit = any(_SED_IN_PLACE.match(word.text) for word in arguments)
    has_script = any(word.text in ("-e", "-f") for word in arguments)
    files = _operands(arguments, _VALUED - {"-n"})
    if any(word.text == "-i" for word in arguments) and files and _SED_SUFFIX.fullmatch(files[0]):
        files = files[1:]  # BSD's -i takes the backup's suffix as a word of its own; no script begins with a dot
    # Without -e or -f the first word is what sed is to do.
    files = files if has_script else files[1:]
    return Files(written=files) if is_edit else Files(shown=files)


def _perl(program: str, arguments: list[Word]) -> Files:
    if not any(_PERL_IN_PLACE.match(word.text) for word in arguments):
        return Files()
    valued = frozenset(word.text for word in arguments if _PERL_CODE.fullmatch(word.text))
    return Files(written=_operands(arguments, valued) if valued else [])


def _move(program: str, arguments: list[Word]) -> Files:
    sources, targets = _from_to(program, arguments)
    return Files(written=targets, removed=sources)


def _copy(program: str, arguments: list[Word]) -> Files:
    return Files(written=_from_to(program, arguments)[1])


def _from_to(program: str, arguments: list[Word]) -> tuple[list[str], list[str]]:
    """Return what is moved or copied, and its new names."""
    files = _operands(arguments, _OPTIONS_WITH_VALUE.get(program, frozenset()))
    folder = next(iter(_values(arguments, ("-t", "--target-directory"))), None)
    if folder is None:
        if len(files) < 2:
            return [], []
        *files, folder = files
        # A name without a suffix is taken for a folder if the file has one.
        like_a_folder = splitext(files[0])[1] and not splitext(folder)[1]
        if len(files) == 1 and not like_a_folder and not folder.endswith("/") and folder not in (".", ".."):
            return files, [folder]
    return files, [join(folder, basename(one.rstrip("/"))) for one in files]


def _remove(program: str, arguments: list[Word]) -> Files:
    return Files(removed=_operands(arguments))


def _write(program: str, arguments: list[Word]) -> Files:
    return Files(written=_operands(arguments, _OPTIONS_WITH_VALUE.get(program, frozenset())))


def _dd(program: str, arguments: list[Word]) -> Files:
    given = [word.text for word in arguments if word.literal]
    return Files(written=[text.removeprefix("of=") for text in given if text.startswith("of=")])


_EFFECTS: dict[str, Callable[[str, list[Word]], Files]] = {
    "sed": _sed,
    "perl": _perl,
    "mv": _move,
    "cp": _copy,
    "install": _copy,
    "rm": _remove,
    "unlink": _remove,
    "tee": _write,
    "touch": _write,
    "truncate": _write,
    "dd": _dd,
}


def _operands(words: list[Word], valued: frozenset[str] = frozenset()) -> list[str]:
    """Return the words that are neither options nor an option's value; none if that is unknown until it runs."""
    operands: list[str] = []
    before, options_end = "", False
    for word in words:
        if not word.literal:
            return []
        if word.text == "--" and not options_end:
            options_end = True
        elif before not in valued and (options_end or not word.text.startswith("-")):
            operands.append(word.text)
        before = word.text
    return operands


def _values(words: list[Word], options: tuple[str, ...]) -> list[str]:
    """Return what follows one of these options."""
    return [value.text for option, value in pairwise(words) if option.text in options and value.literal]


def _add(files: list[str], paths: list[str], cwd: str | None, most: int = MOST) -> None:
    for path in paths:
        if len(files) < most and path and not _NO_FILE.match(path) and (cwd or isabs(path)):
            files.append(normpath(join(cwd or "/", path)))


def _lasting(paths: list[str], cwd: str) -> list[str]:
    """Leave out temporary files outside the project."""
    kept = (path for path in paths if not path.startswith(_TEMPORARY) or path.startswith(f"{cwd}/"))
    return list(dict.fromkeys(kept))
