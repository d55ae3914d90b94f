"""What the parsers of all commands say about them: for completion and the manual page."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple


class Spelled(NamedTuple):
    """A command or an action of one, such as `teams ask`."""

    words: tuple[str, ...]
    parser: argparse.ArgumentParser

    @property
    def actions(self) -> dict[str, str]:
        """The words that may follow, each with its line of help."""
        return {
            choice.dest: choice.help or ""
            for below in self.parser._actions
            if isinstance(below, argparse._SubParsersAction)
            for choice in below._choices_actions
        }

    @property
    def options(self) -> list[argparse.Action]:
        """Its options, except --help, which all have."""
        return [one for one in self.parser._actions if one.option_strings and "--help" not in one.option_strings]

    @property
    def arguments(self) -> list[argparse.Action]:
        """Its arguments that are not options."""
        return [
            one
            for one in self.parser._actions
            if not one.option_strings and not isinstance(one, argparse._SubParsersAction)
        ]


def spelled(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[Spelled]:
    """Yield a parser and everything below it."""
    yield Spelled(words, parser)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from spelled(below, (*words, name))
