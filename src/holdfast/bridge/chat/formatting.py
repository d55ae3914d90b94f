"""Markdown as plain text with marked ranges, so that no text can break a send. Pure, no I/O."""

from __future__ import annotations

import re

from holdfast.bridge.chat.splitting import FENCE, units
from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A formatted range, counted in UTF-16 units."""

    kind: str
    """bold, code, pre or text_link, as Telegram names them."""
    offset: int
    length: int
    detail: str | None = None
    """The language of a code block, the address of a link."""


_INLINE = re.compile(
    r"(?P<code>`(?P<code_text>[^`\n]+)`)"
    r"|(?P<bold>\*\*(?P<bold_text>[^*\n]+)\*\*)"
    r"|(?P<link>\[(?P<link_text>[^\]\[\n]+)\]\((?P<link_to>https?://[^\s()<>]+)\))"
)
_HEADING = re.compile(r"#{1,6} +(?P<text>\S.*)")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,32}")


def formatted(text: str) -> tuple[str, list[Span]]:
    """Return a text without its Markdown marks, and the ranges they formatted."""
    page = _Page()
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        end = _closing(lines, number) if line.startswith(FENCE) else None
        if end is not None and end > number + 1:
            language = _LANGUAGE.fullmatch(line[3:].strip())
            page.add("\n".join(lines[number + 1 : end]), "pre", language.group() if language else None)
            number = end
        elif heading := _HEADING.fullmatch(line):
            page.add(heading["text"].rstrip(" #") or line, "bold")
        else:
            _inline(page, line)
        number += 1
        if number < len(lines):
            page.add("\n")
    return page.text, page.spans


class _Page:
    """The text so far and its length, so that each addition is counted once."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._units = 0
        self.spans: list[Span] = []

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def add(self, text: str, kind: str | None = None, detail: str | None = None) -> None:
        length = units(text)
        if kind is not None and text.strip():
            self.spans.append(Span(kind, self._units, length, detail))
        self._parts.append(text)
        self._units += length


def _closing(lines: list[str], opening: int) -> int | None:
    """Find the line that closes a code block; None if none does."""
    return next((n for n in range(opening + 1, len(lines)) if lines[n].startswith(FENCE)), None)


def _inline(page: _Page, line: str) -> None:
    at = 0
    for mark in _INLINE.finditer(line):
        page.add(line[at : mark.start()])
        if mark["code"]:
            page.add(mark["code_text"], "code")
        elif mark["bold"]:
            page.add(mark["bold_text"], "bold")
        else:
            page.add(mark["link_text"], "text_link", mark["link_to"])
        at = mark.end()
    page.add(line[at:])
