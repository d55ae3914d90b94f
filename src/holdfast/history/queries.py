"""The SQL of imported history: files, lines, and the index of their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.history.files import TranscriptFile
from holdfast.history.passages import Passage
from holdfast.reasoning.search import match_expression
from holdfast.store import Row, Tx

INDEXED_AT_ONCE = 200
HIT = "l.role, l.content, l.at, f.session_id, f.root, f.path, f.machine"

_RANKED = {
    "sqlite": (
        f"SELECT {HIT} FROM history_fts i JOIN history_lines l ON l.row_id = i.rowid"  # noqa: S608 - constants
        " JOIN history_files f ON f.row_id = l.file WHERE history_fts MATCH :match{scope}"
        " ORDER BY i.rank, l.row_id DESC LIMIT :limit"
    ),
    "postgres": (
        f"SELECT {HIT} FROM history_lines l JOIN history_files f ON f.row_id = l.file"  # noqa: S608 - constants
        " WHERE l.search @@ to_tsquery('simple', :match){scope}"
        " ORDER BY ts_rank(l.search, to_tsquery('simple', :match)) DESC, l.row_id DESC LIMIT :limit"
    ),
}


def known_file(tx: Tx, machine: str, path: str) -> Row | None:
    """How far a file was read."""
    return tx.one(
        "SELECT row_id, mark, read_to FROM history_files WHERE machine = :machine AND path = :path",
        machine=machine,
        path=path,
    )


def forget_file(tx: Tx, machine: str, path: str) -> None:
    """Drop what was read of a file that is another one by now."""
    tx.run("DELETE FROM history_files WHERE machine = :machine AND path = :path", machine=machine, path=path)


def forget(tx: Tx, machine: str, root: str | None) -> int:
    """Drop what was imported on this machine, of one project or of all; how many files that were."""
    where = "" if root is None else " AND root = :root"
    return tx.run(
        f"DELETE FROM history_files WHERE machine = :machine{where}",  # noqa: S608 - one of two texts
        machine=machine,
        **({} if root is None else {"root": root}),
    )


def forget_project(tx: Tx, root: str) -> int:
    """Drop what was imported of one project, on whichever machine; how many files that were."""
    return tx.run("DELETE FROM history_files WHERE root = :root", root=root)


def keep(
    tx: Tx,
    machine: str,
    file: TranscriptFile,
    root: str,
    expected: int,
    *,
    passages: Sequence[Passage],
    read_to: int,
    mark: str,
) -> bool:
    """Keep a part of a file and how far it was read, in one step; False where somebody else read on meanwhile."""
    path = str(file.path)
    tx.lock(f"history:{machine}:{path}")
    known = known_file(tx, machine, path)
    if (known["read_to"] if known else 0) != expected:
        return False
    row = tx.one(
        "INSERT INTO history_files (machine, path, session_id, root, mark, read_to, at)"
        " VALUES (:machine, :path, :session, :root, :mark, :read_to, :now)"
        " ON CONFLICT (machine, path) DO UPDATE SET root = excluded.root, mark = excluded.mark,"
        " read_to = excluded.read_to, at = excluded.at RETURNING row_id",
        machine=machine,
        path=path,
        session=file.session_id,
        root=root,
        mark=mark,
        read_to=read_to,
        now=tx.now(),
    )
    for passage in passages:
        tx.run(
            "INSERT INTO history_lines (file, role, content, at) VALUES (:file, :role, :content, :at)",
            file=row["row_id"] if row else None,
            role=passage.role,
            content=passage.content,
            at=passage.at,
        )
    return True


def index_some(tx: Tx) -> bool:
    """Bring lines into SQLite's index in the order of their rows; says whether there may be more."""
    if tx.engine != "sqlite":
        return False
    rows = tx.all(
        "SELECT row_id, content FROM history_lines"
        " WHERE row_id > (SELECT coalesce(max(id), 0) FROM history_fts_docsize) ORDER BY row_id LIMIT :limit",
        limit=INDEXED_AT_ONCE,
    )
    for row in rows:
        tx.run("INSERT INTO history_fts (rowid, content) VALUES (:row_id, :content)", **row)
    return len(rows) == INDEXED_AT_ONCE


def hits(tx: Tx, words: list[str], root: str | None, limit: int) -> list[Row]:
    """The lines that hold all the words, the best first."""
    scope = "" if root is None else " AND f.root = :root"
    return tx.all(
        _RANKED[tx.engine].format(scope=scope),
        match=match_expression(tx.engine, words),
        limit=limit,
        **({} if root is None else {"root": root}),
    )


def imported(tx: Tx) -> Row:
    """How many files were imported, and when last."""
    row = tx.one("SELECT count(*) AS files, coalesce(max(at), 0) AS at FROM history_files")
    return row or {"files": 0, "at": 0}


def known_roots(tx: Tx) -> list[str]:
    """The roots of every project that Holdfast knows."""
    return [row["root_uri"] for row in tx.all("SELECT root_uri FROM projects")]


def recoveries(tx: Tx, since: int) -> list[dict[str, Any]]:
    """What was given back since a time, the latest first."""
    return tx.all(
        "SELECT root, session_id, recovered, occasion, what, at FROM recoveries WHERE at >= :since ORDER BY at DESC",
        since=since,
    )
