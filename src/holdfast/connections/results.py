"""What connections return to routes and commands. Imported late: no hook waits for these."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.connections.queries.audit import Entry


@dataclass(frozen=True, slots=True)
class CountedCall:
    """One tool call of a connection."""

    row_id: int
    tool: str
    at: int
    duration_us: int
    outcome: str


@dataclass(frozen=True, slots=True)
class ToolFigures:
    """How often a tool was called, and how long it took."""

    tool: str
    calls: int
    errors: int
    mean_us: float
    max_us: int


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A stored line of the audit."""

    row_id: int
    at: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class StoredKey:
    """What is kept of a key of an HTTP client: never the key itself."""

    name: str
    scope: str
    hash: str
    teams: tuple[str, ...] | None
    """The teams that it is limited to; None where it is not."""
    created_at: int
    revoked_at: int | None
