"""`holdfast man`: the manual page, made from the table of commands and their parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from holdfast.cli import COMMANDS, build_parser
from holdfast.cli.common import described_parser
from holdfast.cli.help import PROMISES
from holdfast.cli.parsers import Spelled, spelled
from holdfast.version import __version__

DESCRIPTION = """\
Prints the manual page of Holdfast, for man.

examples:
  holdfast man | man -l -                                     read it
  holdfast man > ~/.local/share/man/man1/holdfast.1           keep it: `man holdfast`
"""
BEGINNING = """\
.SH NAME
holdfast \\- keeps a coding agent's work alive across everything that ends it
.SH SYNOPSIS
.B holdfast
[\\fIcommand\\fR] [\\fIoption\\fR ...]
.SH DESCRIPTION
Your agent's work belongs to the project, not to the process that did it. Without a command,
.B holdfast
lists what is unfinished on this machine, newest first, with the command that continues each."""
ENDING = """\
.SH EXIT STATUS
0 done, 1 refused or failed, 2 bad usage; of
.B holdfast status
3 if no daemon is running.
.SH ENVIRONMENT
.TP
.B HOLDFAST_HOME
the data directory (default ~/.holdfast)
.TP
.BR HOLDFAST_HOST ", " HOLDFAST_PORT
where HTTP listens
.TP
.B HOLDFAST_DATABASE_URL
PostgreSQL instead of the embedded store
.TP
.B NO_COLOR
no colours
.SH FILES
.TP
.I ~/.holdfast
everything that Holdfast keeps"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    described_parser(commands, "man", DESCRIPTION).set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the page."""
    print("\n".join(page()))
    return 0


def page() -> Iterator[str]:
    """Yield the lines of the page, in roff."""
    yield f'.TH HOLDFAST 1 "" "holdfast {__version__}" "User Commands"'
    yield BEGINNING
    found = {one.words: one for one in spelled(build_parser())}
    yield from _options(found[()])
    for group, promise in PROMISES.items():
        yield f'.SH "{_roff(f"{group} {promise}".upper())}"'
        for command in COMMANDS:
            if command.group == group:
                words = tuple(command.name.split())
                yield from _entry(found[words], command.sentence, command.aliases)
                for name, text in found[words].actions.items():
                    yield from _entry(found[(*words, name)], text)
    yield ENDING


def _entry(one: Spelled, sentence: str, aliases: tuple[str, ...] = ()) -> Iterator[str]:
    arguments = "".join(f" {_argument(argument)}" for argument in one.arguments)
    yield ".TP"
    yield f".B {_roff(' '.join(('holdfast', *one.words)))}\\fR{_roff(arguments)}"
    also = f" Also: {', '.join(aliases)}." if aliases else ""
    ended = sentence if sentence.endswith((".", "?")) else f"{sentence}."
    yield _roff(ended[:1].upper() + ended[1:]) + also
    yield ".RS"
    yield from _options(one)
    yield ".RE"


def _argument(argument: argparse.Action) -> str:
    name = str(argument.metavar or argument.dest)
    shown = f"{name}..." if argument.nargs in ("+", "*") else name
    return f"[{shown}]" if argument.nargs in ("?", "*") else shown


def _options(one: Spelled) -> Iterator[str]:
    for option in one.options:
        if one.words and option.dest == "home":  # all have it
            continue
        value = "" if option.nargs == 0 else f" {option.metavar or '|'.join(map(str, option.choices or ('VALUE',)))}"
        yield ".TP"
        yield f".B {_roff(', '.join(option.option_strings))}\\fR{_roff(value)}"
        yield _roff((option.help or "").replace("%%", "%"))


def _roff(text: str) -> str:
    """Return a text as roff prints it: a leading dot or quote would be a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
