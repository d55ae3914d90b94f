"""A small client for Holdfast's REST routes, with nothing but the standard library.

client = Client("http://127.0.0.1:8181", key)
for session in client.active_sessions().sessions:
    print(session.session_id, session.state)

Stable within a major version (within a minor version while the major version is 0): every name in `__all__`, the
public attributes and methods of these classes, the parameters of the methods and what they return. Additions are
compatible: new methods, new optional keyword parameters, and new fields at the end of a result. Everything else may
change in any version: names that begin with an underscore, the wording of messages and how a request is sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from holdfast.errors import BadInput, HoldfastError, NoDaemon
from holdfast.version import __version__

__all__ = [
    "Audit",
    "AuditEntry",
    "BadInput",
    "Client",
    "Health",
    "NoDaemon",
    "Reconnected",
    "Request",
    "Requests",
    "RestError",
    "Session",
    "Sessions",
    "Token",
    "ToolUsage",
    "Usage",
]

_TIMEOUT_S = 30.0

_T = TypeVar("_T")


class RestError(HoldfastError):
    """Holdfast refused a request; `detail` says why."""

    code = "E_REST"

    def __init__(self, status: int, detail: str, retry_after: int | None = None, next_step: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.retry_after = retry_after
        """Seconds after which the same request may be repeated."""
        self.next_step = next_step
        """What to do if a reconnect was refused."""


@dataclass(frozen=True, slots=True)
class Session:
    """One caller, across its reconnects. Times are ISO 8601 in UTC."""

    session_id: str
    state: Literal["active", "idle", "detached", "expired", "revoked"]
    transport: str
    era: str
    reconnect_count: int
    created_at: str
    last_seen: str
    client_name: str | None = None
    client_version: str | None = None
    agent_session: str | None = None
    principal: str | None = None
    root: str | None = None
    bound_root: str | None = None
    reasoning_session: str | None = None


@dataclass(frozen=True, slots=True)
class Sessions:
    """A page of sessions; `next_cursor` leads to the next one."""

    sessions: tuple[Session, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One tool call."""

    tool: str
    at: str
    duration_ms: float
    outcome: str


