"""Links: the open transports behind which callers sit, and what was learnt of each."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.caller import Era, Hello, Signals, Transport, choose_root, identify
from holdfast.protocol.in_time import in_time

if TYPE_CHECKING:
    from mcp.server.session import ServerSession
    from mcp_types import Tool

    from holdfast.connections.model import Connection
    from holdfast.project import Root

HTTP_LINKS_LIMIT = 10_000
ROOT_FRESH_SECONDS = 30.0

_Looked = tuple[tuple[object, ...], float, "Root | None"]
"""From what a root was found, when, and the root."""


@dataclass(slots=True, eq=False)
class Link:
    """One relay's socket, one legacy HTTP session, or (not kept) one modern HTTP request."""

    transport: Transport
    hello: Hello | None = None
    mcp_session: str | None = None
    agent_session: str | None = None
    reachable: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while the daemon can send to the client by itself: over a relay's socket, or an HTTP client's open stream."""
    client_roots: tuple[str, ...] | None = None
    """None until the client was asked; empty when it has none or did not answer."""
    asking: asyncio.Task[None] | None = None
    known: Connection | None = None
    """The connection of the identity `known_as`, as it was looked up last."""
    known_as: str | None = None
    listed: list[Tool] | None = None
    """The tools this connection was shown; the list stays as it is."""
    token_due: float | None = None
    """When the caller is to be told another reconnect token."""
    subscriptions: dict[str, ServerSession] = field(default_factory=dict)
    _root: _Looked | None = None
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def open(self) -> bool:
        """Whether the caller is there now, as far as can be known."""
        return self.reachable.is_set()

    @property
    def identity(self) -> str | None:
        """Who is behind this link, as far as the link itself can tell."""
        return identify(self.signals(Era.LEGACY))

    def signals(self, era: Era) -> Signals:
        """What a call over this link tells of its caller."""
        return Signals(
            transport=self.transport,
            era=era,
            agent_session=self.agent_session,
            relay=self.hello.relay if self.hello else None,
            mcp_session=self.mcp_session,
        )

    @property
    def directories(self) -> tuple[str, ...]:
        """Where the caller's process is, the strongest first."""
        if self.hello is None:
            return ()
        known = (self.hello.env.get("CLAUDE_PROJECT_DIR"), self.hello.cwd)
        return tuple(directory for directory in known if directory)

    def forget_caller(self) -> None:
        """Look up the caller's connection anew with the next request."""
        self.known = self.known_as = None

    async def root(self, argument: str | None, bound: str | None) -> Root | None:
        """The strongest root; looked up on disk again only after a while. Raises ProjectTooSlow."""
        hello = self.hello
        environment = hello.env.get("CLAUDE_PROJECT_DIR") if hello else None
        inputs = (argument, bound, self.client_roots, environment, hello.cwd if hello else None)
        loop = asyncio.get_running_loop()
        if (known := self._known_root(inputs, loop.time())) is not None:
            return known[2]
        async with self._looking:  # calls that came one after another go on in that order
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


class Links:
    """Every open link of this daemon."""

    def __init__(self) -> None:
        self._relays: set[Link] = set()
        self._http: OrderedDict[str, Link] = OrderedDict()

    def __iter__(self) -> Iterator[Link]:
        yield from self._relays
        yield from self._http.values()

    @property
    def clients(self) -> int:
        """How many callers are connected now."""
        return len(self._relays) + sum(link.open for link in self._http.values())

    @property
    def relays(self) -> int:
        """How many relays are connected now."""
        return len(self._relays)

    def open_relay(self, hello: Hello) -> Link:
        """A relay connected."""
        agent_session = hello.env.get("CLAUDE_CODE_SESSION_ID") or None
        link = Link(Transport.RELAY, hello=hello, agent_session=agent_session)
        link.reachable.set()
        self._relays.add(link)
        return link

    def close_relay(self, link: Link) -> None:
        """A relay's socket is gone."""
        link.reachable.clear()
        self._relays.discard(link)

    def http(self, mcp_session: str | None) -> Link:
        """The link of a legacy HTTP session; a fresh one for a request that belongs to none."""
        if mcp_session is None:
            return Link(Transport.HTTP)
        link = self._http.get(mcp_session)
        if link is None:
            link = self._http[mcp_session] = Link(Transport.HTTP, mcp_session=mcp_session)
            if len(self._http) > HTTP_LINKS_LIMIT:
                self._http.popitem(last=False)
        else:
            self._http.move_to_end(mcp_session)
        return link

    def forget_http(self, mcp_session: str) -> Link | None:
        """The client ended its HTTP session."""
        return self._http.pop(mcp_session, None)

    def forget_connection(self, connection_id: str) -> None:
        """The connection was revoked: whoever had it is somebody new with the next request, and is told so."""
        for link in self:
            if link.known is not None and link.known.id == connection_id:
                link.forget_caller()

    def rebind(self, parent: int, agent_session: str) -> list[str]:
        """The agent with this process id changed its session; returns the identities that are left behind."""
        left: list[str] = []
        for link in self._relays:
            if link.hello is not None and link.hello.ppid == parent and link.agent_session != agent_session:
                if link.identity is not None:
                    left.append(link.identity)
                link.agent_session = agent_session
                link.forget_caller()
        return left

    def attached(self) -> set[str]:
        """The identities for which an open link speaks."""
        return {identity for link in self if link.open and (identity := link.identity)}
