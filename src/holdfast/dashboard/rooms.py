"""The services that pages ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from holdfast.bridge.queue_changes import QueueChanges
    from holdfast.bridge.service import Bridge
    from holdfast.briefing.service import Briefings
    from holdfast.config import Settings
    from holdfast.connections.keys import Keys
    from holdfast.connections.service import Connections
    from holdfast.history.service import History
    from holdfast.protocol.service import Protocols
    from holdfast.reasoning.service import Reasoning
    from holdfast.store import Store
    from holdfast.teams.service import Teams


@dataclass(frozen=True, slots=True)
class Rooms:
    """The service of each room."""

    store: Store
    settings: Settings
    connections: Connections
    keys: Keys
    reasoning: Reasoning
    teams: Teams
    protocols: Protocols
    bridge: Bridge
    queue: QueueChanges
    briefings: Briefings
    history: History
