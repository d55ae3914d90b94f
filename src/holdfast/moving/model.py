"""A move of a project's data: from which root to which, and what was moved."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from holdfast.identity.project import Root
from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Move:
    """One root of the project, before and after."""

    old: str
    new: Root


@dataclass(frozen=True, slots=True)
class Transcript:
    """An agent session's transcript."""

    session_id: str
    root: str
    path: Path


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved."""

    rows: Counter[str]
    """By table."""
    transcripts: int
