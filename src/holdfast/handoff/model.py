"""What writing and adopting an archive did, and what adopting finds here."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from pathlib import Path

from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Written:
    """An archive that was written."""

    file: Path
    size: int
    """In bytes."""
    counts: Counter[str]
    """Rows by table, and the transcripts."""
    signer: str
    """The fingerprint of this machine."""
    warnings: list[str]


@dataclass(slots=True)
class Taken:
    """What an adoption changed in the store, and what a person should know of it."""

    added: Counter[str] = field(default_factory=Counter)
    """New rows, by table."""
    changed: Counter[str] = field(default_factory=Counter)
    """Rows that gave way to later ones, by table."""
    held: Counter[str] = field(default_factory=Counter)
    """Messages that are held until the owner releases them, by team."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Adopted:
    """An archive that was adopted."""

    project: Path
    rows: Taken
    transcripts: Counter[str]
    """How many of them were new, ahead, known or forked."""
    refused: list[str]
    """Transcripts that were not taken over, and why."""
    resume: str | None
    """The session that was last written to."""


@dataclass(frozen=True, slots=True)
class KnownSession:
    """A reasoning session here."""

    thought_count: int
    head_hash: str


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A protocol run here."""

    row_id: int
    touched_at: int


@dataclass(frozen=True, slots=True)
class KnownTask:
    """What a team's agent works on here."""

    id: str
    """As a message that an archive brings would be named."""
    updated_at: int


@dataclass(frozen=True, slots=True)
class KnownConversation:
    """A conversation between two teams here."""

    id: int
    session_id: str
