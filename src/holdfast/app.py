"""Where everything is wired together: services on one store, and what they offer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.app_store import clock_of
from holdfast.bridge.hooks import BridgeHooks
from holdfast.bridge.model import Priority
from holdfast.bridge.service import Bridge
from holdfast.briefing.hooks import BriefingHooks
from holdfast.briefing.ledger.service import Ledgers
from holdfast.briefing.service import Briefings
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
from holdfast.errors import BadInput
from holdfast.hooks import Capability, Hooks
from holdfast.loss_hooks import LossHooks
from holdfast.project import Root, RootSource, locate
from holdfast.protocol.hooks.answers import ProtocolHooks
from holdfast.protocol.in_time import in_time
from holdfast.protocol.service import Protocols
from holdfast.quoting import use_secret
from holdfast.reasoning.service import Reasoning
from holdfast.secrets_file import read_or_make
from holdfast.senders import OWNER
from holdfast.store import Store, events
from holdfast.teams.agents import Agent
from holdfast.teams.agents.claude import ClaudeAgent
from holdfast.teams.agents.echo import FOLDER, EchoAgent
from holdfast.teams.agents.transcripts import TranscriptStore
from holdfast.teams.roster_file import RosterFile
from holdfast.teams.runner import Runner
from holdfast.teams.service import Teams
from holdfast.teams.team import Team

if TYPE_CHECKING:
    from holdfast.archive.service import Archives
    from holdfast.bridge.chat.service import Chats
    from holdfast.bridge.dispatch import Dispatcher
    from holdfast.bridge.letters import Letters
    from holdfast.bridge.watch import Watch
    from holdfast.forgetting.service import Forgetting
    from holdfast.history.service import History
    from holdfast.history.status_line import StatusLine
    from holdfast.protocol.memories import ImportedState
    from holdfast.protocol.model import Gate
    from holdfast.protocol.runs import Scene, Verdict
    from holdfast.protocol.serena.client import Serena
    from holdfast.protocol.serena.mirror import Mirror
    from holdfast.records import Records
    from holdfast.wire.links import Links
    from holdfast.wire.rest import RestRoute
    from holdfast.wire.server import Wire

Progress = Callable[[float, str], None]
Command = Callable[[dict[str, Any], Progress], Awaitable[dict[str, Any]]]


class Surroundings:
    """What protocols look at outside the store. Hooks do without, so it is brought in when it is first asked for."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @cached_property
    def serena(self) -> Serena:
        """The Serenas of the worktrees."""
        from holdfast.protocol.serena.client import Serena

        return Serena(self._home)

    async def verify(self, gate: Gate, scene: Scene) -> Verdict:
        """What checking a gate found."""
        from holdfast.protocol.checks.gates import Checks

        return await Checks(self.serena.probe).verify(gate, scene)

    async def foreign_state(self, worktree: Path) -> ImportedState | None:
        """A current-state memory that lies in a worktree."""
        from holdfast.protocol.serena.mirror import foreign_state

        return await foreign_state(worktree)


