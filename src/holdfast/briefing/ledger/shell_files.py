"""Files that a shell command names: what it shows, and what it writes, as far as the command itself tells.

Claude Code reads and edits through the shell as well. Only plain uses of a few programs are read off; of the rest no
file is told, since a ledger rather leaves out a file than tells one that was never opened.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from posixpath import isabs, join, normpath

from holdfast.protocol.hooks.shell import Command, read

SHOWS = frozenset({"cat", "head", "tail", "nl", "bat", "less"})
_HINT = re.compile(r"\b(?:cat|head|tail|nl|bat|less|sed|tee)\b")
_HERE_DOCUMENT = re.compile(r"(?:^|[;&|\n])[^\S\n]*+cat\s*>{1,2}\s*([\w./~@%+=:-]++)\s*<<")
_VALUED = frozenset({"-n", "-c", "-e", "-f", "-l"})
"""Options whose value is the next word."""
_NO_FILE = re.compile(r"-|/dev/|/proc/|.*[*?\[{~]")
MOST = 10


@dataclass(frozen=True, slots=True)
class Named:
    """The files of one command, with absolute paths."""

    shown: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)


def files_in(command: str, cwd: str) -> Named:
    """What a command shows and writes, when it is run in `cwd`."""
    named = Named()
    if not _HINT.search(command):
        return named
    at: str | None = cwd
    _add(named.written, _HERE_DOCUMENT.findall(command), None if "cd " in command else cwd)
    for one in read(command).commands:
        if not one.words or not one.words[0].literal:
            continue
        program, files = one.words[0].text, _operands(one)
        if program in ("cd", "pushd"):
            at = normpath(join(at, files[0])) if at and len(one.words) == 2 and files else None
        elif program in SHOWS:
            _add(named.shown, files, at)
        elif program == "tee":
            _add(named.written, files, at)
        elif program == "sed":
            is_edit = any(re.match(r"-[a-zA-Z]*i|--in-place", word.text) for word in one.words)
            has_script = any(word.text in ("-e", "-f") for word in one.words)
            # Without -e or -f the first word is what sed is to do.
            _add(named.written if is_edit else named.shown, files if has_script else files[1:], at)
    return named


def _operands(command: Command) -> list[str]:
    """Its words that are neither options nor an option's value; none where only a run could tell."""
    found: list[str] = []
    valued = _VALUED - {"-n"} if command.words[0].text == "sed" else _VALUED
    before = ""
    for word in command.words[1:]:
        if not word.literal:
            return []
        if before not in valued and not word.text.startswith("-"):
            found.append(word.text)
        before = word.text
    return found


def _add(files: list[str], paths: list[str], cwd: str | None) -> None:
    for path in paths:
        if len(files) < MOST and path and not _NO_FILE.match(path) and (cwd or isabs(path)):
            files.append(normpath(join(cwd or "/", path)))
