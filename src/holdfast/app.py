"""The one place where services are put together: each room's service on one store, and the list of what they offer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

from holdfast.agents.registry import Runs
from holdfast.bridge.capability import capability as bridge_capability
from holdfast.bridge.hooks import BridgeHooks
from holdfast.bridge.service import Bridge
from holdfast.briefing.capability import capability as briefing_capability
from holdfast.briefing.ledger.service import Ledgers
from holdfast.briefing.service import Briefings
from holdfast.briefing.unhooked import Unhooked
from holdfast.capability import Capability, Command, Loop
from holdfast.config import Settings
from holdfast.connections.capability import capability as connections_capability
from holdfast.connections.capability import make_connections
from holdfast.connections.service import Connections
from holdfast.files.private import read_or_make
from holdfast.hooks.dispatch import Hooks
from holdfast.protocol.capability import Surroundings
from holdfast.protocol.capability import capability as protocol_capability
from holdfast.protocol.service import Protocols
from holdfast.reasoning.capability import capability as reasoning_capability
from holdfast.reasoning.service import Reasoning
from holdfast.records.capability import capability as records_capability
from holdfast.store import Store
from holdfast.teams.capability import capability as teams_capability
from holdfast.teams.config_file import TeamsFile
from holdfast.teams.project_settings import settings_off
from holdfast.teams.runner import Runner
from holdfast.teams.service import Teams
from holdfast.text.quoting import use_secret
from holdfast.wire.mcp.transports import OpenTransports

if TYPE_CHECKING:
    from holdfast.connections.keys import Keys
    from holdfast.wire.http.pages import Pages
    from holdfast.wire.http.rest import RestRoute
    from holdfast.wire.http.webhooks import Webhook
    from holdfast.wire.mcp.server import Wire

T = TypeVar("T")


class App:
    """The rooms on one open store.

    An agent's first hook waits for every module that is imported before it. So only those rooms are made at once that
    have hooks or tell something in a briefing; the others when they are first asked for, by a daemon in `prepare`.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        transports: OpenTransports,
        connections: Connections,
        keys: Callable[[], Keys],
        at_once: Sequence[Capability],
        late: Callable[[], Sequence[Capability]],
    ) -> None:
        self.store = store
        self.settings = settings
        self.transports = transports
        self.connections = connections
        self.keys = keys
        self.hooks = Hooks(hook for one in at_once for hook in one.hooks)
        self._at_once = at_once
        self._make_late = late

    @cached_property
    def _late(self) -> Sequence[Capability]:
        late = self._make_late()
        for one in late:
            if one.hooks or one.briefing_source is not None:
                raise TypeError(f"{one.name} answers hooks or tells in briefings: list it among those made at once")
        return late

    @property
    def capabilities(self) -> Sequence[Capability]:
        """Every room."""
        return [*self._at_once, *self._late]

    def service(self, kind: type[T]) -> T:
        """Return the service of this class; raises LookupError."""
        for one in self.capabilities:
            if isinstance(one.service, kind):
                return one.service
        raise LookupError(f"No capability has a {kind.__name__}.")

    def prepare(self) -> None:
        """Import and create what is still missing. Takes a moment, and is called by one thread only."""
        for one in self.capabilities:
            one.life.prepare()

    def commands(self) -> dict[str, Command]:
        """Return the command line's handlers for an open store, whether a daemon or the command itself opened it."""
        return {command.name: command for one in self.capabilities for command in one.commands()}

    def loops(self) -> list[Loop]:
        """Return the loops that a daemon supervises."""
        return [loop for one in self.capabilities for loop in one.loops()]

    def routes(self) -> list[RestRoute]:
        """Return the REST side."""
        return [route for one in self.capabilities for route in one.routes()]

    def webhooks(self) -> list[Webhook]:
        """Return the routes that other services call."""
        return [webhook for one in self.capabilities for webhook in one.webhooks()]

    def pages(self) -> list[Pages]:
        """Return what people open in a browser."""
        return [pages for one in self.capabilities for pages in one.pages()]

    def wire(self) -> Wire:
        """Return the MCP side. Imports the SDK, which takes a second: hooks are served before this."""
        from holdfast.wire.mcp.catalog import Catalog
        from holdfast.wire.mcp.server import Wire

        offers = [offer for one in self.capabilities for offer in one.offers()]
        return Wire(Catalog(offers), self.connections, self.transports)

    @property
    def is_busy(self) -> bool:
        """Whether work is under way that does not need a connected caller."""
        return any(one.life.is_busy() for one in self.capabilities)

    async def start(self) -> None:
        """Take over from an earlier daemon: what hooks need."""
        for one in self._at_once:
            await one.life.start()

    async def start_late(self) -> None:
        """Take over from an earlier daemon: the rest."""
        for one in self._late:
            await one.life.start()

    def stopping(self) -> None:
        """End streams that would never end by themselves."""
        for one in self._made:
            one.life.stopping()

    async def on_stop(self, by: str) -> None:
        """Write down who has stopped this daemon with `holdfast stop`."""
        for one in self._made:
            await one.life.on_stop(by)

    async def close(self) -> None:
        """End what the services have running outside."""
        for one in self._made:
            await one.life.close()

    async def leave(self) -> None:
        """Write down that this daemon is gone."""
        for one in self._made:
            await one.life.leave()

    @property
    def _made(self) -> Sequence[Capability]:
        return self.capabilities if "_late" in vars(self) else self._at_once


