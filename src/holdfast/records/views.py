"""Verifications and backups as JSON, for the commands."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from holdfast.records.service import BackupMade, Verification


def verification_view(found: Verification) -> dict[str, Any]:
    """Return whether all is well, and every problem and loss."""
    return {
        "ok": found.ok,
        "checked": found.report.checked,
        "complete": found.report.complete,
        "problems": [asdict(problem) for problem in found.problems],
        "losses": list(found.losses),
        **({"salvage": True} if found.salvage else {}),
    }


def backup_view(made: BackupMade) -> dict[str, Any]:
    """Return a backup's file, size and problems."""
    report = made.report
    return {
        "file": str(report.path),
        "bytes": report.size,
        "rows": sum(report.rows.values()),
        "damaged_texts": report.damaged_texts,
        "problems": [problem.line for problem in report.verified.new_problems],
        "losses": list(made.losses),
    }
