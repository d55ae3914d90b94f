"""Full-text search over thoughts, titles and tags: what is searched for is data, never a query language."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

from holdfast.errors import BadInput
from holdfast.reasoning import queries
from holdfast.reasoning.queries import Scope
from holdfast.reasoning.views import present
from holdfast.reasoning.wording import one_line
from holdfast.store import Row, Tx
from holdfast.telling import Words

MAX_WORDS = 32
MAX_OFFSET = 10_000
TITLE_HITS = 10
TITLES_LOOKED_AT = 200
INDEXED = 200_000
"""How many characters of a thought are indexed."""
INDEXED_AT_ONCE = 200
AROUND = 100
"""How many characters a snippet shows before the first hit."""
SNIPPET = 300

_SPACED = str.maketrans(dict.fromkeys(string.punctuation, " "))

_RANKED = {
    "sqlite": (
        "SELECT t.session_id, t.number, t.branch_id, s.title, s.status FROM thoughts_fts f"
        " JOIN thoughts t ON t.row_id = f.rowid JOIN sessions s ON s.id = t.session_id"
        " WHERE thoughts_fts MATCH :match AND {scope} ORDER BY f.rank, t.row_id DESC LIMIT :limit OFFSET :offset"
    ),
    "postgres": (
        "SELECT t.session_id, t.number, t.branch_id, s.title, s.status FROM thoughts t"
        " JOIN sessions s ON s.id = t.session_id"
        " WHERE t.search @@ to_tsquery('simple', :match) AND {scope}"
        " ORDER BY ts_rank(t.search, to_tsquery('simple', :match)) DESC, t.row_id DESC LIMIT :limit OFFSET :offset"
    ),
}


def index_some(tx: Tx) -> bool:
    """Bring thoughts into SQLite's index in the order of their rows; says whether there may be more.

    What is indexed is read off the index itself, so a restored or salvaged store simply starts from nothing. PostgreSQL
    indexes each row as it is written.
    """
    if tx.engine != "sqlite":
        return False
    rows = tx.all(
        "SELECT row_id, substr(content, 1, :indexed) AS content FROM thoughts"
        " WHERE row_id > (SELECT coalesce(max(id), 0) FROM thoughts_fts_docsize) ORDER BY row_id LIMIT :limit",
        indexed=INDEXED,
        limit=INDEXED_AT_ONCE,
    )
    for row in rows:
        tx.run("INSERT INTO thoughts_fts (rowid, content) VALUES (:row_id, :content)", **row)
    return len(rows) == INDEXED_AT_ONCE


def words_of(query: str) -> list[str]:
    """The words of a query; ASCII punctuation separates them, as it does in the index of both engines."""
    words = [word for word in query.translate(_SPACED).split() if any(char.isalnum() for char in word)]
    if not words:
        raise BadInput("query", "holds no word to search for", recovery="Pass at least one word.")
    if len(words) > MAX_WORDS:
        raise BadInput("query", f"holds {len(words)} words; the limit is {MAX_WORDS}", recovery="Pass fewer.")
    return words


def match_expression(engine: str, words: list[str]) -> str:
    """Every word, quoted so that none is an operator; the last one may be the beginning of a word."""
    if engine == "sqlite":
        return " ".join(f'"{word}"' for word in words) + "*"
    return " & ".join(f"'{word}'" for word in words) + ":*"


def search(tx: Tx, scope: Scope, query: str, limit: int, offset: int) -> dict[str, Any]:
    """A page of hits, the best first; sessions whose title or tags match come before all thoughts."""
    if offset > MAX_OFFSET:
        raise BadInput("cursor", f"is beyond the first {MAX_OFFSET} hits", recovery="Search for something narrower.")
    words = words_of(query)
    where, params = queries.conditions(scope, "s.")
    hits = tx.all(
        _RANKED[tx.engine].format(scope=where),
        **params,
        match=match_expression(tx.engine, words),
        limit=limit + 1,
        offset=offset,
    )
    results = [] if offset else _title_hits(tx, scope, words)
    results += [_thought_hit(tx, hit, words) for hit in hits[:limit]]
    reply: dict[str, Any] = {"results": results}
    if len(hits) > limit:
        reply["nextCursor"] = str(offset + limit)
    return reply


def snippet(text: str, words: list[str]) -> str:
    """The text around the first hit on one line, every hit marked with **."""
    pattern = re.compile(
        r"(?<![^\W_])(?:"
        + "|".join([*(re.escape(word) + r"(?![^\W_])" for word in words), re.escape(words[-1]) + r"[^\W_]*"])
        + ")",
        re.IGNORECASE,
    )
    first = pattern.search(text)
    start = max(0, first.start() - AROUND) if first else 0
    window = text[start : start + SNIPPET]
    marked = pattern.sub(lambda hit: f"**{hit[0]}**", window)
    line = one_line(marked, len(marked) + 1)
    return f"{'…' if start else ''}{line}{'…' if start + SNIPPET < len(text) else ''}"


def names_match(title: str, tags: Sequence[str], words: list[str]) -> bool:
    """Whether a title and tags hold all the words; the last one may be the beginning of a word."""
    names = " ".join((title, *tags)).translate(_SPACED).lower().split()
    *whole, beginning = (word.lower() for word in words)
    return all(word in names for word in whole) and any(name.startswith(beginning) for name in names)


def _title_hits(tx: Tx, scope: Scope, words: list[str]) -> list[dict[str, Any]]:
    where, params = queries.conditions(scope)
    for place, word in enumerate(words):
        where += f" AND lower(title || ' ' || tags) LIKE :word{place}"
        params[f"word{place}"] = f"%{word.lower()}%"
    rows = tx.all(
        f"SELECT {queries.SESSION} FROM sessions WHERE {where} ORDER BY updated_at DESC, id DESC LIMIT :limit",  # noqa: S608
        **params,
        limit=TITLES_LOOKED_AT,
    )
    hits = [found for found in map(queries.to_session, rows) if names_match(found.title, found.tags, words)]
    return [
        present(sessionId=found.id, title=found.title, status=found.status.value, tags=list(found.tags) or None)
        for found in hits[:TITLE_HITS]
    ]


def _thought_hit(tx: Tx, hit: Row, words: list[str]) -> dict[str, Any]:
    texts = queries.thoughts(tx, hit["session_id"], hit["number"], hit["number"], 1, cut=INDEXED)
    return present(
        sessionId=hit["session_id"],
        title=hit["title"],
        status=hit["status"],
        thoughtNumber=hit["number"],
        branchId=hit["branch_id"],
        snippet=Words(texts[0].content, texts[0].connection_id, lambda text: snippet(text, words)),
    )
