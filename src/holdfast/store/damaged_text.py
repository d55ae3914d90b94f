"""Text that is not UTF-8 because the file is damaged: read byte for byte, and marked until it is stored again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

REPLACEMENT = "\ufffd"


class DamagedText(bytes):
    """The bytes of a text that cannot be decoded; stored in SQLite again with CAST(? AS TEXT)."""

    __slots__ = ()

    def readable(self) -> str:
        """Return the text with U+FFFD for the bytes that cannot be decoded."""
        return self.decode("utf-8", "replace")


def text(stored: bytes) -> str | DamagedText:
    """Decode a stored text if possible."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return DamagedText(stored)


def byte_faithful(columns: Iterable[str]) -> str:
    """Return a select list with the type of each quoted column, and text as bytes; `values` reads its rows."""
    return ", ".join(f"typeof({c}), CASE typeof({c}) WHEN 'text' THEN CAST({c} AS BLOB) ELSE {c} END" for c in columns)


def values(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the columns of a row that was selected with `byte_faithful`."""
    return tuple(text(value) if kind == "text" else value for kind, value in zip(row[::2], row[1::2], strict=True))


def marks(row: Iterable[Any]) -> str:
    """Return the placeholders with which SQLite stores this row unchanged."""
    return ", ".join("CAST(? AS TEXT)" if isinstance(value, DamagedText) else "?" for value in row)
