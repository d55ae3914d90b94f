"""What is written to a terminal: text that came from outside cannot steer it, nor look like a line of ours.

Paths, titles, names, messages and errors come from agents, repositories and clients. `screened` escapes what steers a
terminal in everything that a command prints; `say` prints one line and no more, whatever is in it.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterator
from typing import TextIO

# C0 without tab and line feed, DEL, C1; marks, overrides and isolates of direction; line and paragraph separators; byte
# order mark, annotations, tags (which nobody sees), and halves of characters.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)

QUOTE_MARK = "  | "
_BLANK = (
    *(("\u034f", "\u034f"), ("\u115f", "\u1160"), ("\u17b4", "\u17b5"), ("\u180b", "\u180f"), ("\u2800", "\u2800")),
    *(("\u3164", "\u3164"), ("\ufe00", "\ufe0f"), ("\uffa0", "\uffa0"), ("\U000e0100", "\U000e01ef")),
)
"""Letters, signs and marks that count as printable and show nothing."""


def visible(text: str) -> str:
    """`text` with every character escaped that steers a terminal; line feeds and tabs stay. JSON stays JSON."""
    return _STEERING.sub(_escaped, text)


def one_line(text: str) -> str:
    """`text` as it can be put on one line of a terminal."""
    return visible(text).replace("\n", "\\n")


def say(text: str, *, file: TextIO | None = None, flush: bool = False) -> None:
    """Print one line."""
    print(one_line(text), file=file, flush=flush)


def quoted_block(text: str) -> str:
    """The whole of a text from outside that somebody is to judge: every line of it on the screen begins with `  | `.

    A terminal breaks long lines, so that a text with enough spaces in it could put a line of its choice at the left.
    """
    columns = shutil.get_terminal_size().columns - len(QUOTE_MARK) if sys.stdout.isatty() else sys.maxsize
    lines = [piece for line in text.split("\n") for piece in _pieces(plain(line), max(columns, 8))]
    return "\n".join(QUOTE_MARK + line for line in lines)


def plain(text: str) -> str:
    """`text` with everything escaped that a person would not see: what steers, and what shows nothing."""
    return "".join(char if _shows(char) else char.encode("unicode_escape").decode() for char in text)


def _shows(char: str) -> bool:
    return char.isprintable() and not any(first <= char <= last for first, last in _BLANK)


def _pieces(line: str, columns: int) -> Iterator[str]:
    """A line in pieces that fit; characters of Eastern scripts take two columns, and some do in some terminals."""
    if line.isascii() and len(line) <= columns:
        yield line
        return
    piece, used = "", 0
    for char in line:
        width = 2 if unicodedata.east_asian_width(char) in "WFA" else 1
        if used + width > columns:
            yield piece
            piece, used = "", 0
        piece, used = piece + char, used + width
    yield piece


def write_own(text: str, stream: TextIO) -> None:
    """Write text of our own with the colours in it; what it quotes went through `one_line`."""
    (stream.screened if isinstance(stream, ScreenedStream) else stream).write(text)


class ScreenedStream(io.TextIOBase):
    """A stream that takes any text: what steers a terminal, or is unknown to its encoding, is escaped."""

    def __init__(self, screened: TextIO) -> None:
        self.screened = screened

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream behind."""
        return self.screened.encoding or "utf-8"

    def write(self, text: str) -> int:
        """Write `text`, escaped."""
        self.screened.write(visible(text).encode(self.encoding, "backslashreplace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        """Pass on what is buffered."""
        self.screened.flush()

    def isatty(self) -> bool:
        """Whether somebody is looking."""
        return self.screened.isatty()

    def fileno(self) -> int:
        """The descriptor behind."""
        return self.screened.fileno()

    def writable(self) -> bool:
        """Always."""
        return True


@contextlib.contextmanager
def screened() -> Iterator[None]:
    """Screen standard output and standard error of what is run inside."""
    with contextlib.ExitStack() as streams:
        if sys.stdout is not None:
            streams.enter_context(contextlib.redirect_stdout(ScreenedStream(sys.stdout)))
        if sys.stderr is not None:
            streams.enter_context(contextlib.redirect_stderr(ScreenedStream(sys.stderr)))
        yield


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
