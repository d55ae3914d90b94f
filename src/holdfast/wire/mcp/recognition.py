"""Recognition: finds the caller of a request, and its connection."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from holdfast.connections.keys import Key
from holdfast.connections.model import Attempt, Connection, Issued, Refused
from holdfast.connections.queries.connections import BY_HANDLE
from holdfast.connections.service import Connections
from holdfast.connections.tokens import claimed_session
from holdfast.errors import BadInput, HoldfastError
from holdfast.identity.caller import Caller, Era, Transport, identify
from holdfast.identity.managed import VARIABLE, read_token
from holdfast.lazy_dataclass import dataclass
from holdfast.wire.mcp import roots
from holdfast.wire.mcp.tools import Tool
from holdfast.wire.mcp.transports import OpenTransport, OpenTransports

SESSION_HEADER, TOKEN_HEADER = "holdfast-session", "holdfast-token"
SESSION_META, TOKEN_META = "holdfast/session", "holdfast/token"
CONNECTION = "holdfast/connection"
"""The key in `_meta` of an answer with a new token."""

NEW_TOKEN = f"Here is a new token, in _meta[{CONNECTION!r}]: repeat the call with it."

Context = ServerRequestContext[Any, Any]


class HandleRefused(HoldfastError):
    """The connection token of a call was not accepted."""

    code = "E_RECONNECT"

    def __init__(self, refused: Refused) -> None:
        way_back = f"{NEW_TOKEN} " if refused.issued is not None else ""
        super().__init__(
            f"The connection was not recognised: {refused.reason.value}.",
            recovery=f"{way_back}{refused.next_step} Or leave the headers out to start over.",
        )
        self.issued = refused.issued


@dataclass(frozen=True, slots=True)
class Recognised:
    """The caller of a tool, and the token to send it with the answer, if any."""

    caller: Caller
    connection: Connection | None = None
    issued: Issued | None = None


class Recognition:
    """Identifies callers. Only a tool call creates a connection, never listing or reading."""

    def __init__(self, connections: Connections, transports: OpenTransports) -> None:
        self._connections = connections
        self._transports = transports

    def transport(self, ctx: Context) -> OpenTransport:
        """Return the transport a request came over."""
        if isinstance(ctx.lifespan_context, OpenTransport):
            return ctx.lifespan_context
        legacy = era_of(ctx) is Era.LEGACY
        return self._transports.http(ctx.request.headers.get("mcp-session-id") if legacy and ctx.request else None)

    async def caller(
        self,
        ctx: Context,
        argument: str | None = None,
        answers: Mapping[str, Any] | None = None,
        *,
        ask: bool = True,
        handle: bool = True,
    ) -> Recognised | InputRequiredResult:
        """Return the caller with its root and its connection, if it has one; or a request for its roots.

        Without `handle`, a connection that the request names is ignored.
        """
        transport, era = self.transport(ctx), era_of(ctx)
        known, renew = await self._by_handle(ctx) if handle else (None, False)
        if known is not None:
            identity: str | None = BY_HANDLE + known.id
        else:
            identity = identify(transport.signals(era))
            known = await self._by_transport(transport, identity)
        bound = known.bound_root if known else None
        if ask and argument is None and bound is None:
            question = await roots.gather(ctx, era, transport, answers)
            if question is not None:
                return question
        info = ctx.session.client_params.client_info if ctx.session.client_params else None
        key = key_of(ctx)
        caller = Caller(
            transport=transport.kind,
            era=era,
            identity=identity,
            live=transport.open,
            pid=transport.hello.pid if transport.hello else None,
            agent_session=transport.agent_session,
            client_name=info.name[:200] if info else None,
            client_version=info.version[:100] if info else None,
            principal=key.name if key is not None else None,
            key_teams=key.teams if key is not None else None,
            managed=read_token(transport.hello.env.get(VARIABLE)) if transport.hello else None,
            directories=transport.directories,
            root=await transport.root(argument, bound),
            client_roots=transport.client_roots or (),
        )
        issued = await self._connections.renew_token(known.id) if known is not None and renew else None
        return Recognised(caller, known, issued)

    async def meet(self, ctx: Context, tool: Tool, recognised: Recognised) -> Recognised:
        """Return the same caller with a connection, created now if this is its first call."""
        caller = recognised.caller
        if not tool.meets:
            return recognised
        if caller.identity is None:
            if not tool.meets_strangers:
                return recognised
            connection, issued = await self._connections.meet_stranger(caller)
            return Recognised(replace(caller, identity=BY_HANDLE + connection.id), connection, issued)
        transport = self.transport(ctx)
        if recognised.connection is None:
            connection, first = await self._connections.meet(caller, tell_token=not _knows_itself(caller))
            transport.connection, transport.connection_identity = connection, caller.identity
            transport.token_due = time.monotonic() + self._half_life
            return Recognised(caller, connection, first)
        if recognised.issued is None and not _knows_itself(caller) and not caller.identity.startswith(BY_HANDLE):
            return await self._renewed(transport, recognised, recognised.connection)
        return recognised

    async def _renewed(self, transport: OpenTransport, recognised: Recognised, connection: Connection) -> Recognised:
        """Issue a new token to a long-lived caller before its last one expires.

        Also to one that comes over a new transport: the answer with its first token may be lost with the old one.
        """
        now = time.monotonic()
        if transport.token_due is not None and now < transport.token_due:
            return recognised
        transport.token_due = now + self._half_life
        return replace(recognised, issued=await self._connections.renew_token(connection.id))

    @property
    def _half_life(self) -> float:
        return self._connections.reconnects.expiry_ms / 2000

    async def _by_transport(self, transport: OpenTransport, identity: str | None) -> Connection | None:
        if identity is None:
            return None
        if transport.connection_identity != identity:
            transport.connection = await self._connections.find(identity)
            transport.connection_identity = identity if transport.connection else None
        return transport.connection

    async def _by_handle(self, ctx: Context) -> tuple[Connection | None, bool]:
        """Return the connection that the request's token proves, and whether to issue a new token."""
        meta = (ctx.params or {}).get("_meta") or {}
        headers = ctx.request.headers if ctx.request is not None else {}
        session = headers.get(SESSION_HEADER) or meta.get(SESSION_META)
        token = headers.get(TOKEN_HEADER) or meta.get(TOKEN_META)
        if session is None and token is None:
            return None, False
        if session is None and isinstance(token, str):  # the token names its session
            session = claimed_session(token)
        if not isinstance(session, str) or not isinstance(token, str):
            raise BadInput(
                "Holdfast-Token" if isinstance(session, str) else "Holdfast-Session",
                "is missing",
                recovery="Send both headers, the token alone, or neither.",
            )
        verified = await self._connections.reconnects.verify(session, token, attempt_of(ctx, self.transport(ctx)))
        if isinstance(verified, Refused):
            raise HandleRefused(verified)
        return verified