@dataclass(frozen=True)
class App:
    """The services of one open store.

    Those that hooks do without are imported and made when they are first used, because an agent's first hook waits
    for the rest. A daemon makes them all in `complete`, off the loop.
    """

    store: Store
    settings: Settings
    daemon: str
    connections: Connections
    reasoning: Reasoning
    keys: Keys
    teams: Teams
    bridge: Bridge
    bridge_hooks: BridgeHooks
    protocols: Protocols
    protocol_hooks: ProtocolHooks
    surroundings: Surroundings
    briefings: Briefings
    briefing_hooks: BriefingHooks

    @cached_property
    def letters(self) -> Letters:
        """Messages by their numbers, for REST."""
        from holdfast.bridge.letters import Letters

        return Letters(self.store)

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """Gives waiting messages to agents that Holdfast runs."""
        from holdfast.bridge.dispatch import Dispatcher

        can_run, alive = self.teams.runner.can_run, self.bridge_hooks.attended
        return Dispatcher(self.store, self.bridge, self.teams, self.daemon, can_run=can_run, alive=alive)

    @cached_property
    def watch(self) -> Watch:
        """Looks after the files in which agents tell what they do."""
        from holdfast.bridge.watch import Watch

        return Watch(self.store, self.bridge, self._targets)

    @cached_property
    def chats(self) -> Chats:
        """Telegram and the webhook."""
        from holdfast.bridge.chat.service import Chats, ChatSettings

        settings = ChatSettings(
            telegram_token=self.settings.telegram_token,
            telegram_api=self.settings.telegram_api,
            telegram_webhook=self.settings.telegram_webhook,
            telegram_webhook_secret=self.settings.telegram_webhook_secret,
            webhook_url=self.settings.webhook_url,
            webhook_secret=self.settings.webhook_secret,
        )
        return Chats(self.store, self._targets, self.teams.runner.permissions, self.daemon, settings)

    @cached_property
    def mirror(self) -> Mirror:
        """Keeps memories in worktrees level with the runs."""
        from holdfast.protocol.serena.mirror import Mirror

        return Mirror(self.store, self.protocols, self.surroundings.serena)

    @cached_property
    def archives(self) -> Archives:
        """Takes projects to other machines."""
        from holdfast.archive.service import Archives

        return Archives(self.store, self.settings.home, self.daemon, self._roster)

    @cached_property
    def records(self) -> Records:
        """Verifies and backs up what is stored."""
        from holdfast.records import Records

        return Records(self.store, self.settings.home, clock_of(self.settings))

    @cached_property
    def history(self) -> History:
        """Finds what was said in transcripts."""
        from holdfast.history.service import History

        return History(self.store, self.daemon)

    @cached_property
    def forgetting(self) -> Forgetting:
        """Removes sessions and projects for good."""
        from holdfast.forgetting.service import Forgetting

        release = self.teams.runner.release
        return Forgetting(self.store, self.settings.home, self.reasoning, self.teams.projects, release)

    @cached_property
    def status_line(self) -> StatusLine:
        """The line that Claude Code shows."""
        from holdfast.history.status_line import StatusLine

        return StatusLine(self.store, self._targets)

    def _targets(self) -> Mapping[str, Team]:
        return self.teams.roster.teams

    async def _roster(self) -> Mapping[str, Team]:
        await self.teams.refresh()
        return self._targets()

    def complete(self) -> dict[str, Command]:
        """Make what is still missing; returns the commands. Takes a moment, and is called by one thread alone."""
        # No hook and no call is to wait for these.
        import tomllib  # noqa: F401

        import holdfast.briefing.ledger.folding
        import holdfast.claude_settings
        import holdfast.protocol.checks.gates
        import holdfast.protocol.hooks.git_actions
        import holdfast.protocol.project.from_document
        import holdfast.reasoning.analysis
        import holdfast.redaction.detector
        import holdfast.redaction.names  # noqa: F401

        _ = self.letters, self.dispatcher, self.watch, self.chats, self.mirror, self.records
        return self.commands()

    async def close(self) -> None:
        """End what the services have running outside."""
        await self.teams.runner.stop()
        if "serena" in vars(self.surroundings):  # else it was never made
            await self.surroundings.serena.close()
        if "chats" in vars(self):
            await self.chats.close()

    def hooks(self, links: Links) -> Hooks:
        """Who answers when an agent's hook calls."""
        capabilities = [
            Capability(self.protocol_hooks.handle, always_covers=frozenset({"protocol"})),
            Capability(self.bridge_hooks.handle, covers=frozenset({"task", "messages"})),
            Capability(LossHooks(self.settings.home).handle),
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
            "forget": self.forgetting.command,
            "pause": self._pause,
            "unpause": self._unpause,
            "teams-stats": self._team_figures,
            "teams-found": self._found_sessions,
            "teams-settings": self._team_settings,
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
            from holdfast.bridge.upkeep import forget_old as forget_old_messages

            await forget_old_messages(self.store, keep_ms)
            while await self.store.write(lambda tx: events.trim(tx, keep_ms)):
                continue

    async def _backup(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        file, replace, anyway = Path(args["file"]), bool(args.get("replace")), bool(args.get("anyway"))
        return await self.records.backup(file, progress, replace=replace, anyway=anyway)

    async def _verify(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return await self.records.verify(progress)

    async def _team_figures(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return await self.teams.figures()

    async def _team_settings(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await self.teams.refresh()
        return {"off": await self.teams.settings_off()}

    async def _found_sessions(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await self.teams.refresh()
        return {"sessions": await self.teams.found()}

    async def _adopt_session(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await self.teams.refresh()
        return await self.teams.adopt(args["team"], args["session"], args.get("from"), args.get("thread"))

    async def _permissions(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {"requests": await self.teams.runner.permissions.open()}

    async def _permit(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        decided = await self.teams.runner.permissions.decide(args["id"], bool(args["allowed"]), args.get("digest"))
        return {"id": decided["id"], "team": decided["team"], "tool": decided["tool"]}

    async def _trust(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = await _project(args.get("root"))
        await self.protocols.trust(root.uri, str(args["digest"]), str(args.get("agent_digest") or ""))
        return {"root": root.uri, "trusted": True}

    async def _untrust(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = await _project(args.get("root"))
        return {"root": root.uri, "was_trusted": await self.protocols.untrust(root.uri)}

    async def _trusted(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = await _project(args.get("root"))
        digest, agent_digest = await self.protocols.trusted(root.uri), await self.protocols.trusted_for_agents(root.uri)
        return {"root": root.uri, "digest": digest, "agent_digest": agent_digest}

    async def _validate_protocol(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return await self.protocols.validation(str(args["root"]), before_commit=bool(args.get("pre_commit")))

    async def _send(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await self.teams.refresh()
        return await self.bridge.send(
            str(args["target"]),
            str(args["message"]),
            message_id=args.get("id"),
            priority=Priority[str(args.get("priority") or "normal").upper()],
            sender=OWNER.label,
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
        found = await self.briefings.asked(Place(await _project(args.get("project")), None), args.get("budget"))
        return found.view()

    async def _create_key(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        made = await self.keys.create(args["name"], Scope(args["scope"]), args.get("teams"))
        return {"name": args["name"], "key": made}

    async def _list_keys(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {"keys": await self.keys.list()}

    async def _revoke_key(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await self.keys.revoke(args["name"])
        return {"name": args["name"]}

    async def _rotate_signing(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {"kid": await self.connections.reconnects.rotate_signing()}

    async def _pause(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = await _project(args.get("project"))
        await self.reasoning.pause(root)
        return {"project": root.uri, "paused": True}

    async def _unpause(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = await _project(args.get("project"))
        await self.reasoning.unpause(root)
        return {"project": root.uri, "paused": False}


async def _project(text: Any) -> Root:
    if not isinstance(text, str):
        raise BadInput("project", "must be a path or a URI")
    return await in_time(locate, text, RootSource.ARGUMENT)


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
    owners = read_or_make(settings.key_file)
    # With the home, so that a daemon knows the frames of the one before it.
    use_secret(sha256(f"frames:{owners}".encode()).digest())
    keys = Keys(store, owners)
    agents: dict[str, Agent] = {
        "claude": ClaudeAgent(settings.home, TranscriptStore(store)),
        "echo": EchoAgent(settings.home, settings.home / FOLDER),
    }
    runner = Runner(store, daemon, agents, {"HOLDFAST_HOME": str(settings.home)})
    teams = Teams(store, RosterFile(settings.home), runner)

    def targets() -> Mapping[str, Team]:
        return teams.roster.teams

    bridge, bridge_hooks = Bridge(store, targets), BridgeHooks(store, targets, alive)
    surroundings = Surroundings(settings.home)
    protocols = Protocols(store, surroundings, surroundings.foreign_state)
    runner.settings_off = protocols.settings_off
    sources = [inbox(bridge), run(protocols), thoughts(reasoning), colleagues(teams)]
    shared = None
    if store.engine == "postgres":
        from holdfast.briefing.sharing import SharedTranscripts

        shared = SharedTranscripts(store, settings.home, gives=settings.share_transcripts)
    briefings = Briefings(store, daemon, Ledgers(store, daemon), sources, alive, shared)
    runner.brief = briefings.managed
    return App(
        store,
        settings,
        daemon,
        connections,
        reasoning,
        keys,
        teams,
        bridge,
        bridge_hooks,
        protocols,
        ProtocolHooks(protocols),
        surroundings,
        briefings,
        BriefingHooks(briefings, daemon),
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
        bridge_tools.offer_task(app.bridge),
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
