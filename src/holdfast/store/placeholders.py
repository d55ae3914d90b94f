"""Converts the store's `:name` parameters to psycopg's `%(name)s`."""

from __future__ import annotations

import re
from functools import lru_cache

# First everything that may contain a colon that is not a parameter: strings, quoted names, comments, casts.
_TOKEN = re.compile(
    r"'(?:[^']|'')*'"
    r'|"(?:[^"]|"")*"'
    r"|--[^\n]*"
    r"|/\*.*?\*/"
    r"|::"
    r"|:(?P<name>[A-Za-z_]\w*)"
    r"|%",
    re.DOTALL,
)


@lru_cache(maxsize=2000)
def for_psycopg(sql: str, nulls: frozenset[str] = frozenset()) -> str:
    """Return the statement in psycopg's notation.

    Parameters named in `nulls` become the word NULL, because PostgreSQL cannot tell the type of a bound null in
    `:name IS NULL`, which SQLite accepts.
    """

    def replace(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return match[0].replace("%", "%%")
        return "NULL" if name in nulls else f"%({name})s"

    return _TOKEN.sub(replace, sql)