@dataclass(frozen=True, slots=True)
class Requests:
    """A page of tool calls; `next_cursor` leads to the next one."""

    requests: tuple[Request, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """A reconnect token."""

    session_id: str
    reconnect_token: str
    expires_in_minutes: int


@dataclass(frozen=True, slots=True)
class Reconnected:
    """A session that was reconnected, and its next token."""

    success: bool
    message: str
    session_id: str
    reconnect_token: str
    expires_in_minutes: int
    reconnect_count: int


@dataclass(frozen=True, slots=True)
class ToolUsage:
    """The figures of one tool."""

    tool: str
    calls: int
    errors: int
    mean_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class Usage:
    """The figures of every tool that was called."""

    tools: tuple[ToolUsage, ...]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One attempt, and how it ended."""

    at: str
    action: str
    outcome: str
    times: int
    session_id: str | None = None
    address: str | None = None
    client: str | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Audit:
    """A page of the audit; `next_cursor` leads to the next one."""

    entries: tuple[AuditEntry, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """A statement that the daemon serves."""

    status: str
    version: str


class Client:
    """Speaks to one Holdfast; every method is one request, and raises RestError when it is refused."""

    def __init__(self, address: str, key: str, *, timeout: float = _TIMEOUT_S) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput("address", "must be an address such as http://127.0.0.1:8181")
        self._address = address
        self._place = (parts.hostname, parts.port)
        self._connection = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._headers = {"Authorization": f"Bearer {key}", "User-Agent": f"holdfast-client/{__version__}"}
        self._timeout = timeout

    def healthz(self) -> Health:
        """Return whether the daemon serves."""
        return _made(Health, self._ask("GET", "/healthz"))

    def readyz(self) -> Health:
        """Return whether the daemon can work; a RestError with status 503 when its store does not answer."""
        return _made(Health, self._ask("GET", "/readyz"))

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document of all routes."""
        return self._ask("GET", "/api/openapi.json")

    def sessions(self, *, limit: int | None = None, cursor: str | None = None) -> Sessions:
        """Return sessions in every state, the newest first."""
        return _sessions(self._ask("GET", "/api/mcp/sessions", {"limit": limit, "cursor": cursor}))

    def active_sessions(self, *, limit: int | None = None, cursor: str | None = None) -> Sessions:
        """Return the sessions that neither expired nor were revoked, the newest first."""
        return _sessions(self._ask("GET", "/api/mcp/sessions/active", {"limit": limit, "cursor": cursor}))

    def session(self, session_id: str) -> Session:
        """Return one session."""
        return _made(Session, self._ask("GET", _path(session_id)))

    def requests(self, session_id: str, *, limit: int | None = None, cursor: str | None = None) -> Requests:
        """Return a session's tool calls, the newest first."""
        page = self._ask("GET", f"{_path(session_id)}/requests", {"limit": limit, "cursor": cursor})
        return Requests(_each(Request, page["requests"]), page.get("next_cursor"))

    def reconnect(self, session_id: str, token: str) -> Reconnected:
        """Take up a session by its token; the token is used up, and the answer holds the next one."""
        return _made(Reconnected, self._ask("POST", f"{_path(session_id)}/reconnect", body={"token": token}))

    def get_token(self, session_id: str) -> Token:
        """Return a new reconnect token; earlier ones stay valid."""
        return _made(Token, self._ask("GET", f"{_path(session_id)}/token"))

    def issue_token(self, session_id: str) -> Token:
        """Return the same as `get_token`, by POST, which proxies neither cache nor repeat."""
        return _made(Token, self._ask("POST", f"{_path(session_id)}/token"))

    def revoke(self, session_id: str) -> None:
        """End a session and all its tokens."""
        self._ask("DELETE", _path(session_id))

    def usage(self, *, since: str | None = None) -> Usage:
        """Return how often each tool was called since a time (ISO 8601), and how long it took."""
        return Usage(_each(ToolUsage, self._ask("GET", "/api/mcp/usage", {"since": since})["tools"]))

    def audit(self, *, limit: int | None = None, cursor: str | None = None, session_id: str | None = None) -> Audit:
        """Return the attempts to reconnect to a session and their outcomes, newest first."""
        page = self._ask("GET", "/api/audit", {"limit": limit, "cursor": cursor, "session_id": session_id})
        return Audit(_each(AuditEntry, page["entries"]), page.get("next_cursor"))

    def teams(self) -> dict[str, Any]:
        """Return the teams with their processes and queues."""
        return self._ask("GET", "/api/teams")

    def team_conversations(self, *, limit: int | None = None, team: str | None = None) -> dict[str, Any]:
        """Return conversations between teams, the last used first."""
        return self._ask("GET", "/api/teams/conversations", {"limit": limit, "team": team})

    def team_figures(self) -> dict[str, Any]:
        """Return statistics: messages, lifetimes, the most active pairs, tokens and cost."""
        return self._ask("GET", "/api/teams/stats")

    def protocol_runs(self, *, limit: int | None = None, project: str | None = None) -> dict[str, Any]:
        """Return working sessions, the newest first; with a project directory, those of that project."""
        return self._ask("GET", "/api/protocol/runs", {"limit": limit, "project": project})

    def validate_protocol(self, project: str, *, pre_commit: bool = False) -> dict[str, Any]:
        """Check every gate of a worktree's session."""
        return self._ask("POST", "/api/protocol/validate", body={"project": project, "pre_commit": pre_commit})

    def send_message(
        self, target: str, message: str, *, message_id: str | None = None, priority: str = "normal"
    ) -> dict[str, Any]:
        """Queue a message for a target; the same id again is a duplicate. `queued` false comes with the reason."""
        named = {} if message_id is None else {"id": message_id}
        body = {"target": target, "message": message, "priority": priority, **named}
        return self._ask("POST", "/api/bridge/messages", body=body)

    def messages(
        self, *, target: str | None = None, status: str | None = None, limit: int | None = None
    ) -> dict[str, Any]:
        """Return messages with their status, the newest first; status "dead" shows the dead letters."""
        return self._ask("GET", "/api/bridge/messages", {"target": target, "status": status, "limit": limit})

    def retry_message(self, message_id: str, *, target: str | None = None) -> dict[str, Any]:
        """Put a dead letter back into its queue."""
        path = f"/api/bridge/messages/{quote(message_id, safe='')}/retry"
        return self._ask("POST", path, {"target": target})

    def targets(self) -> dict[str, Any]:
        """Return every target: what waits, what is worked on, by whom."""
        return self._ask("GET", "/api/bridge/targets")

    def updates(self, target: str, *, since: str | None = None, limit: int | None = None) -> dict[str, Any]:
        """Return replies, restarts and task changes of a target, the oldest first."""
        return self._ask("GET", "/api/bridge/updates", {"target": target, "since": since, "limit": limit})

    def briefing(self, project: str, *, budget: int | None = None) -> dict[str, Any]:
        """Return the briefing that an agent starting in a project would get."""
        return self._ask("GET", "/api/briefing", {"project": project, "budget": budget})

    def unfinished(self, *, project: str | None = None, limit: int | None = None) -> dict[str, Any]:
        """Return the unfinished work of all projects on the daemon's machine, or of one, the newest first."""
        return self._ask("GET", "/api/unfinished", {"project": project, "limit": limit})

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        parameters = {name: value for name, value in (query or {}).items() if value is not None}
        headers = {**self._headers, "Content-Type": "application/json"} if body is not None else self._headers
        host, port = self._place
        connection = self._connection(host, port, timeout=self._timeout)
        try:
            connection.request(
                method,
                f"{path}?{urlencode(parameters)}" if parameters else path,
                None if body is None else json.dumps(body),
                headers,
            )
            response = connection.getresponse()
            status, text = response.status, response.read()
            retry_after = response.headers.get("Retry-After", "")
        except (OSError, HTTPException) as error:
            raise NoDaemon(
                f"Nothing answers at {self._address}: {error}.", recovery="Start it with `holdfast serve`."
            ) from error
        finally:
            connection.close()
        answer = _object(text)
        if status >= 400:
            detail = str((answer or {}).get("detail", f"HTTP status {status}"))
            next_step = (answer or {}).get("next_step")
            seconds = int(retry_after) if retry_after.isdigit() else None
            raise RestError(status, detail, seconds, str(next_step) if next_step is not None else None)
        if answer is None:
            raise RestError(status, f"What answers at {self._address} is not Holdfast.")
        return answer


def _path(session_id: str) -> str:
    return f"/api/mcp/sessions/{quote(session_id, safe='')}"


def _object(text: bytes) -> dict[str, Any] | None:
    """Return the JSON object of an answer, which is empty for an answer without a body; None for anything else."""
    try:
        answer = json.loads(text) if text else {}
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _made(kind: Callable[..., _T], answer: Mapping[str, Any]) -> _T:
    """Return an answer as its dataclass; what a newer Holdfast says beyond it is left out."""
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in answer.items() if name in known})


def _each(kind: Callable[..., _T], answers: list[dict[str, Any]]) -> tuple[_T, ...]:
    return tuple(_made(kind, answer) for answer in answers)


def _sessions(page: dict[str, Any]) -> Sessions:
    return Sessions(_each(Session, page["sessions"]), page.get("next_cursor"))
