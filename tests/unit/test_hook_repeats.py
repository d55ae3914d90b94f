"""One event of an agent counts once for every room, however many of its settings name a hook for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.agents.hook_events import HookAnswer
from holdfast.capability import Hook, HookCall
from holdfast.hooks.dispatch import HookContext, Hooks

pytestmark = pytest.mark.anyio


class Rooms:
    """Two rooms that count what they are asked, behind the dispatcher."""

    def __init__(self) -> None:
        self.calls = [0, 0]
        self.hooks = Hooks([Hook(self._room(number)) for number in range(2)])

    def _room(self, number: int) -> Any:
        async def handle(call: HookCall) -> HookAnswer:
            self.calls[number] += 1
            return HookAnswer(context=f"room {number}")

        return handle

    async def bring(self, by: str, event: str = "SessionStart", pid: str = "7", **payload: Any) -> bool:
        """Bring an event; whether it was answered."""
        given = json.dumps({"session_id": "s", "cwd": "/", "source": "startup", **payload}).encode()
        return bool((await self.hooks.handle(event, HookContext(pid, by=by), given)).stdout)


async def test_an_event_that_two_settings_bring_is_answered_once() -> None:
    rooms = Rooms()
    assert [await rooms.bring(by) for by in ("local", "shared", "plugin")] == [True, False, False]
    assert rooms.calls == [1, 1]


async def test_the_same_setting_brings_another_event() -> None:
    rooms = Rooms()
    for _ in range(3):
        assert await rooms.bring("local", "Stop", last_assistant_message="Done.")
        assert not await rooms.bring("shared", "Stop", last_assistant_message="Done.")
    assert rooms.calls == [3, 3]


async def test_events_that_differ_are_each_answered() -> None:
    rooms = Rooms()
    assert await rooms.bring("local")
    assert await rooms.bring("shared", session_id="t")
    assert await rooms.bring("shared", "UserPromptSubmit", prompt="Work.")
    assert await rooms.bring("shared", pid="8")
