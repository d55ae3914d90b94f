"""Background work of the bridge."""

from __future__ import annotations

from holdfast.bridge.chat.service import Chats
from holdfast.bridge.hooks import BridgeHooks
from holdfast.bridge.managed_delivery import ManagedDelivery
from holdfast.bridge.service import Bridge
from holdfast.bridge.session_file_watch import Watch
from holdfast.capability import SETTLE_SECONDS, Loop

SWEEP_SECONDS = 15.0
LOOK_SECONDS = 2.0


def loops(bridge: Bridge, hooks: BridgeHooks, watch: Watch, dispatcher: ManagedDelivery, chats: Chats) -> list[Loop]:
    """What a daemon supervises."""
    return [
        Loop("bridge: queue", bridge.sweep, SWEEP_SECONDS, first=SWEEP_SECONDS),
        Loop("bridge: hooks", hooks.keep, LOOK_SECONDS, first=LOOK_SECONDS),
        Loop("bridge: files", watch.step, LOOK_SECONDS),
        # Later, else an agent that is about to come back would not be seen.
        Loop("bridge: turns", dispatcher.run, first=SETTLE_SECONDS),
        *(Loop(name, run) for name, run in chats.loops().items()),
    ]
