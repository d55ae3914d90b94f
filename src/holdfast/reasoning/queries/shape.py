"""The SQL of a session's shape: numbers, branches and revisions, from indexes only, however long the texts are."""
# ruff: noqa: S608 - the SQL is built from constants only

from __future__ import annotations

from collections.abc import Sequence

from holdfast.reasoning.model import Thought
from holdfast.reasoning.queries.sessions import to_thought
from holdfast.reasoning.results import Line, OnBranch, Revision
from holdfast.store import Tx

_BEGINNING = (
    "session_id, number, substr(content, 1, :cut) AS content, next_needed, total, revises, is_revision, branch_id,"
    " branch_from, needs_more, requested_number, connection_id, created_at"
)
_END = "(SELECT {which}(t.number) FROM thoughts t WHERE t.session_id = b.session_id AND t.branch_id = b.branch_id)"
_LINE = (
    "SELECT b.branch_id, b.from_number, b.thought_count,"
    f" {_END.format(which='min')} AS first, {_END.format(which='max')} AS last FROM branches b WHERE b.session_id = :id"
)
_BRANCHED = "FROM thoughts WHERE session_id = :id AND branch_id IS NOT NULL AND number >= :first AND number <= :last"
"""From its index alone: the rows hold long texts."""
DENSEST = 100
"""Revisions in one part of a session that are counted; a picture shows no difference beyond."""


def lines(tx: Tx, session_id: str, limit: int) -> list[Line]:
    """Return the branches with the numbers of their first and last thoughts, the oldest first."""
    return _lines(tx, f"{_LINE} ORDER BY b.created_at, b.branch_id LIMIT :limit", id=session_id, limit=limit)


def lines_from(tx: Tx, session_id: str, number: int, limit: int) -> list[Line]:
    """Return the branches that leave from a thought."""
    sql = f"{_LINE} AND b.from_number = :number ORDER BY b.created_at, b.branch_id LIMIT :limit"
    return _lines(tx, sql, id=session_id, number=number, limit=limit)


def lines_of(tx: Tx, session_id: str, branches: Sequence[str]) -> list[Line]:
    """Return the branches with these ids, the oldest first."""
    if not branches:
        return []
    named = {f"b{place}": branch for place, branch in enumerate(branches)}
    marks = ", ".join(f":{name}" for name in named)
    # `+` keeps SQLite from reading all branches of the session in their order.
    sql = f"{_LINE} AND b.branch_id IN ({marks}) ORDER BY +b.created_at, b.branch_id"
    return _lines(tx, sql, id=session_id, **named)


def on_branches(tx: Tx, session_id: str, first: int, last: int) -> list[OnBranch]:
    """Return which of these numbers are on a branch, in their order."""
    rows = tx.all(
        f"SELECT number, branch_id {_BRANCHED} ORDER BY number",
        id=session_id,
        first=first,
        last=last,
    )
    return [OnBranch(row["number"], row["branch_id"]) for row in rows]


def crowd(tx: Tx, session_id: str, first: int, last: int) -> int:
    """Return how many thoughts of a range are on branches, and how many revise another."""
    row = tx.one(
        f"SELECT (SELECT count(*) {_BRANCHED})"
        " + (SELECT count(*) FROM thoughts WHERE session_id = :id AND revises >= :first AND revises <= :last) AS n",
        id=session_id,
        first=first,
        last=last,
    )
    return int(row["n"]) if row else 0


def revisions(tx: Tx, session_id: str, first: int, last: int, limit: int) -> list[Revision]:
    """Return the revisions made within a range of numbers, in their order."""
    rows = tx.all(
        "SELECT number, revises FROM thoughts WHERE session_id = :id AND revises IS NOT NULL"
        " AND number >= :first AND number <= :last ORDER BY number LIMIT :limit",
        id=session_id,
        first=first,
        last=last,
        limit=limit,
    )
    return [Revision(row["number"], row["revises"]) for row in rows]


def revisions_of(tx: Tx, session_id: str, first: int, last: int, limit: int) -> list[Revision]:
    """Return the revisions of thoughts within a range of numbers, in the order of what is revised."""
    rows = tx.all(
        "SELECT number, revises FROM thoughts WHERE session_id = :id AND revises >= :first AND revises <= :last"
        " ORDER BY revises, number LIMIT :limit",
        id=session_id,
        first=first,
        last=last,
        limit=limit,
    )
    return [Revision(row["number"], row["revises"]) for row in rows]


def density(tx: Tx, session_id: str, end: int, parts: int) -> list[tuple[int, int]]:
    """Return how many revisions were made in each of so many equal parts of a session, up to `DENSEST` in one."""
    begins = "((CAST({part} AS BIGINT) * :end + :parts - 1) / :parts)"
    rows = tx.all(
        "WITH RECURSIVE p(part) AS (SELECT 0 UNION ALL SELECT part + 1 FROM p WHERE part + 1 < :parts)"
        " SELECT part, (SELECT count(*) FROM (SELECT 1 FROM thoughts t WHERE t.session_id = :id"
        f" AND t.revises IS NOT NULL AND t.number > {begins.format(part='p.part')}"
        f" AND t.number <= {begins.format(part='p.part + 1')} LIMIT :densest) counted) AS n FROM p",
        id=session_id,
        end=end,
        parts=parts,
        densest=DENSEST,
    )
    return [(int(row["part"]), int(row["n"])) for row in rows if row["n"]]


def beginnings(tx: Tx, session_id: str, numbers: Sequence[int], cut: int) -> list[Thought]:
    """Return the thoughts with these numbers, each with no more than how it begins."""
    if not numbers:
        return []
    named = {f"n{place}": number for place, number in enumerate(numbers)}
    rows = tx.all(
        f"SELECT {_BEGINNING} FROM thoughts WHERE session_id = :id"
        f" AND number IN ({', '.join(':' + name for name in named)}) ORDER BY number",
        id=session_id,
        cut=cut,
        **named,
    )
    return [to_thought(row) for row in rows]


def piece(tx: Tx, session_id: str, number: int, start: int, most: int) -> tuple[Thought, int] | None:
    """Return a thought with a part of its text, and how many characters the whole has."""
    row = tx.one(
        f"SELECT {_BEGINNING.replace('1, :cut', ':start, :cut')}, length(content) AS characters FROM thoughts"
        " WHERE session_id = :id AND number = :number",
        id=session_id,
        number=number,
        start=start + 1,
        cut=most,
    )
    if row is None:
        return None
    characters = int(row.pop("characters"))
    return to_thought(row), characters


def _lines(tx: Tx, sql: str, **params: str | int) -> list[Line]:
    return [
        Line(row["branch_id"], row["from_number"], row["thought_count"], row["first"], row["last"])
        for row in tx.all(sql, **params)
        if row["first"] is not None
    ]
