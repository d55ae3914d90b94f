"""Draws what a terminal shows as an SVG picture: real text, no script, no font and no file from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from xml.sax.saxutils import escape

COLUMN, ROW, BASELINE = 8.4, 19, 14
"""Width and height of a character's cell, and how deep in it the text stands, in pixels."""
MARGIN, BAR = 20, 38
"""Space around the text, and the height of the window's title bar."""
COLOURS = {
    "title": "#ffffff",
    "plain": "#c9d1d9",
    "quoted": "#a5d6ff",
    "faint": "#8b949e",
    "bad": "#ff9492",
    "good": "#7ee787",
}
"""Of at least 7 to 1 against the window, which is dark on any page."""
WINDOW, EDGE, TITLE_BAR = "#0d1117", "#3d444d", "#1c2128"
SCENE = re.compile(r"\d\. ")
QUOTED = re.compile(r"(?P<faint> +[│|](?: |$))")
MARKED = re.compile(r"(?P<bad>kill -9|FAILED|fails\b)|(?P<good>(?<=: )OK\b)|(?P<faint>^\$|^ *⋮)")

OMITTED = "   ⋮"
"""In place of scenes that are left out."""

Run = tuple[int, str, str]
"""A piece of a line in one colour: its column, its text and the colour's name."""


def pictured(lines: Sequence[str], name: str, scenes: Container[int]) -> str:
    """Return the picture of a demo from its output, of some of its scenes."""
    starts = [number for number, line in enumerate(lines) if SCENE.match(line)]
    ends = [*starts[1:], len(lines)]
    shown = [f"$ holdfast demo {name} --fast"]
    for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        if number in scenes:
            shown += ["", *_without_empty_end(lines[start:end])]
        elif shown[-1] != OMITTED:
            shown.append(OMITTED)
    return drawn_as_svg(shown, f"holdfast demo {name}")


def _without_empty_end(lines: Sequence[str]) -> Sequence[str]:
    return lines if lines[-1] else lines[:-1]


def drawn_as_svg(lines: Sequence[str], title: str) -> str:
    """Return the picture of a terminal that shows these lines, in ASCII."""
    width = round(2 * MARGIN + COLUMN * max(map(len, lines), default=0))
    height = BAR + MARGIN + ROW * len(lines) + MARGIN - 8
    rows = [text for number, line in enumerate(lines) for text in _texts(line, BAR + MARGIN + ROW * number)]
    styles = [f".{name} {{ fill: {colour} }}" for name, colour in COLOURS.items()]
    svg = "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            ' role="img" aria-labelledby="title desc">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="desc">{escape(_sentence(lines))}</desc>',
            "<style>text { font: 14px ui-monospace, monospace; white-space: pre } .title { font-weight: 600 }",
            *styles,
            "</style>",
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10"'
            f' fill="{WINDOW}" stroke="{EDGE}"/>',
            f'<path d="M1 {BAR}V11a10 10 0 0 1 10-10H{width - 11}a10 10 0 0 1 10 10V{BAR}z" fill="{TITLE_BAR}"/>',
            *(f'<circle cx="{22 + 20 * number}" cy="{BAR / 2:g}" r="6" fill="{EDGE}"/>' for number in range(3)),
            f'<text class="faint" x="{width / 2:g}" y="{BAR / 2 + 5:g}" text-anchor="middle">{escape(title)}</text>',
            *rows,
            "</svg>",
            "",
        ]
    )
    return svg.encode("ascii", "xmlcharrefreplace").decode()


def _texts(line: str, top: int) -> Iterator[str]:
    """Each run at its column, stretched to its cells: a font of another width changes nothing."""
    for column, text, colour in _runs(line):
        place = f'x="{MARGIN + COLUMN * column:g}" y="{top + BASELINE}" textLength="{COLUMN * len(text):g}"'
        yield f'<text class="{colour}" {place} lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'


def _runs(line: str) -> Iterator[Run]:
    usual = "title" if SCENE.match(line) else "quoted" if QUOTED.match(line) else "plain"
    end = 0
    for found in (MARKED if usual == "plain" else QUOTED).finditer(line):
        yield from _run(line, end, found.start(), usual)
        yield from _run(line, found.start(), found.end(), str(found.lastgroup))
        end = found.end()
    yield from _run(line, end, len(line), usual)


def _run(line: str, start: int, end: int, colour: str) -> Iterator[Run]:
    """A part of the line without the spaces around it."""
    part = line[start:end]
    if text := part.strip():
        yield start + len(part) - len(part.lstrip()), text, colour


def _sentence(lines: Sequence[str]) -> str:
    """What is shown, as one text for who cannot see it."""
    return " ".join(word for line in lines for word in line.split() if word not in "│|⋮")
