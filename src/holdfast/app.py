"""Where everything is wired together: services on one store, and what they offer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.archive.service import Archives
from holdfast.bridge.chat.service import Chats, ChatSettings
from holdfast.bridge.dispatch import Dispatcher
from holdfast.bridge.hooks import BridgeHooks
from holdfast.bridge.letters import Letters
from holdfast.bridge.model import Priority
from holdfast.bridge.service import Bridge
from holdfast.bridge.upkeep import forget_old as forget_old_messages
from holdfast.bridge.watch import Watch
from holdfast.briefing.hooks import BriefingHooks
from holdfast.briefing.ledger.service import Ledgers
from holdfast.briefing.service import Briefings
from holdfast.briefing.sharing import SharedTranscripts
from holdfast.briefing.sources import Place
from holdfast.briefing.sources.colleagues import colleagues
from holdfast.briefing.sources.inbox import inbox
from holdfast.briefing.sources.run import run
from holdfast.briefing.sources.thoughts import thoughts
from holdfast.config import Settings
from holdfast.connections.attempts import AttemptLimits
from holdfast.connections.keys import Keys, Scope
from holdfast.connections.reconnects import Reconnects
from holdfast.connections.service import Connections
from holdfast.connections.signing import FileShelf, SharedShelf, SigningRing
from holdfast.errors import BadInput, StoreCorrupt
from holdfast.history.service import History
from holdfast.history.status_line import StatusLine
from holdfast.hooks import Capability, Hooks
from holdfast.project import Root, RootSource, locate, path_of
from holdfast.protocol.checks.gates import Checks
from holdfast.protocol.hooks.answers import ProtocolHooks
from holdfast.protocol.serena.client import Serena
from holdfast.protocol.serena.mirror import Mirror, foreign_state
from holdfast.protocol.service import Protocols
from holdfast.reasoning.checks import chain_check
from holdfast.reasoning.service import Reasoning
from holdfast.secrets_file import read_or_make
from holdfast.store import Clock, Store, events
from holdfast.store.backup import backup
from holdfast.store.opening import open_store
from holdfast.store.sqlite import system_clock
from holdfast.store.verify import verify
from holdfast.teams.agents.claude import ClaudeAgent
from holdfast.teams.agents.transcripts import TranscriptStore
from holdfast.teams.roster_file import RosterFile
from holdfast.teams.runner import Runner
from holdfast.teams.service import Teams
from holdfast.teams.team import Team

if TYPE_CHECKING:
    from holdfast.wire.links import Links
    from holdfast.wire.rest import RestRoute
    from holdfast.wire.server import Wire

Progress = Callable[[float, str], None]
Command = Callable[[dict[str, Any], Progress], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class App:
    """The services of one open store."""

    store: Store
    settings: Settings
    connections: Connections
    reasoning: Reasoning
    keys: Keys
    teams: Teams
    bridge: Bridge
    letters: Letters
    bridge_hooks: BridgeHooks
    dispatcher: Dispatcher
    watch: Watch
    chats: Chats
    protocols: Protocols
    protocol_hooks: ProtocolHooks
    serena: Serena
    mirror: Mirror
    briefings: Briefings
    briefing_hooks: BriefingHooks
    archives: Archives
    history: History
    status_line: StatusLine

    def hooks(self, links: Links) -> Hooks:
        """Who answers when an agent's hook calls."""
        capabilities = [
            Capability(self.protocol_hooks.handle, always_covers=frozenset({"protocol"})),
            Capability(self.bridge_hooks.handle, covers=frozenset({"task", "messages"})),
        ]
        return Hooks(links, self.connections, capabilities, self.briefing_hooks)

    @property
    def busy(self) -> bool:
        """Whether work is under way that nobody needs to be connected for."""
        return self.teams.runner.busy or bool(self.chats.loops())

    def commands(self) -> dict[str, Command]:
        """What the command line asks of an open store, whether a daemon has it open or the command itself."""
        return {
            "backup": self._backup,
            "verify": self._verify,
            "forget": self._forget,
            "pause": self._pause,
            "unpause": self._unpause,
            "teams-stats": self._team_figures,
            "teams-found": self._found_sessions,
            "teams-adopt": self._adopt_session,
            "permissions": self._permissions,
            "permit": self._permit,
            "trust": self._trust,
            "untrust": self._untrust,
            "trusted": self._trusted,
            "protocol-validate": self._validate_protocol,
            "bridge-send": self._send,
            "bridge-pull": self._pull,
            "bridge-queue": self._queue,
            "resume": self._resume,
            **self.archives.commands(),
            **self.history.commands(),
            **self.status_line.commands(),
            "key-create": self._create_key,
            "key-list": self._list_keys,
            "key-revoke": self._revoke_key,
            "key-rotate-signing": self._rotate_signing,
        }

    async def index(self) -> None:
        """Make what was recorded lately findable."""
        await self.reasoning.library.index()

    async def sweep(self) -> None:
        """The regular clean-up: archive what is old, drop what is past keeping."""
        await self.reasoning.sweep()
        await self.connections.forget_old()
        await self.protocols.sweep()
        await self.chats.sweep()
        if keep_ms := self.settings.keep_ms:
            await forget_old_messages(self.store, keep_ms)
            while await self.store.write(lambda tx: events.trim(tx, keep_ms)):
                continue

    async def _backup(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        report = await backup(self.store, Path(args["file"]), progress, replace=bool(args.get("replace")))
        return {"file": str(report.path), "bytes": report.size, "rows": sum(report.rows.values())}

    async def _verify(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        report = await verify(self.store, {"thoughts": chain_check}, progress)
        return {
            "ok": report.ok,
            "checked": report.checked,
            "complete": report.complete,
            "problems": [asdict(problem) for problem in report.problems],
        }

    async def _forget(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        what = args.get("what")
        if not isinstance(what, str) or not what:
            raise BadInput("what", "must be a session id or a project's path or URI")
        if "/" in what:
            root = _project(what)
            path = path_of(root.uri)
            await self.teams.refresh()
            found = {"agent_sessions": await self.briefings.forget(root), "messages": await self.bridge.forget(root)}
            if path is not None:
                await self.history.remove({"project": str(path)}, progress)
                found["runs"] = await self.protocols.forget(path)
            return {**found, **await self.reasoning.forget_project(root)}
        return await self.reasoning.forget_session(what)

    async def _team_figures(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return await self.teams.figures()

    async def _found_sessions(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await self.teams.refresh()
        return {"sessions": await self.teams.found()}

    async def _adopt_session(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await self.teams.refresh()
        return await self.teams.adopt(args["team"], args["session"], args.get("from"), args.get("thread"))

    async def _permissions(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {"requests": await self.teams.runner.permissions.open()}

    async def _permit(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        decided = await self.teams.runner.permissions.decide(args["id"], bool(args["allowed"]))
        return {"id": decided["id"], "team": decided["team"], "tool": decided["tool"]}

    async def _trust(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = _project(args.get("root"))
        await self.protocols.trust(root.uri, str(args["digest"]))
        return {"root": root.uri, "trusted": True}

    async def _untrust(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = _project(args.get("root"))
        return {"root": root.uri, "was_trusted": await self.protocols.untrust(root.uri)}

    async def _trusted(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = _project(args.get("root"))
        return {"root": root.uri, "digest": await self.protocols.trusted(root.uri)}

    async def _validate_protocol(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return await self.protocols.validation(str(args["root"]), before_commit=bool(args.get("pre_commit")))

    async def _send(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await self.teams.refresh()
        return await self.bridge.send(
            str(args["target"]),
            str(args["message"]),
            message_id=args.get("id"),
            priority=Priority[str(args.get("priority") or "normal").upper()],
            sender=str(args.get("sender") or "the owner"),
            source="cli",
        )

    async def _pull(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await self.teams.refresh()
        return await self.bridge.pull(str(args["target"]), args.get("since"))

    async def _queue(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await self.teams.refresh()
        return await self.bridge.status()

    async def _resume(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await self.teams.refresh()
        found = await self.briefings.asked(Place(_project(args.get("project")), None), args.get("budget"))
        return found.view()

    async def _create_key(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {"name": args["name"], "key": await self.keys.create(args["name"], Scope(args["scope"]))}

    async def _list_keys(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {"keys": await self.keys.list()}

    async def _revoke_key(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await self.keys.revoke(args["name"])
        return {"name": args["name"]}

    async def _rotate_signing(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {"kid": await self.connections.reconnects.rotate_signing()}

    async def _pause(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = _project(args.get("project"))
        await self.reasoning.pause(root)
        return {"project": root.uri, "paused": True}

    async def _unpause(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = _project(args.get("project"))
        await self.reasoning.unpause(root)
        return {"project": root.uri, "paused": False}


def _project(text: Any) -> Root:
    if not isinstance(text, str):
        raise BadInput("project", "must be a path or a URI")
    return locate(text, RootSource.ARGUMENT)


def build(store: Store, settings: Settings, daemon: str, alive: Callable[[str], bool] = lambda session: False) -> App:
    """The services on an open store; `alive` tells whether an agent's session is connected now."""
    shelf = SharedShelf(store) if store.engine == "postgres" else FileShelf(settings.home)
    clock = clock_of(settings)
    reconnects = Reconnects(
        store,
        SigningRing(shelf, settings.session_secret, clock),
        AttemptLimits(),
        expiry_minutes=settings.reconnect_minutes,
        life_ms=settings.connection_life_ms,
    )
    connections = Connections(store, daemon, reconnects, life_ms=settings.connection_life_ms, clock=clock)
    reasoning = Reasoning(
        store,
        connections,
        auto_resume_ms=settings.auto_resume_ms,
        archive_after_ms=settings.archive_after_ms,
    )
    keys = Keys(store, read_or_make(settings.key_file))
    agents = {"claude": ClaudeAgent(settings.home, TranscriptStore(store))}
    runner = Runner(store, daemon, agents, {"HOLDFAST_HOME": str(settings.home)})
    teams = Teams(store, RosterFile(settings.home), runner)

    def targets() -> Mapping[str, Team]:
        return teams.roster.teams

    async def roster() -> Mapping[str, Team]:
        await teams.refresh()
        return targets()

    bridge, bridge_hooks = Bridge(store, targets), BridgeHooks(store, targets, alive)
    serena = Serena(settings.home)
    protocols = Protocols(store, Checks(serena.probe), foreign_state)
    sources = [inbox(bridge), run(protocols), thoughts(reasoning), colleagues(teams)]
    shared = None
    if store.engine == "postgres":
        shared = SharedTranscripts(store, settings.home, gives=settings.share_transcripts)
    briefings = Briefings(store, daemon, Ledgers(store, daemon), sources, alive, shared)
    runner.brief = briefings.managed
    return App(
        store,
        settings,
        connections,
        reasoning,
        keys,
        teams,
        bridge,
        Letters(store),
        bridge_hooks,
        Dispatcher(store, bridge, teams, daemon, can_run=runner.can_run, alive=bridge_hooks.attended),
        Watch(store, bridge, targets),
        Chats(store, targets, runner.permissions, daemon, _chat_settings(settings)),
        protocols,
        ProtocolHooks(protocols),
        serena,
        Mirror(store, protocols, serena),
        briefings,
        BriefingHooks(briefings, daemon),
        Archives(store, settings.home, daemon, roster),
        History(store, daemon),
        StatusLine(store, targets),
    )


def _chat_settings(settings: Settings) -> ChatSettings:
    return ChatSettings(
        telegram_token=settings.telegram_token,
        telegram_api=settings.telegram_api,
        telegram_webhook=settings.telegram_webhook,
        telegram_webhook_secret=settings.telegram_webhook_secret,
        webhook_url=settings.webhook_url,
        webhook_secret=settings.webhook_secret,
    )


def clock_of(settings: Settings) -> Clock:
    """The clock in force: the system's, plus what a test adds."""
    return lambda: system_clock() + clock_offset(settings)


def clock_offset(settings: Settings) -> int:
    """Milliseconds that a test adds to the time."""
    if settings.test_clock is None:
        return 0
    try:
        return int(settings.test_clock.read_text())
    except FileNotFoundError:
        return 0


async def open_app_store(
    settings: Settings, on_corrupt: Callable[[StoreCorrupt], None] | None = None
) -> tuple[Store, list[str]]:
    """The store that the settings name, and what users must be told of it."""
    return await open_store(
        settings.home,
        settings.database_url,
        clock=clock_of(settings),
        clock_offset=lambda: clock_offset(settings),
        on_corrupt=on_corrupt,
    )


def build_wire(app: App, links: Links) -> Wire:
    """The MCP side. Imports the SDK, which takes a second: hooks are served before this."""
    import jwt  # noqa: F401 - so that no call waits for it
    import limits.strategies  # noqa: F401 - nor for this

    from holdfast.bridge import tools as bridge_tools
    from holdfast.briefing import tools as briefing_tools
    from holdfast.connections import tools as connection_tools
    from holdfast.protocol import tools as protocol_tools
    from holdfast.reasoning import tools as reasoning_tools
    from holdfast.teams import tools as team_tools
    from holdfast.wire.catalog import Catalog
    from holdfast.wire.server import Wire

    offers = [
        briefing_tools.offer(app.briefings),
        reasoning_tools.offer(app.reasoning),
        connection_tools.offer(app.connections),
        team_tools.offer(app.teams),
        protocol_tools.offer(app.protocols),
        bridge_tools.offer(app.bridge),
    ]
    return Wire(Catalog(offers), app.connections, links)


def build_rest(app: App) -> list[RestRoute]:
    """The REST side of every capability that has one."""
    from holdfast.bridge import routes as bridge_routes
    from holdfast.briefing import routes as briefing_routes
    from holdfast.connections import routes as connection_routes
    from holdfast.protocol import routes as protocol_routes
    from holdfast.teams import routes as team_routes

    return [
        *connection_routes.routes(app.connections),
        *team_routes.routes(app.teams),
        *protocol_routes.routes(app.protocols),
        *bridge_routes.routes(app.bridge, app.letters),
        *briefing_routes.routes(app.briefings),
    ]
