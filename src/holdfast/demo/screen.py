"""What a demo prints: titles of scenes, events, and what an agent is told."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from holdfast.demo.tree import UNICODE, TreeLines
from holdfast.lazy_dataclass import dataclass

INDENT = "   "
MIN_WIDTH = 20

Say = Callable[[str], None]
Pause = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Screen:
    """Output of the demo."""

    say: Say
    pause: Pause
    width: int = 80
    tree_lines: TreeLines = UNICODE
    bold: Callable[[str], str] = str

    def title(self, text: str) -> None:
        """Print the title of a scene."""
        self.pause(1.0)
        self.say("")
        for part in textwrap.wrap(text, max(self.width, MIN_WIDTH), subsequent_indent=INDENT):
            self.say(self.bold(part))
        self.pause(0.7)

    def prose(self, text: str) -> None:
        """Print a sentence to the reader, wrapped to the width."""
        for part in textwrap.wrap(text, max(self.width, MIN_WIDTH)):
            self.say(part)

    def line(self, text: str, *, then: float = 0.0) -> None:
        """Print one event, wrapped to the width, and pause."""
        room = max(self.width - len(INDENT), MIN_WIDTH)
        for part in textwrap.wrap(text, room, subsequent_indent="  ") or [""]:
            self.say(INDENT + part)
        self.pause(then)

    def quote(self, text: str) -> None:
        """Print what an agent is told, word for word, with a bar before it."""
        self.say("")
        for paragraph in text.splitlines():
            for part in textwrap.wrap(paragraph, max(self.width - 5, MIN_WIDTH)) or [""]:
                self.say(f"{INDENT}{self.tree_lines.along.strip()} {part}".rstrip())
            self.pause(0.2)
        self.pause(3.0)
