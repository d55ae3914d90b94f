"""What is known of a connection, and the rules of taking one up again."""

from __future__ import annotations

from enum import StrEnum

from holdfast.lazy_dataclass import dataclass

SEEN_EVERY_MS = 10_000
"""The precision of a caller's `seen_at`."""
LEASE_MS = 30_000
"""The lease by which a daemon's callers count as live."""
IDLE_AFTER_MS = 5 * 60_000
LOST_REPLY_MS = 30_000
"""How long a retired token gets the same answer again, for a client whose answer was lost."""


class State(StrEnum):
    """The state of a connection."""

    ACTIVE = "active"
    IDLE = "idle"
    DETACHED = "detached"
    EXPIRED = "expired"
    REVOKED = "revoked"

    @property
    def ended(self) -> bool:
        """Whether tokens can no longer reconnect to it."""
        return self in (State.EXPIRED, State.REVOKED)


class Reason(StrEnum):
    """Why a reconnect was refused."""

    SESSION_ID_MISMATCH = "session_id_mismatch"
    INVALID_TOKEN_PURPOSE = "invalid_token_purpose"  # noqa: S105 - a reason, not a token
    SESSION_NOT_FOUND = "session_not_found"
    TOKEN_MISMATCH = "token_mismatch"  # noqa: S105
    SESSION_ALREADY_DISCONNECTED = "session_already_disconnected"
    TOKEN_EXPIRED = "token_expired"  # noqa: S105
    INVALID_TOKEN = "invalid_token"  # noqa: S105
    RATE_LIMITED = "rate_limited"
    TOKEN_REUSED = "token_reused"  # noqa: S105


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
    principal: str | None
    root_uri: str | None
    bound_root: str | None
    reasoning_session: str | None
    joined: int
    """Whether it named that session itself, and so may share it."""
    state: str
    reconnect_count: int
    attached_by: str | None
    pid: int | None
    created_at: int
    seen_at: int

    @property
    def label(self) -> str:
        """The name by which others are told of this caller."""
        return self.client_name or self.transport

    @property
    def ended(self) -> bool:
        return State(self.state).ended


@dataclass(frozen=True, slots=True)
class Token:
    """The stored part of a reconnect token: never the token itself."""

    jti: str
    connection_id: str
    kid: str
    issued_at: int
    expires_at: int
    retired_at: int | None
    successor: str | None
    revoked_at: int | None


@dataclass(frozen=True, slots=True)
class Issued:
    """A reconnect token for its owner."""

    connection_id: str
    token: str
    expires_in_minutes: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """Who presents a token, as far as the transport knows."""

    address: str
    client: str | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One counted tool call."""

    connection_id: str | None
    tool: str
    at: int
    duration_us: int
    outcome: str
    row_id: int | None = None
    """None before it is stored."""


_RENEWAL = "GET /api/mcp/sessions/{session_id}/token gives your key a new one while the session is live."
_ANEW = 'Continue without it: init {operation: "load_context"} brings the project\'s thoughts back.'
_NEXT_STEPS = {
    Reason.SESSION_ID_MISMATCH: "Send the session_id that came with this token.",
    Reason.INVALID_TOKEN_PURPOSE: f"Send a reconnect token. {_RENEWAL}",
    Reason.SESSION_NOT_FOUND: f"GET /api/mcp/sessions/active lists the live sessions. {_ANEW}",
    Reason.TOKEN_MISMATCH: f"This token is not, or no longer, one of the session's. {_RENEWAL}",
    Reason.SESSION_ALREADY_DISCONNECTED: f"The session was revoked, or has expired. {_ANEW}",
    Reason.TOKEN_EXPIRED: _RENEWAL,
    Reason.INVALID_TOKEN: f"This server did not issue that token. {_RENEWAL}",
    Reason.TOKEN_REUSED: f"The token was used before, so all tokens of the session have ended. {_RENEWAL}",
}


@dataclass(frozen=True, slots=True)
class Refused:
    reason: Reason
    retry_after_s: int | None = None
    issued: Issued | None = None
    """A new token for the connection's own key, if the last one has only expired."""

    @property
    def next_step(self) -> str:
        return _NEXT_STEPS.get(self.reason, f"Try again in {self.retry_after_s or 1} s.")


@dataclass(frozen=True, slots=True)
class Reconnected:
    """A connection that a token reconnected to."""

    issued: Issued
    reconnect_count: int
    restored: tuple[str, ...]
    """What was restored with it, in words."""


def judge(connection: Connection | None, token: Token | None, now: int) -> Reason | None:
    """Return why this token does not reconnect to this connection, or None. `is_repeat` judges retired tokens."""
    if connection is None:
        return Reason.SESSION_NOT_FOUND
    if token is None or token.connection_id != connection.id:
        return Reason.TOKEN_MISMATCH
    if connection.ended:
        return Reason.SESSION_ALREADY_DISCONNECTED
    if token.revoked_at is not None:
        return Reason.TOKEN_MISMATCH
    if token.expires_at <= now:
        return Reason.TOKEN_EXPIRED
    return None


def is_repeat(token: Token, now: int) -> bool:
    """Return whether a retired token comes from a client whose answer was lost, and not from a thief."""
    return token.retired_at is not None and now - token.retired_at <= LOST_REPLY_MS


def is_past_half(token: Token, now: int) -> bool:
    """Return whether it is time to offer a new token."""
    return now - token.issued_at > (token.expires_at - token.issued_at) / 2