def build(
    store: Store,
    settings: Settings,
    machine: str,
    transports: OpenTransports | None = None,
    owns_home: Callable[[], bool] = lambda: True,
) -> App:
    """Build the services on an open store.

    `transports` are those that a daemon has open; `owns_home` tells whether the data directory is still its own.
    """
    transports = transports or OpenTransports()
    home, shared = settings.home, store.engine == "postgres"
    connections = make_connections(store, settings, machine)
    reasoning = Reasoning(
        store, connections, auto_resume_ms=settings.auto_resume_ms, archive_after_ms=settings.archive_after_ms
    )
    owner_key = read_or_make(settings.key_file)
    # With the home, so that a daemon knows the frames of the one before it.
    use_secret(sha256(f"frames:{owner_key}".encode()).digest())

    @cache
    def keys() -> Keys:
        from holdfast.connections.keys import Keys

        return Keys(store, owner_key)

    surroundings = Surroundings(home)
    protocols = Protocols(store, surroundings, home)
    environment = {"HOLDFAST_HOME": str(home)}
    off = partial(settings_off, trusted=protocols.trusted)
    runner = Runner(store, machine, Runs(home, store), environment, settings_off=off)
    teams = Teams(store, TeamsFile(home), runner)
    bridge, bridge_hooks = Bridge(store, teams.targets), BridgeHooks(store, teams.targets, transports.has_agent)

    others = [
        connections_capability(connections, keys, transports),
        teams_capability(teams, runner, shared=shared),
        protocol_capability(store, protocols, surroundings),
        bridge_capability(store, settings, machine, bridge, bridge_hooks, teams),
        reasoning_capability(reasoning),
        records_capability(store, settings, owns_home),
    ]
    shared_transcripts = None
    if shared:
        from holdfast.briefing.sharing import SharedTranscripts

        shared_transcripts = SharedTranscripts(store, home, gives=settings.share_transcripts)
    sources = [one.briefing_source for one in others if one.briefing_source is not None]
    briefings = Briefings(store, machine, Ledgers(store, machine), sources, transports.has_agent, shared_transcripts)
    at_once = [*others, briefing_capability(briefings, machine, teams, Unhooked(store, home))]

    def late() -> list[Capability]:
        from holdfast.bridge.queue_changes import QueueChanges
        from holdfast.dashboard.capability import capability as dashboard_capability
        from holdfast.dashboard.rooms import Rooms
        from holdfast.forgetting.capability import capability as forgetting_capability
        from holdfast.handoff.capability import capability as handoff_capability
        from holdfast.history.capability import capability as history_capability
        from holdfast.history.service import History
        from holdfast.moving.capability import capability as moving_capability

        return [
            handoff_capability(store, home, machine, teams),
            history_capability(store, machine, teams.targets),
            moving_capability(store, home, briefings),
            forgetting_capability(store, home, reasoning, teams),
            dashboard_capability(
                Rooms(
                    store,
                    settings,
                    connections,
                    keys(),
                    reasoning,
                    teams,
                    protocols,
                    bridge,
                    QueueChanges(store, teams.targets),
                    briefings,
                    History(store, machine),
                ),
                owner_key,
            ),
        ]

    return App(store, settings, transports, connections, keys, at_once, late)
