"""Finds secrets in rows whose column is named elsewhere: SQL INSERT, CSV, Markdown tables. Pure, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.redaction.tokens import Span
from holdfast.redaction.values import CERTAIN, LIKELY, is_placeholder, is_strong, is_word, kind_of_name

MAX_LINE_CHARS = 400
"""Characters of a heading or a row; longer lines are not a table for people."""
MAX_ROWS = 200
_NAMES = (
    "pass", "pwd", "secret", "token", "key", "pw", "contrase", "clave", "senha", "wort", "парол", "密码", "mot de",
)  # fmt: skip
_INSERT = re.compile(
    r"(?i:\binto)\s{1,4}[^\s(]{1,80}\s{0,4}\((?P<columns>[^()\n]{1,600}+)\)\s{0,20}(?i:values?)\s{0,20}(?=\()"
)
_VALUES = re.compile(
    r"\((?P<row>(?:'(?:[^'\\\n]|\\.|''){0,400}+'|\"[^\"\n]{0,400}+\"|[^'\"()\n]|\([^()\n]{0,100}+\)){1,200}+)\)[\s,]{0,20}"
)
_VALUE = re.compile(r"'(?P<single>(?:[^'\\\n]|\\.|''){0,400}+)'|\"(?P<double>[^\"\n]{0,400}+)\"|(?P<comma>,)")
_COLUMN = re.compile(r"[\w .*`\"'-]{1,40}")
_DELIMITERS = ",;|\t"


def table_spans(text: str, lowered: str) -> Iterator[Span]:
    """Yield secrets in columns that are named as such."""
    if "into" in lowered and "values" in lowered:
        yield from _inserted(text)
    if "\n" in text:
        yield from _rows(text)


def _inserted(text: str) -> Iterator[Span]:
    for found in _INSERT.finditer(text):
        secret = [kind_of_name(name.strip(' `"[]')) in (CERTAIN, LIKELY) for name in found["columns"].split(",")]
        at = found.end()
        for _ in range(MAX_ROWS if any(secret) else 0):
            row = _VALUES.match(text, at)
            if row is None:
                break
            at, column = row.end(), 0
            for value in _VALUE.finditer(text, row.start("row"), row.end("row")):
                group = value.lastgroup or "single"
                if group == "comma":
                    column += 1
                elif column < len(secret) and secret[column] and _is_secret(value[group], CERTAIN):
                    yield value.span(group)


def _rows(text: str) -> Iterator[Span]:
    at, delimiter, left = 0, "", 0
    columns: list[str | None] = []
    for line in text.split("\n"):
        start, at = at, at + len(line) + 1
        if len(line) > MAX_LINE_CHARS:
            left = 0
        elif left and line.count(delimiter) == len(columns) - 1:
            left -= 1
            for kind, (begin, value) in zip(columns, _cells(line, delimiter), strict=True):
                if kind is not None and _is_secret(value, kind):
                    yield start + begin, start + begin + len(value)
        else:
            columns, delimiter = _heading(line)
            left = MAX_ROWS if columns else 0


def _heading(line: str) -> tuple[list[str | None], str]:
    """Return the kinds of a heading's columns and their delimiter; empty if the line is not a heading."""
    lowered = line.lower()
    if any(name in lowered for name in _NAMES):
        for delimiter in _DELIMITERS:
            cells = [cell for _, cell in _cells(line, delimiter)]
            if len(cells) > 1 and all(not cell or _COLUMN.fullmatch(cell) for cell in cells):
                kinds = [kind_of_name(cell.strip("*`\"' ").replace(" ", "_")) for cell in cells]
                if any(kind in (CERTAIN, LIKELY) for kind in kinds):
                    return [kind if kind in (CERTAIN, LIKELY) else None for kind in kinds], delimiter
    return [], ""


def _cells(line: str, delimiter: str) -> list[tuple[int, str]]:
    found, at = [], 0
    for cell in line.split(delimiter):
        value = cell.strip(" \t\r`\"'*")
        found.append((at + cell.find(value) if value else at, value))
        at += len(cell) + len(delimiter)
    return found


def _is_secret(value: str, kind: str) -> bool:
    fits = len(value) >= 3 if kind == CERTAIN else is_strong(value, 8)
    return fits and " " not in value and not is_placeholder(value) and not is_word(value)
