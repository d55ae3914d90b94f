"""Secrets of many kinds, to measure how many the detector finds. In the files each one is broken by a dot in the
middle, so that no scanner takes them for leaks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

BREAK = "·"


@dataclass(frozen=True, slots=True)
class Planted:
    """A text with a secret in it."""

    kind: str
    text: str
    secret: str


def planted(name: str) -> list[Planted]:
    """Return the corpus of a file."""
    listed = json.loads((Path(__file__).parent / name).read_text())
    return [Planted(one["kind"], one["text"].replace(BREAK, ""), one["secret"].replace(BREAK, "")) for one in listed]


def held_out() -> tuple[list[Planted], list[str]]:
    """Return the corpus that somebody else wrote before the rules: its secrets, and lines without any."""
    return _corpus("held_out.json")


def families() -> tuple[list[Planted], list[str]]:
    """Return the corpus that the rules were made with: a line or more of each family, and lines that look like them."""
    return _corpus("families.json")


def looked_at() -> tuple[list[Planted], list[str]]:
    """Return the exams that somebody else wrote blind, with which the rules were mended since."""
    return _corpus("looked_at.json")


def unseen() -> tuple[list[Planted], list[str]]:
    """Return the exam that somebody else wrote blind, and that nobody who writes rules has looked at: keep it so."""
    return _corpus("unseen.json")


def _corpus(name: str) -> tuple[list[Planted], list[str]]:
    content = json.loads((Path(__file__).parent / name).read_text())
    found = [
        Planted(one["kind"], one["text"].replace(BREAK, ""), secret.replace(BREAK, ""))
        for one in content["secrets"]
        for secret in one["secrets"]
    ]
    return found, content["clean"]
