"""The SQL of full-text search, a variant for each engine; functions of a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.reasoning.fulltext import INDEXED, Term, indexed, match_expression
from holdfast.reasoning.model import Status
from holdfast.reasoning.queries.sessions import Scope, conditions
from holdfast.store import Tx
from holdfast.store.containing import containing

if TYPE_CHECKING:
    from holdfast.reasoning.results import FoundThought

INDEXED_AT_ONCE = 200
LATELY, LONGEST_LOOKED_AT = 3_000, 20_000
"""Thoughts that are searched without the index, which is slow for the first letters of words; the bytes of each."""

_RANKED = {
    "sqlite": (
        "SELECT t.session_id, t.number, s.title, s.status FROM thoughts_fts f"
        " JOIN thoughts t ON t.row_id = f.rowid JOIN sessions s ON s.id = t.session_id"
        " WHERE thoughts_fts MATCH :match AND {scope} ORDER BY f.rank, t.row_id DESC LIMIT :limit OFFSET :offset"
    ),
    "postgres": (
        "SELECT t.session_id, t.number, s.title, s.status FROM thoughts_fts f"
        " JOIN thoughts t ON t.row_id = f.row_id JOIN sessions s ON s.id = t.session_id"
        " WHERE f.words @@ to_tsquery('simple', :match) AND {scope}"
        " ORDER BY ts_rank(f.words, to_tsquery('simple', :match)) DESC, t.row_id DESC LIMIT :limit OFFSET :offset"
    ),
}
# On PostgreSQL a row may be committed after later ones, so the thousand rows before the newest are checked as well.
_PENDING = {
    "sqlite": (
        "SELECT row_id, substr(content, 1, :indexed) AS content FROM {table}"
        " WHERE row_id > (SELECT coalesce(max(id), 0) FROM {index}_docsize) ORDER BY row_id LIMIT :limit"
    ),
    "postgres": (
        "SELECT row_id, substr(content, 1, :indexed) AS content FROM {table} t"
        " WHERE row_id > (SELECT coalesce(max(row_id), 0) - 1000 FROM {index})"
        " AND NOT EXISTS (SELECT 1 FROM {index} i WHERE i.row_id = t.row_id) ORDER BY row_id LIMIT :limit"
    ),
}
_ADD = {
    "sqlite": "INSERT INTO {index} (rowid, content) VALUES (:row_id, :content)",
    "postgres": (
        "INSERT INTO {index} (row_id, words) VALUES (:row_id, to_tsvector('simple', :content))"
        " ON CONFLICT (row_id) DO NOTHING"
    ),
}


def hits(tx: Tx, scope: Scope, terms: Sequence[Term], limit: int, offset: int = 0) -> list[FoundThought]:
    from holdfast.reasoning.results import FoundThought

    where, params = conditions(scope, "s.")
    rows = tx.all(
        _RANKED[tx.engine].format(scope=where),
        **params,
        match=match_expression(tx.engine, terms),
        limit=limit,
        offset=offset,
    )
    return [FoundThought(row["session_id"], row["number"], row["title"], Status(row["status"])) for row in rows]


_NEWEST = {
    "sqlite": (
        "SELECT t.row_id, t.session_id, t.number FROM thoughts_fts f"
        " CROSS JOIN thoughts t ON t.row_id = f.rowid JOIN sessions s ON s.id = t.session_id"
        " WHERE thoughts_fts MATCH :match AND {scope} ORDER BY f.rowid DESC LIMIT :limit"
    ),
    "postgres": (
        "SELECT t.row_id, t.session_id, t.number FROM thoughts_fts f"
        " JOIN thoughts t ON t.row_id = f.row_id JOIN sessions s ON s.id = t.session_id"
        " WHERE f.words @@ to_tsquery('simple', :match) AND {scope} ORDER BY f.row_id DESC LIMIT :limit"
    ),
}


def newest(tx: Tx, scope: Scope, terms: Sequence[Term], limit: int) -> list[tuple[int, str, int]]:
    """Return the newest thoughts with all terms: row, session and number. Quick also for words that are everywhere."""
    where, params = conditions(scope, "s.")
    rows = tx.all(
        _NEWEST[tx.engine].format(scope=where), **params, match=match_expression(tx.engine, terms), limit=limit
    )
    return [(row["row_id"], row["session_id"], row["number"]) for row in rows]


def containing_lately(tx: Tx, scope: Scope, words: Sequence[str], limit: int) -> list[tuple[int, str, int]]:
    """Return those of the last thoughts with all of these texts somewhere in them, as `newest` does."""
    where, params = conditions(scope, "s.")
    holds, looked_for = containing(tx.engine, ("t.content",), words)
    rows = tx.all(
        "SELECT t.row_id, t.session_id, t.number FROM thoughts t JOIN sessions s ON s.id = t.session_id"  # noqa: S608
        " WHERE t.row_id > (SELECT coalesce(max(row_id), 0) - :lately FROM thoughts)"
        f" AND octet_length(t.content) < :longest AND {holds} AND {where} ORDER BY t.row_id DESC LIMIT :limit",
        lately=LATELY,
        longest=LONGEST_LOOKED_AT,
        limit=limit,
        **params,
        **looked_for,
    )
    return [(row["row_id"], row["session_id"], row["number"]) for row in rows]


def titles(tx: Tx, words: Sequence[str], looked_at: int) -> list[tuple[str, str, str]]:
    """Return id, title and tags, as stored, of those of the sessions used last that may have these folded words.

    Only the case of ASCII is folded here; what has other characters may have any word."""
    holds, params = containing(tx.engine, ("title", "tags"), [word for word in words if word.isascii()])
    only_ascii = "octet_length(title) = length(title) AND octet_length(tags) = length(tags)"
    rows = tx.all(
        "SELECT id, title, tags FROM (SELECT id, title, tags, updated_at FROM sessions WHERE status <> 'deleted'"  # noqa: S608
        f" ORDER BY updated_at DESC LIMIT :looked_at) s WHERE NOT ({only_ascii}) OR ({holds})"
        " ORDER BY updated_at DESC",
        looked_at=looked_at,
        **params,
    )
    return [(row["id"], row["title"], row["tags"]) for row in rows]


def unindexed(tx: Tx, table: str, index: str, limit: int) -> list[tuple[int, str]]:
    """Return rows of a table that are not indexed yet, in order, each with its text."""
    rows = tx.all(_PENDING[tx.engine].format(table=table, index=index), indexed=INDEXED, limit=limit)
    return [(row["row_id"], row["content"]) for row in rows]


def place_of(tx: Tx, scope: Scope, row_id: int) -> tuple[int, str, int] | None:
    """Return row, session and number of a thought, if its session is in scope."""
    where, params = conditions(scope, "s.")
    row = tx.one(
        "SELECT t.session_id, t.number FROM thoughts t JOIN sessions s ON s.id = t.session_id"  # noqa: S608
        f" WHERE t.row_id = :row_id AND {where}",
        row_id=row_id,
        **params,
    )
    return None if row is None else (row_id, row["session_id"], row["number"])


def fill(tx: Tx, table: str, index: str) -> bool:
    """Index some of a table's rows in order; says whether there may be more.

    The index itself says how far it has come, so a restored, salvaged or migrated store is indexed from the start.
    """
    rows = unindexed(tx, table, index, INDEXED_AT_ONCE)
    for row_id, content in rows:
        tx.run(_ADD[tx.engine].format(index=index), row_id=row_id, content=indexed(content))
    return len(rows) == INDEXED_AT_ONCE
