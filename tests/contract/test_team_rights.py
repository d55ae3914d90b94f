"""A team's caller acts for that team alone: every operation on another pair's conversation is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.conftest import Place
from tests.contract.repetition_cases import TIMEOUT_MS, at_rest
from tests.contract.wire_world import Relayed, new_world

pytestmark = pytest.mark.anyio

ON_PAIRS = ("history", "compact", "fork", "archive", "restore", "reset")
ON_ASKS = ("result", "wait", "cancel")


async def refused(caller: Relayed, tool: str, **arguments: Any) -> str:
    """The text of the error that a call must give."""
    result = (await caller.answer(tool, arguments))["result"]
    assert result.get("isError"), result
    return str(result["content"][0]["text"])


async def test_another_pairs_conversation_is_neither_read_nor_changed(place: Place) -> None:
    async with new_world(place) as world, world.working_life() as life:
        outside = place.home / "outside"
        outside.mkdir()
        async with (
            life.relay("owner", outside) as owner,
            life.relay("mine", world.project.path) as mine,
            life.relay("theirs", world.other) as theirs,
        ):
            asked = {"team": "theirs", "question": "the word is lighthouse", "timeout": TIMEOUT_MS}
            reply = await mine.use("teams_ask", **asked)
            assert reply["conversation"]["fromTeam"] == "mine"
            apart = await owner.use("teams_ask", **asked, threadId="apart")
            for ask in (reply, apart):
                await at_rest(life, ask["askId"])
            before = await world.state()
            for operation in ON_PAIRS:
                more = {"deleteFiles": True} if operation == "archive" else {}
                for thief, pair in ((theirs, {"fromTeam": "mine"}), (mine, {"fromTeam": "theirs"})):
                    told = await refused(thief, "teams_session", operation=operation, team="theirs", **pair, **more)
                    assert told.startswith("E_NOT_YOURS"), told
            for operation in ON_ASKS:
                for thief, ask in ((theirs, reply), (theirs, apart), (mine, apart)):
                    told = await refused(thief, "teams_session", operation=operation, askId=ask["askId"])
                    assert told.startswith("E_NOT_YOURS"), told
            for tool, arguments in (
                ("teams_ask", {"team": "theirs", "question": "x", "fromTeam": "theirs"}),
                ("teams_send_message", {"toTeam": "theirs", "message": "x", "fromTeam": "theirs"}),
                ("teams_notify", {"toTeam": "theirs", "message": "x", "fromTeam": "theirs"}),
            ):
                assert (await refused(mine, tool, **arguments)).startswith("E_NOT_YOURS")
            after = await world.state()
            changed = {name for name in before if before[name] != after[name]}
            assert changed <= {"connections", "tokens", "calls", "events", "event_head"}, (
                "nothing of the conversations changed"
            )
            own = await mine.use("teams_session", operation="history", team="theirs")
            assert "lighthouse" in own["asks"][0]["question"]
            named = await owner.use("teams_session", operation="history", team="theirs", fromTeam="mine")
            assert named["asks"] == own["asks"], "somebody outside every team may name one"
            listed = (await theirs.use("teams_session", operation="list"))["conversations"]
            assert {one["threadId"] for one in listed} == {"main", "apart"}, "both are with this team"
            assert len((await mine.use("teams_session", operation="list"))["conversations"]) == 1
