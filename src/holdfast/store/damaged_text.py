"""Text that is not UTF-8 because a file was damaged in it: read byte for byte, and marked until it is stored again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

REPLACEMENT = "\ufffd"


class DamagedText(bytes):
    """The bytes of a text that cannot be decoded; SQLite takes them back with CAST(? AS TEXT)."""

    __slots__ = ()

    def readable(self) -> str:
        """The text with U+FFFD for what cannot be read."""
        return self.decode("utf-8", "replace")


def text(stored: bytes) -> str | DamagedText:
    """What is stored as text, decoded if it can be."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return DamagedText(stored)


def byte_faithful(columns: Iterable[str]) -> str:
    """A select list that gives each of these quoted columns with its type, text as bytes; `values` takes its rows."""
    return ", ".join(f"typeof({c}), CASE typeof({c}) WHEN 'text' THEN CAST({c} AS BLOB) ELSE {c} END" for c in columns)


def values(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The columns of a row that was selected with `byte_faithful`."""
    return tuple(text(value) if kind == "text" else value for kind, value in zip(row[::2], row[1::2], strict=True))


def marks(row: Iterable[Any]) -> str:
    """The placeholders with which SQLite stores this row as it was."""
    return ", ".join("CAST(? AS TEXT)" if isinstance(value, DamagedText) else "?" for value in row)
