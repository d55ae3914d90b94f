"""The open transports of callers, and what is known of each."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from holdfast.agents.caller_signals import project_in, session_in
from holdfast.files.in_time import in_time
from holdfast.identity.caller import Era, Hello, Signals, Transport, choose_root, identify
from holdfast.lazy_dataclass import dataclass
from holdfast.process.alive import exists

if TYPE_CHECKING:
    from mcp.server.session import ServerSession
    from mcp_types import Tool

    from holdfast.connections.model import Connection
    from holdfast.identity.project import Root

HTTP_SESSIONS_LIMIT = 10_000
ROOT_FRESH_SECONDS = 30.0

_Looked = tuple[tuple[object, ...], float, "Root | None"]
"""The inputs of a root lookup, its time, and the root."""


@dataclass(slots=True, eq=False)
class OpenTransport:
    """One relay's socket, one legacy HTTP session, or (not kept) one modern HTTP request."""

    kind: Transport
    hello: Hello | None = None
    mcp_session: str | None = None
    agent_session: str | None = None
    project: str | None = None
    """The project directory that the agent gave its relay."""
    reachable: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while the daemon can send to the client by itself: over a relay's socket, or an HTTP client's open stream."""
    client_roots: tuple[str, ...] | None = None
    """None until the client was asked; empty if it has none or did not answer."""
    asking: asyncio.Task[None] | None = None
    connection: Connection | None = None
    """The connection of the identity `connection_identity`, as last looked up."""
    connection_identity: str | None = None
    listed: list[Tool] | None = None
    """The tools that this connection was shown; the list does not change."""
    token_due: float | None = None
    """When the caller gets its next reconnect token."""
    subscriptions: dict[str, ServerSession] = field(default_factory=dict)
    _root: _Looked | None = None
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def open(self) -> bool:
        """Whether the caller is connected now, as far as can be known."""
        return self.reachable.is_set()

    @property
    def identity(self) -> str | None:
        """The caller's identity, as far as the transport itself can tell."""
        return identify(self.signals(Era.LEGACY))

    def signals(self, era: Era) -> Signals:
        """Return the signals by which a call over this transport identifies its caller."""
        return Signals(
            transport=self.kind,
            era=era,
            agent_session=self.agent_session,
            relay=self.hello.relay if self.hello else None,
            mcp_session=self.mcp_session,
        )

    @property
    def directories(self) -> tuple[str, ...]:
        """The working directories of the caller's process, strongest first."""
        if self.hello is None:
            return ()
        return tuple(directory for directory in (self.project, self.hello.cwd) if directory)

    def forget_caller(self) -> None:
        """Look up the caller's connection again on the next request."""
        self.connection = self.connection_identity = None

    async def root(self, argument: str | None, bound: str | None) -> Root | None:
        """Return the strongest root; cached for a while. Raises ProjectTooSlow."""
        hello = self.hello
        inputs = (argument, bound, self.client_roots, self.project, hello.cwd if hello else None)
        loop = asyncio.get_running_loop()
        if (known := self._known_root(inputs, loop.time())) is not None:
            return known[2]
        async with self._looking:  # calls continue in the order in which they came
            if (known := self._known_root(inputs, loop.time())) is None:
                known = self._root = (inputs, loop.time(), await in_time(_strongest_root, *inputs))
            return known[2]

    def _known_root(self, inputs: tuple[object, ...], now: float) -> _Looked | None:
        known = self._root
        return known if known and known[0] == inputs and now - known[1] < ROOT_FRESH_SECONDS else None


def _strongest_root(
    argument: str | None,
    bound: str | None,
    client: tuple[str, ...] | None,
    environment: str | None,
    directory: str | None,
) -> Root | None:
    return choose_root(
        argument=argument, bound=bound, client=client or (), environment=environment, directory=directory
    )


def _has_parent(transport: OpenTransport) -> bool:
    """Return whether the process that started a relay is still there; True if it cannot be seen, as in a container."""
    return transport.hello is None or not exists(transport.hello.pid) or exists(transport.hello.ppid)


class OpenTransports:
    """All open transports of this daemon."""

    def __init__(self) -> None:
        self._relays: set[OpenTransport] = set()
        self._http: OrderedDict[str, OpenTransport] = OrderedDict()

    def __iter__(self) -> Iterator[OpenTransport]:
        yield from self._relays
        yield from self._http.values()

    @property
    def clients(self) -> int:
        """Number of connected callers."""
        return len(self._relays) + sum(one.open for one in self._http.values())

    @property
    def relays(self) -> int:
        """Number of connected relays."""
        return len(self._relays)

    def open_relay(self, hello: Hello) -> OpenTransport:
        """Add a relay that connected."""
        transport = OpenTransport(
            Transport.RELAY, hello=hello, agent_session=session_in(hello.env), project=project_in(hello.env)
        )
        transport.reachable.set()
        self._relays.add(transport)
        return transport

    def close_relay(self, transport: OpenTransport) -> None:
        """Remove a relay whose socket was closed."""
        transport.reachable.clear()
        self._relays.discard(transport)

    def http(self, mcp_session: str | None) -> OpenTransport:
        """Return the transport of a legacy HTTP session; a new one for a request without a session."""
        if mcp_session is None:
            return OpenTransport(Transport.HTTP)
        transport = self._http.get(mcp_session)
        if transport is None:
            transport = self._http[mcp_session] = OpenTransport(Transport.HTTP, mcp_session=mcp_session)
            if len(self._http) > HTTP_SESSIONS_LIMIT:
                self._http.popitem(last=False)
        else:
            self._http.move_to_end(mcp_session)
        return transport

    def forget_http(self, mcp_session: str) -> OpenTransport | None:
        """Remove an HTTP session that its client ended."""
        return self._http.pop(mcp_session, None)

    def forget_connection(self, connection_id: str) -> None:
        """Forget a revoked connection: its caller counts as new on the next request, and is told so."""
        for transport in self:
            if transport.connection is not None and transport.connection.id == connection_id:
                transport.forget_caller()

    def rebind(self, parent: int, agent_session: str) -> list[str]:
        """Set the new session of the agent with this process id; return the identities it leaves behind."""
        left: list[str] = []
        for transport in self._relays:
            parent_of = transport.hello.ppid if transport.hello is not None else None
            if parent_of == parent and transport.agent_session != agent_session:
                if transport.identity is not None:
                    left.append(transport.identity)
                transport.agent_session = agent_session
                transport.forget_caller()
        return left

    def has_agent(self, session: str) -> bool:
        """Return whether an agent of this session is connected; a killed one is not, even before its relay notices."""
        return any(one.open and one.agent_session == session and _has_parent(one) for one in self)

    def attached(self) -> set[str]:
        """Return the identities that have an open transport."""
        return {identity for one in self if one.open and (identity := one.identity)}
