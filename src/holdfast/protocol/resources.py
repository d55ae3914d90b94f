"""MCP resources of the protocol, in the formats of the memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.identity.caller import Caller
from holdfast.protocol import memories
from holdfast.protocol.runs import RunRecord, RunStatus
from holdfast.protocol.service import Protocols
from holdfast.store.events import Event
from holdfast.wire.mcp.tools import Page, Resource

PREFIX = "holdfast://protocol"

Render = Callable[[list[RunRecord]], str]


def resources(protocols: Protocols) -> list[Resource]:
    """Return state, checklist, history and violations of the caller's project."""
    offered: tuple[tuple[str, str, Render], ...] = (
        ("state", "The active session: phase, gates, checklist", _active("Session State", memories.current_state)),
        ("checklist", "The session's checklist, and what is done", _active("Session Checklist", memories.checklist)),
        ("history", "The last ten sessions", memories.history),
        ("violations", "Violations of the protocol", memories.violations_log),
    )
    return [_resource(protocols, *one) for one in offered]


def _resource(protocols: Protocols, name: str, description: str, render: Render) -> Resource:
    uri = f"{PREFIX}/{name}"

    async def read(caller: Caller, values: dict[str, str]) -> str:
        return render(await protocols.records_of(caller.root))

    async def listed(caller: Caller, cursor: str | None) -> Page:
        if not protocols.applies_to(caller.root):
            return Page([])
        return Page([(uri, f"protocol {name}", description)])

    def changed(event: Event) -> Sequence[str]:
        return (uri,) if event.kind.startswith("protocol.") else ()

    return Resource(
        template=uri, name=f"protocol {name}", description=description, read=read, list=listed, changed=changed
    )


def _active(title: str, render: Callable[[RunRecord], str]) -> Render:
    def rendered(records: list[RunRecord]) -> str:
        if not records or records[0].run.status != RunStatus.ACTIVE:
            return f"# {title}\n\nNo session is active in this project. session_start begins one.\n"
        return render(records[0])

    return rendered
