"""SQL of imported history: files, lines, and their full-text index."""

from __future__ import annotations

import json
from collections.abc import Sequence

from holdfast.agents.transcript_entries import TranscriptFile
from holdfast.history.model import Hit, ReadMark, Recovery
from holdfast.history.passages import Batch
from holdfast.reasoning.fulltext import Term, match_expression
from holdfast.reasoning.queries.search import fill, unindexed
from holdfast.store import Tx

HIT = "l.role, l.content, l.at, f.session_id, f.root, f.path, f.machine"

_NEWEST = {"sqlite": "i.rowid DESC", "postgres": "i.row_id DESC"}
_FOUND = {
    "sqlite": (
        f"SELECT {HIT} FROM history_fts i JOIN history_lines l ON l.row_id = i.rowid"  # noqa: S608 - constants
        " JOIN history_files f ON f.row_id = l.file WHERE history_fts MATCH :match{scope}"
        " ORDER BY {order} LIMIT :limit"
    ),
    "postgres": (
        f"SELECT {HIT} FROM history_fts i JOIN history_lines l ON l.row_id = i.row_id"  # noqa: S608 - constants
        " JOIN history_files f ON f.row_id = l.file WHERE i.words @@ to_tsquery('simple', :match){scope}"
        " ORDER BY {order} LIMIT :limit"
    ),
}

_BEST = {
    "sqlite": "i.rank, l.row_id DESC",
    "postgres": "ts_rank(i.words, to_tsquery('simple', :match)) DESC, l.row_id DESC",
}


def known_file(tx: Tx, machine: str, path: str) -> ReadMark | None:
    """Return how far a file was read."""
    row = tx.one(
        "SELECT mark, read_to FROM history_files WHERE machine = :machine AND path = :path",
        machine=machine,
        path=path,
    )
    return None if row is None else ReadMark(row["mark"], row["read_to"])


def forget_file(tx: Tx, machine: str, path: str) -> None:
    """Delete what was read of a file that was replaced since."""
    tx.run("DELETE FROM history_files WHERE machine = :machine AND path = :path", machine=machine, path=path)


def forget(tx: Tx, machine: str, root: str | None) -> int:
    """Delete what was imported on this machine, of one project or of all; return the number of files."""
    where = "" if root is None else " AND root = :root"
    return tx.run(
        f"DELETE FROM history_files WHERE machine = :machine{where}",  # noqa: S608 - one of two texts
        machine=machine,
        **({} if root is None else {"root": root}),
    )


def forget_project(tx: Tx, root: str) -> int:
    """Delete what was imported of one project, on any machine; return the number of files."""
    return tx.run("DELETE FROM history_files WHERE root = :root", root=root)


def keep(tx: Tx, machine: str, file: TranscriptFile, root: str, expected: int, batch: Batch) -> bool:
    """Store a part of a file and how far it was read; return False if another import did so meanwhile."""
    path = str(file.path)
    tx.lock(f"history:{machine}:{path}")
    known = known_file(tx, machine, path)
    if (known.read_to if known else 0) != expected:
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
        mark=batch.mark,
        read_to=batch.end,
        now=tx.now(),
    )
    for passage in batch.passages:
        tx.run(
            "INSERT INTO history_lines (file, role, content, at) VALUES (:file, :role, :content, :at)",
            file=row["row_id"] if row else None,
            role=passage.role,
            content=passage.content,
            at=passage.at,
        )
    return True


def is_indexed(tx: Tx) -> bool:
    """Return whether every line is indexed."""
    return not unindexed(tx, "history_lines", "history_fts", 1)


def index_some(tx: Tx) -> bool:
    """Index some lines; return whether there may be more."""
    return fill(tx, "history_lines", "history_fts")


def hits(
    tx: Tx, machine: str, terms: Sequence[Term], root: str | None, limit: int, *, newest: bool = False
) -> list[Hit]:
    """Return the lines that contain all terms, the best or the newest first; those of other machines are marked."""
    scope = "" if root is None else " AND f.root = :root"
    rows = tx.all(
        _FOUND[tx.engine].format(scope=scope, order=(_NEWEST if newest else _BEST)[tx.engine]),
        match=match_expression(tx.engine, terms),
        limit=limit,
        **({} if root is None else {"root": root}),
    )
    return [
        Hit(
            row["session_id"],
            row["root"],
            row["role"],
            row["content"],
            row["at"],
            row["path"],
            elsewhere=row["machine"] != machine,
        )
        for row in rows
    ]


def imported(tx: Tx) -> tuple[int, int | None]:
    """Return the number of imported files, and the time of the last import."""
    row = tx.one("SELECT count(*) AS files, max(at) AS at FROM history_files")
    return (row["files"], row["at"]) if row else (0, None)


def known_roots(tx: Tx) -> list[str]:
    """Return the roots of all known projects."""
    return [row["root_uri"] for row in tx.all("SELECT root_uri FROM projects")]


def recoveries(tx: Tx, since: int) -> list[Recovery]:
    """Return what was recovered since a time, the latest first."""
    rows = tx.all(
        "SELECT root, occasion, what, at FROM recoveries WHERE at >= :since AND occasion <> 'resume' ORDER BY at DESC",
        since=since,
    )
    return [Recovery(row["root"], row["occasion"], tuple(json.loads(row["what"])), row["at"]) for row in rows]


def thoughts_of(tx: Tx, session: str) -> int:
    """Return the number of thoughts in the agent session's reasoning session."""
    row = tx.one(
        "SELECT s.thought_count AS n FROM connections c JOIN sessions s ON s.id = c.reasoning_session"
        " WHERE c.identity = :identity",
        identity=f"agent:{session}",
    )
    return int(row["n"]) if row else 0
