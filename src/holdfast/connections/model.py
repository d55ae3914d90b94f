"""What is known of a connection."""

from __future__ import annotations

from dataclasses import dataclass

SEEN_EVERY_MS = 10_000
"""How exact the time of a caller's last call is kept."""
LEASE_MS = 30_000
"""How long a daemon's word that its callers are live is believed without being renewed."""


@dataclass(frozen=True, slots=True)
class Connection:
    """One caller, across its reconnects."""

    id: str
    identity: str | None
    transport: str
    era: str
    client_name: str | None
    client_version: str | None
    agent_session: str | None
    bound_root: str | None
    reasoning_session: str | None
    joined: int
    """Whether it named that session itself, and so may share it."""
    attached_by: str | None
    pid: int | None
    created_at: int
    seen_at: int

    @property
    def label(self) -> str:
        """How others are told of this caller."""
        return self.client_name or self.transport
