"""Verification of everything stored: the engine's own checks, then those of the capabilities."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import apsw

from holdfast.lazy_dataclass import dataclass
from holdfast.store import Row, Store, Tx
from holdfast.store.copying import Progress, no_progress
from holdfast.store.integrity import problem_lines

DATABASE = "database"
"""The name of the engine's own check, and the subject of what it finds."""
ROWS_AT_ONCE = 2000
LOST_EVENT = "store.lost"
"""Kind of the event that a salvage writes in place of one it could not read."""
MAX_PROBLEMS = 1000
"""A ruined store has one problem per row; the first thousand say enough."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a check found wrong."""

    subject: str
    """What it is about: a session, a table, the event log."""
    text: str
    known: bool = False
    """Whether it was reported before, such as a loss that a salvage reported."""

    @property
    def line(self) -> str:
        """The problem as one line of text."""
        return f"{self.subject}: {self.text}"


Check = Callable[[Tx], Iterable[Problem]]
"""Checks one kind of data and yields what is wrong; reads in batches, because there may be very much of it."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was checked and what was found."""

    checked: list[str]
    problems: list[Problem]
    complete: bool
    """False when there were more problems than are listed."""

    @property
    def new_problems(self) -> list[Problem]:
        """The problems that were not reported before."""
        return [problem for problem in self.problems if not problem.known]

    @property
    def ok(self) -> bool:
        """Whether no new problem was found."""
        return not self.new_problems

    def lines(self) -> list[str]:
        lines = [problem.line for problem in self.problems]
        more = [] if self.complete else [f"and more; only the first {MAX_PROBLEMS} are listed"]
        return [f"Checked: {', '.join(self.checked)}.", *(lines or ["No problem was found."]), *more]


async def verify(
    store: Store,
    checks: Mapping[str, Check] | None = None,
    progress: Progress | None = None,
    acknowledged: Collection[str] = (),
) -> VerifyReport:
    """Check the database, the event log and whatever `checks` names, on one snapshot; changes nothing."""
    every = {**ENGINE_CHECKS, **(checks or {})}
    return await store.read(lambda tx: run_checks(tx, every, progress or no_progress, acknowledged))


def run_checks(
    tx: Tx, checks: Mapping[str, Check], progress: Progress = no_progress, acknowledged: Collection[str] = ()
) -> VerifyReport:
    """Run these checks in one transaction; a problem that a person acknowledged counts as known."""
    problems: list[Problem] = []
    for done, (name, check) in enumerate(checks.items()):
        progress(done / len(checks), name)
        for problem in _until_unreadable(name, check, tx):
            if len(problems) == MAX_PROBLEMS:
                return VerifyReport(list(checks)[: done + 1], problems, complete=False)
            problems.append(replace(problem, known=problem.known or problem.line in acknowledged))
    progress(1.0, "done")
    return VerifyReport(list(checks), problems, complete=True)


def _until_unreadable(name: str, check: Check, tx: Tx) -> Iterator[Problem]:
    try:
        yield from check(tx)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        yield Problem(DATABASE, f"{name} could not be read to the end: {error}")


def in_batches(tx: Tx, sql: str, key: str, after: Any, **params: Any) -> Iterator[Row]:
    """Yield every row of `sql`, a batch at a time: it selects `WHERE key > :after ORDER BY key LIMIT :limit`."""
    while batch := tx.all(sql, after=after, limit=ROWS_AT_ONCE, **params):
        yield from batch
        after = batch[-1][key]


def check_engine(tx: Tx) -> Iterator[Problem]:
    """Run the engine's own integrity checks."""
    return _check_sqlite(tx) if tx.engine == "sqlite" else _check_postgres(tx)