def era_of(ctx: Context) -> Era:
    """Return the MCP era of a request."""
    return Era.MODERN if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else Era.LEGACY


def handle_sent(ctx: Context) -> bool:
    """Return whether the request itself names its connection."""
    meta = (ctx.params or {}).get("_meta") or {}
    headers = ctx.request.headers if ctx.request is not None else {}
    return any(name in meta for name in (SESSION_META, TOKEN_META)) or any(
        name in headers for name in (SESSION_HEADER, TOKEN_HEADER)
    )


def key_of(ctx: Context) -> Key | None:
    """Return the key an HTTP request came with."""
    key: Key | None = ctx.request.scope.get("holdfast.key") if ctx.request is not None else None
    return key


def attempt_of(ctx: Context, transport: OpenTransport) -> Attempt:
    """Return who presents a token, for the limits and the audit."""
    info = ctx.session.client_params.client_info if ctx.session.client_params else None
    client = info.name[:200] if info else None
    if transport.kind is Transport.RELAY:
        return Attempt(f"relay:{transport.hello.relay if transport.hello else ''}", client)
    host = ctx.request.client.host if ctx.request is not None and ctx.request.client else "unknown"
    key = key_of(ctx)
    return Attempt(host, client, key.name if key is not None else None)


def _knows_itself(caller: Caller) -> bool:
    """Return whether the caller is recognised without a token, even after a restart of its process."""
    return caller.agent_session is not None and caller.transport is Transport.RELAY
