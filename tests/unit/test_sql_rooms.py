"""SQL stands in queries and in the store, and nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.growth import SOURCES

ELSEWHERE = {"handoff/staging.py": "a database of its own, which it makes and unlinks"}
"""Files with SQL that is not of the store, and why."""
_STATEMENT = re.compile(r"\s*(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|WITH \w+ AS|CREATE TABLE|PRAGMA)\s[^.]*\Z")
_METHODS = ("one", "all", "run")


def _is_room(path: Path) -> bool:
    return path.parts[0] == "store" or any(part.removesuffix(".py").endswith("queries") for part in path.parts)


def _sql_in(source: str) -> Iterator[int]:
    """The lines where a transaction is asked something, or where a statement is written."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(ast.Attribute(ast.Name("tx") | ast.Attribute(attr="_tx"), method)) if method in _METHODS:
                yield node.lineno
            case ast.Constant(str() as text) if _STATEMENT.match(text):
                yield node.lineno


def test_sql_stands_in_queries_and_in_the_store_alone() -> None:
    files = {path.relative_to(SOURCES): path.read_text() for path in SOURCES.rglob("*.py")}
    found = {str(path): list(_sql_in(text)) for path, text in files.items() if not _is_room(path)}
    strays = {path: lines for path, lines in found.items() if lines and path not in ELSEWHERE}
    assert strays == {}, "move it to the queries.py (or a *_queries.py) of its package"
    assert [path for path in ELSEWHERE if not found[path]] == [], "no longer there"


@pytest.mark.parametrize(
    "source",
    [
        'tx.one("SELECT 1")',
        "tx.run(sql, id=1)",
        "self._tx.all(text)",
        'sql = "SELECT id FROM asks"',
        'f"DELETE FROM {table} WHERE x"',
        'connection.execute("PRAGMA quick_check(1)")',
    ],
)
def test_sql_is_noticed_however_it_is_written(source: str) -> None:
    assert list(_sql_in(source))


@pytest.mark.parametrize("source", ["tx.now()", "runner.run(sql)", '"Select one of them."', '"""UPDATE me. Please."""'])
def test_what_is_no_sql_is_let_be(source: str) -> None:
    assert not list(_sql_in(source))
