"""Makes outside text safe for a terminal: it cannot control the terminal, nor look like a line of ours.

Paths, titles, names, messages and errors come from agents, repositories and clients. `screened` escapes control
characters in everything that a command prints; `say` prints exactly one line, whatever is in it.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import unicodedata
from collections.abc import Iterator
from typing import TextIO

# C0 without tab and line feed, DEL, C1; direction marks, overrides and isolates; line and paragraph separators; byte
# order mark, annotations, (invisible) tags, and lone surrogates.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)

QUOTE_MARK = "  | "
_BLANK = (
    *(("\u034f", "\u034f"), ("\u115f", "\u1160"), ("\u17b4", "\u17b5"), ("\u180b", "\u180f"), ("\u2800", "\u2800")),
    *(("\u3164", "\u3164"), ("\ufe00", "\ufe0f"), ("\uffa0", "\uffa0"), ("\U000e0100", "\U000e01ef")),
)
"""Characters that count as printable and show nothing."""


def visible(text: str) -> str:
    """Escape every character that controls a terminal; line feeds and tabs stay. JSON stays JSON."""
    return _STEERING.sub(_escaped, text)


def one_line(text: str) -> str:
    """Escape `text` so that it stays on one line of a terminal."""
    return visible(text).replace("\n", "\\n")


def say(text: str, *, file: TextIO | None = None, flush: bool = False) -> None:
    """Print one line."""
    print(one_line(text), file=file, flush=flush)


def quoted_block(text: str) -> str:
    """Quote a whole outside text for review: every line on the screen begins with `  | `.

    A terminal wraps long lines, so a text with enough spaces could otherwise put a line of its choice at the left edge.
    """
    import shutil  # imported late to keep the daemon's start fast

    columns = shutil.get_terminal_size().columns - len(QUOTE_MARK) if sys.stdout.isatty() else sys.maxsize
    lines = [piece for line in text.split("\n") for piece in _pieces(plain(line), max(columns, 8))]
    return "\n".join(QUOTE_MARK + line for line in lines)


def plain(text: str) -> str:
    """Escape everything in `text` that a person would not see: control characters and invisible ones."""
    return "".join(char if _shows(char) else char.encode("unicode_escape").decode() for char in text)


def _shows(char: str) -> bool:
    return char.isprintable() and (char.isascii() or not any(first <= char <= last for first, last in _BLANK))


def _pieces(line: str, columns: int) -> Iterator[str]:
    """Split a line into pieces that fit; East Asian characters take two columns, some only in some terminals."""
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
    """Write our own text with its colours; quoted parts went through `one_line` before."""
    (stream.screened if isinstance(stream, ScreenedStream) else stream).write(text)


class ScreenedStream(io.TextIOBase):
    """A stream for any text: control characters, and those that its encoding lacks, are escaped."""

    def __init__(self, screened: TextIO) -> None:
        self.screened = screened

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the underlying stream."""
        return self.screened.encoding or "utf-8"

    def write(self, text: str) -> int:
        """Write `text`, escaped."""
        self.screened.write(visible(text).encode(self.encoding, "backslashreplace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        """Flush the underlying stream."""
        self.screened.flush()

    def isatty(self) -> bool:
        """Return whether the underlying stream is a terminal."""
        return self.screened.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the underlying stream."""
        return self.screened.fileno()

    def writable(self) -> bool:
        return True


@contextlib.contextmanager
def screened() -> Iterator[None]:
    """Escape control characters in standard output and standard error inside the block."""
    with contextlib.ExitStack() as streams:
        if sys.stdout is not None:
            streams.enter_context(contextlib.redirect_stdout(ScreenedStream(sys.stdout)))
        if sys.stderr is not None:
            streams.enter_context(contextlib.redirect_stderr(ScreenedStream(sys.stderr)))
        yield


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
