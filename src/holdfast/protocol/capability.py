"""The protocol's capability: tools for the phases of a working session, and hooks that record evidence."""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.capability import HOUR_SECONDS, Capability, Command, Hook, Life, Loop
from holdfast.protocol.briefing_source import run
from holdfast.protocol.hooks.answers import ProtocolHooks
from holdfast.protocol.service import Protocols
from holdfast.store import Store

if TYPE_CHECKING:
    from holdfast.protocol.model import Gate
    from holdfast.protocol.runs import Scene, Verdict
    from holdfast.protocol.serena.mirror import Mirror
    from holdfast.protocol.serena.probe import Serena
    from holdfast.wire.http.rest import RestRoute
    from holdfast.wire.mcp.tools import Offer

MIRROR_SECONDS = 2.0


class Surroundings:
    """What protocols use outside the store, imported when it is first needed: hooks do without it."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @cached_property
    def serena(self) -> Serena:
        """The Serenas of the worktrees."""
        from holdfast.protocol.serena.probe import Serena

        return Serena(self._home)

    async def verify(self, gate: Gate, scene: Scene) -> Verdict:
        """Check a gate."""
        from holdfast.protocol.checks.gates import Checks

        return await Checks(self.serena.probe).verify(gate, scene)

    async def close(self) -> None:
        """Stop every Serena."""
        if "serena" in vars(self):  # else it was never made
            await self.serena.close()


def capability(store: Store, protocols: Protocols, surroundings: Surroundings) -> Capability:
    """Return the protocol capability of one daemon."""
    answers = ProtocolHooks(protocols)

    @cache
    def mirror() -> Mirror:
        from holdfast.protocol.serena.mirror import Mirror

        return Mirror(store, protocols)

    def prepare() -> None:
        import tomllib  # noqa: F401

        import holdfast.git.gate
        import holdfast.protocol.checks.gates
        import holdfast.protocol.project.from_document  # noqa: F401

        mirror()

    def offers() -> list[Offer]:
        from holdfast.protocol.tools import offer

        return [offer(protocols)]

    def routes() -> list[RestRoute]:
        from holdfast.protocol.routes import routes

        return routes(protocols)

    def commands() -> list[Command]:
        from holdfast.protocol.commands import commands

        return commands(protocols)

    async def health() -> dict[str, Any]:
        """Return where memories cannot be written, which Serenas are silent, and where the commit gate is off."""
        return {
            "mirrors": [{"root": root, "failure": why} for root, why in mirror().failures.items()],
            "serena": surroundings.serena.silent,
            "gates_off": dict(protocols.gates_off()),
        }

    return Capability(
        name="protocol",
        service=protocols,
        offers=offers,
        routes=routes,
        commands=commands,
        loops=lambda: [
            Loop("protocol: mirror", mirror().step, MIRROR_SECONDS, first=MIRROR_SECONDS),
            Loop("protocol: commit gates", protocols.settle_gates, HOUR_SECONDS),
        ],
        hooks=[Hook(lambda call: answers.handle(call.event), order=10, always_covers=frozenset({"protocol"}))],
        briefing_source=run(protocols),
        life=Life(
            prepare=prepare,
            sweep=protocols.sweep,
            on_stop=protocols.note_stop,
            close=surroundings.close,
            health=health,
        ),
    )
