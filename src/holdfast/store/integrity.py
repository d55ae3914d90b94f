"""SQLite's own opinion of a database, as lines that can be shown."""

from __future__ import annotations

from collections.abc import Iterable

import apsw


def problem_lines(answers: Iterable[object]) -> list[str]:
    """The problems in the answers of integrity_check or quick_check; none when the database is whole."""
    lines = [line.strip() for answer in answers for line in str(answer).splitlines()]
    return [line for line in lines if line and line != "ok" and not line.startswith("***")]


def integrity_problems(connection: apsw.Connection, most: int = 1) -> list[str]:
    """Check every page; returns at most about `most` problems."""
    answers = connection.execute(f"PRAGMA integrity_check({most})").fetchall()
    return problem_lines(answer for (answer,) in answers)