def check_events(tx: Tx) -> Iterator[Problem]:
    """Check that events are numbered without gaps up to the head; old ones may have been trimmed from the front."""
    head = tx.one("SELECT seq FROM event_head WHERE id = 1")
    if head is None:
        yield Problem("events", "the counter is missing")
        return
    span = tx.one("SELECT min(seq) AS first, max(seq) AS last, count(*) AS n FROM events")
    if span is None or span["first"] is None:
        return
    lost = tx.one("SELECT count(*) AS n FROM events WHERE kind = :kind", kind=LOST_EVENT)
    if lost is not None and lost["n"]:
        yield Problem("events", f"{lost['n']} were lost in a salvage", known=True)
    if span["last"] != head["seq"]:
        yield Problem("events", f"the newest is {span['last']}, but the counter says {head['seq']}")
    if span["n"] == span["last"] - span["first"] + 1:
        return
    yield from _gaps(tx, span["first"])


def _gaps(tx: Tx, expected: int) -> Iterator[Problem]:
    numbers = "SELECT seq FROM events WHERE seq > :after ORDER BY seq LIMIT :limit"
    for row in in_batches(tx, numbers, "seq", expected - 1):
        if row["seq"] > expected:
            yield Problem("events", f"missing: {numbers_text(expected, row['seq'] - 1)}")
        expected = row["seq"] + 1


def numbers_text(first: int, last: int) -> str:
    """Return a range as text: "7" or "7 to 9"."""
    return str(first) if first == last else f"{first}-{last}"


def _check_sqlite(tx: Tx) -> Iterator[Problem]:
    answers = tx.all(f"PRAGMA integrity_check({MAX_PROBLEMS})")
    for line in problem_lines(row["integrity_check"] for row in answers):
        yield Problem(DATABASE, line)
    for row in tx.all("PRAGMA foreign_key_check"):
        yield Problem(f"table {row['table']}", f"row {row['rowid']} refers to a missing row of {row['parent']}")


def _check_postgres(tx: Tx) -> Iterator[Problem]:
    invalid = tx.all(
        "SELECT c.relname AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = current_schema() AND NOT i.indisvalid ORDER BY c.relname"
    )
    for row in invalid:
        yield Problem(f"index {row['name']}", "is not valid; REINDEX it")
    for key in tx.all(_FOREIGN_KEYS):
        orphans = tx.one(_orphans_sql(key))
        if orphans is not None and orphans["n"] > 0:
            yield Problem(f"table {key['child']}", f"{orphans['n']} rows refer to missing rows of {key['parent']}")


ENGINE_CHECKS: dict[str, Check] = {DATABASE: check_engine, "events": check_events}

_FOREIGN_KEYS = """
SELECT quote_ident(child.relname) AS child, quote_ident(parent.relname) AS parent,
       (SELECT array_agg(quote_ident(a.attname) ORDER BY k.position)
          FROM unnest(c.conkey) WITH ORDINALITY AS k(number, position)
          JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.number) AS child_columns,
       (SELECT array_agg(quote_ident(a.attname) ORDER BY k.position)
          FROM unnest(c.confkey) WITH ORDINALITY AS k(number, position)
          JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.number) AS parent_columns
  FROM pg_constraint c
  JOIN pg_class child ON child.oid = c.conrelid
  JOIN pg_class parent ON parent.oid = c.confrelid
  JOIN pg_namespace n ON n.oid = child.relnamespace
 WHERE c.contype = 'f' AND n.nspname = current_schema()
 ORDER BY child.relname, c.conname
"""


def _orphans_sql(key: Row) -> str:
    """Return SQL that counts child rows whose parent is missing; the names were quoted by the server."""
    pairs = list(zip(key["child_columns"], key["parent_columns"], strict=True))
    joined = " AND ".join(f"parent.{theirs} = child.{ours}" for ours, theirs in pairs)
    named = " AND ".join(f"child.{ours} IS NOT NULL" for ours, _ in pairs)
    return (
        f"SELECT count(*) AS n FROM {key['child']} child LEFT JOIN {key['parent']} parent ON {joined}"  # noqa: S608
        f" WHERE {named} AND parent.{pairs[0][1]} IS NULL"
    )
