"""SQLite's own integrity checks, as printable lines."""

from __future__ import annotations

from collections.abc import Iterable

import apsw


def problem_lines(answers: Iterable[object]) -> list[str]:
    """Return the problems that integrity_check or quick_check reported; empty when the database is intact."""
    lines = [line.strip() for answer in answers for line in str(answer).splitlines()]
    return [line for line in lines if line and line != "ok" and not line.startswith("***")]


def integrity_problems(connection: apsw.Connection, most: int = 1, *, quick: bool = False) -> list[str]:
    """Check every page, `quick` without the indexes; returns at most about `most` problems."""
    answers = connection.execute(f"PRAGMA {'quick' if quick else 'integrity'}_check({most})").fetchall()
    return problem_lines(answer for (answer,) in answers)
