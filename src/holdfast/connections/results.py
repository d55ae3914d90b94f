"""What connections return to routes and commands. Imported late: no hook waits for these."""

from __future__ import annotations

from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ToolFigures:
    tool: str
    calls: int
    errors: int
    mean_us: float
    max_us: int


@dataclass(frozen=True, slots=True)
class ToolLatency:
    """How long a tool took, over the newest calls of all tools."""

    tool: str
    calls: int
    errors: int
    p50_us: int
    p95_us: int
    max_us: int
    last_at: int


@dataclass(frozen=True, slots=True)
class AuditLine:
    row_id: int
    at: int
    action: str
    outcome: str
    connection_id: str | None
    address: str | None
    client: str | None
    principal: str | None
    times: int


@dataclass(frozen=True, slots=True)
class StoredKey:
    """The stored part of an HTTP client's key: its hash, never the key itself."""

    name: str
    scope: str
    hash: str
    teams: tuple[str, ...] | None
    """The teams that it is limited to, if any."""
    created_at: int
    revoked_at: int | None


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A browser that signed in to the dashboard; never its secret."""

    id: str
    key_name: str
    """The key that it signed in with: the owner's, or a named one."""
    scope: str
    client: str | None
    address: str
    created_at: int
    seen_at: int
    expires_at: int
    ended_at: int | None
