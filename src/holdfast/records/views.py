"""Verifications and backups as JSON, for the commands."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from holdfast.records.service import BackupMade, Verification


def verification_view(verification: Verification) -> dict[str, Any]:
    """Return whether all is well, and every problem and loss."""
    return {
        "ok": verification.ok,
        "checked": verification.report.checked,
        "complete": verification.report.complete,
        "problems": [asdict(problem) for problem in verification.problems],
        "losses": list(verification.losses),
        **({"salvage": True} if verification.salvage else {}),
    }


def backup_view(backup: BackupMade) -> dict[str, Any]:
    """Return a backup's file, size and problems."""
    report = backup.report
    return {
        "file": str(report.path),
        "bytes": report.size,
        "rows": sum(report.rows.values()),
        "damaged_texts": report.damaged_texts,
        "problems": [problem.line for problem in report.verified.new_problems],
        "losses": list(backup.losses),
    }
