"""The picture of a terminal is well-formed, shows every character in its cell, and can be read aloud."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

from holdfast.demo.picture import COLOURS, COLUMN, MARGIN, WINDOW, drawn_as_svg, pictured

SVG = "{http://www.w3.org/2000/svg}"
LINES = [
    "Before the first scene.",
    "",
    '1. A title with <marks> & "quotes"',
    "   runs a check: FAILED (2 != 1)",
    "",
    "2. Left out",
    "   nobody sees this",
    "",
    "3. The end",
    "   kill -9 17",
    "",
    "   │ quoted: OK",
]


def _parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - our own picture


def _texts(svg: str) -> list[tuple[str, str, float, float]]:
    """Each piece of text below the title bar: colour, text, left end and width."""
    _, *shown = _parsed(svg).iter(f"{SVG}text")
    return [
        (one.attrib["class"], one.text or "", float(one.attrib["x"]), float(one.attrib["textLength"])) for one in shown
    ]


def test_a_picture_shows_the_scenes_that_are_wanted_and_says_that_others_are_left_out() -> None:
    shown = [text for _, text, _, _ in _texts(pictured(LINES, "cut-off", (1, 3)))]
    assert shown[:2] == ["$", "holdfast demo cut-off --fast"]
    assert '1. A title with <marks> & "quotes"' in shown and "⋮" in shown and "3. The end" in shown
    assert not any("Left out" in text or "nobody" in text or "Before" in text for text in shown)


def test_each_character_is_drawn_in_its_cell_in_the_colour_of_what_it_says() -> None:
    pieces = {
        text: (colour, (left - MARGIN) / COLUMN, width) for colour, text, left, width in _texts(drawn_as_svg(LINES, ""))
    }
    for line in LINES:
        for text in (text for text in pieces if text in line):
            assert round(pieces[text][1]) == line.index(text)
    assert all(abs(width - COLUMN * len(text)) < 0.01 for text, (_, _, width) in pieces.items())
    assert [pieces[text][0] for text in ("FAILED", "kill -9", "3. The end", "│", "quoted: OK")] == [
        *("bad", "bad", "title", "faint", "quoted")
    ]


def test_a_picture_has_a_title_and_its_text_for_who_cannot_see_it_and_needs_nothing_from_elsewhere() -> None:
    svg = pictured(LINES, "cut-off", (1, 3))
    root = _parsed(svg)
    assert root.findtext(f"{SVG}title") == "holdfast demo cut-off"
    assert "kill -9 17 quoted: OK" in str(root.findtext(f"{SVG}desc"))
    assert svg.isascii() and "href" not in svg and "url(" not in svg and "<script" not in svg


def test_every_colour_can_be_read_on_the_window() -> None:
    contrasts = {name: _contrast(colour, WINDOW) for name, colour in COLOURS.items()}
    assert {name: found for name, found in contrasts.items() if found < 5} == {}


def _contrast(one: str, other: str) -> float:
    lights = sorted(_luminance(colour) for colour in (one, other))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at:end], 16) / 255 for at, end in pairwise((1, 3, 5, 7))]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
