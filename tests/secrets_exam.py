"""An exam of the detector of secrets: `python -m tests.secrets_exam FILE.json`.

The file holds `{"kinds": [{"kind": str, "line": str, "secrets": [str, …]}, …], "clean": [str, …]}`. A secret is found
when no six characters of it are left in a row, or not all of it if it is shorter; a kind when all its secrets are.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.redaction import found, masked

LONGEST_REST = 6
"""So many characters of a secret, one after another, are not left standing."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What an exam came to."""

    kinds: int
    missed: tuple[tuple[str, str], ...]
    """Names of the kinds that were missed, each with its line as it was masked."""
    left_in_part: int
    """How many of these are missed by the strict measure alone: no secret is left whole, but a part of one is."""
    clean: int
    alarms: tuple[str, ...]
    """Lines without a secret in which one was found."""

    @property
    def recall(self) -> float:
        """Part of the kinds that was found."""
        return 1 - len(self.missed) / self.kinds if self.kinds else 1.0

    @property
    def alarms_per_thousand(self) -> float:
        """False alarms in 1,000 lines."""
        return len(self.alarms) * 1_000 / self.clean if self.clean else 0.0


def is_gone(secret: str, line: str, told: str) -> bool:
    """Whether no part of a secret is left in a masked line but what stands elsewhere in it too."""
    width = min(len(secret), LONGEST_REST)
    rest = line.replace(secret, "\n")
    parts = {secret[at : at + width] for at in range(len(secret) - width + 1)}
    return not any(part in told and part not in rest for part in parts)


def examine(paper: dict[str, Any]) -> Marks:
    """Mask each line of a corpus and count."""
    missed = []
    partly = 0
    for one in paper.get("kinds", []):
        told = masked(one["line"])
        if not all(is_gone(secret, one["line"], told) for secret in one["secrets"]):
            missed.append((one["kind"], told))
            partly += all(secret not in told for secret in one["secrets"])
    clean = paper.get("clean", [])
    alarms = tuple(masked(line) for line in clean if found(line))
    return Marks(len(paper.get("kinds", [])), tuple(missed), partly, len(clean), alarms)


def report(marks: Marks) -> str:
    """Tell what an exam came to, in lines."""
    return "\n".join(
        [
            f"recall {marks.recall:.3f} of {marks.kinds} kinds",
            f"{len(marks.missed)} missed, {marks.left_in_part} of them in part",
            *(f"  missed: {kind}" for kind, _ in marks.missed),
            f"false alarms {marks.alarms_per_thousand:.2f} per 1,000 of {marks.clean} lines",
            *(f"  alarm: {line}" for line in marks.alarms),
        ]
    )


if __name__ == "__main__":
    print(report(examine(json.loads(Path(sys.argv[1]).read_text()))))
