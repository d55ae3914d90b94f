"""A message that still waits can be cancelled and edited, by its sender or the queue's owner; what an agent has not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.contract.bridge_chat_world import World, world
from tests.contract.conftest import Place

from holdfast.bridge.errors import UnknownMessage
from holdfast.bridge.model import LEASE_MS, Outcome, Priority, Status
from holdfast.bridge.queries import queue
from holdfast.bridge.queue_changes import QueueChanges
from holdfast.bridge.service import Bridge
from holdfast.errors import BadInput, Conflict
from holdfast.identity.senders import OWNER, Kind, Sender
from holdfast.store import Tx
from holdfast.teams.team import Team

pytestmark = pytest.mark.anyio

FELT = Sender(Kind.TEAM, "felt", frozenset({"felt"}), "felt")
SENTRY = Sender(Kind.TEAM, "sentry", frozenset({"sentry"}), "sentry")


class Queue:
    """The queue of homelab, to which team felt has sent something."""

    def __init__(self, one: World) -> None:
        self.world = one
        self.bridge = Bridge(one.store, lambda: one.teams)
        self.changes = QueueChanges(one.store, lambda: one.teams)

    async def send(self, text: str, message_id: str, **more: Any) -> None:
        sent = await self.bridge.send("homelab", text, message_id=message_id, sender=FELT.label, **more)
        assert sent.id == message_id

    async def take(self, lease_ms: int = LEASE_MS) -> str | None:
        taken = await self.world.store.write(lambda tx: queue.take(tx, "homelab", "agent", "call", lease_ms))
        return None if taken is None else taken.text

    async def statuses(self) -> dict[str, str]:
        return {row["id"]: row["status"] for row in await self.world.rows("SELECT id, status FROM bridge_messages")}

    async def told(self, sender: Sender = OWNER) -> list[tuple[str, str]]:
        pulled = await self.bridge.pull("homelab", None, sender=sender)
        return [(update.kind, update.content) for update in pulled.updates]


@asynccontextmanager
async def queue_of_homelab(place: Place) -> AsyncIterator[Queue]:
    async with world(place) as one:
        yield Queue(one)


@pytest.mark.parametrize("by", [FELT, OWNER], ids=["its sender", "the owner"])
async def test_a_cancelled_message_is_never_handed_out_and_its_sender_is_told(place: Place, by: Sender) -> None:
    async with queue_of_homelab(place) as homelab:
        await homelab.send("one", "m1")
        await homelab.send("two", "m2")
        ended = await homelab.changes.cancel("m1", None, by)
        assert (ended.status, ended.waiting, ended.repeated) == (Status.CANCELLED, 1, False)
        assert (await homelab.changes.cancel("m1", None, by)).repeated
        assert [await homelab.take(), await homelab.take()] == ["two", None]
        assert await homelab.told(FELT) == [("cancelled", f"Cancelled by {by.label}: one")]


async def test_what_an_agent_already_has_is_not_taken_back_and_what_is_over_stays(place: Place) -> None:
    async with queue_of_homelab(place) as homelab:
        await homelab.send("one", "m1")
        await homelab.take()
        with pytest.raises(Conflict, match=r"its agent already has it\. Send a STOP"):
            await homelab.changes.cancel("m1")
        edited = await homelab.changes.edit("homelab", "m1", "another", None)
        assert edited.reason == "not waiting: its agent already has it"
        assert await homelab.statuses() == {"m1": "leased"}

        def done(tx: Tx) -> None:
            queue.finish(tx, queue.leased(tx, "homelab")[0], Outcome.DONE, "did it")

        await homelab.world.store.write(done)
        with pytest.raises(Conflict, match="it is done already"):
            await homelab.changes.cancel("m1")
        assert await homelab.told() == [("reply", "did it")]


async def test_a_message_whose_agent_is_gone_waits_again_and_can_be_cancelled(place: Place) -> None:
    async with queue_of_homelab(place) as homelab:
        await homelab.send("one", "m1")
        await homelab.take()
        place.shift += LEASE_MS + 1
        await homelab.changes.cancel("m1")
        assert await homelab.statuses() == {"m1": "cancelled"}


async def test_nobody_else_cancels_or_edits_a_message(place: Place) -> None:
    async with queue_of_homelab(place) as homelab:
        await homelab.send("one", "m1")
        with pytest.raises(UnknownMessage):
            await homelab.changes.cancel("m1", None, SENTRY)
        with pytest.raises(UnknownMessage):
            await homelab.changes.edit("homelab", "m1", "another", None, SENTRY)
        assert await homelab.take() == "one"


async def test_an_edited_message_keeps_its_id_and_its_place_and_the_chat_shows_it(place: Place) -> None:
    async with queue_of_homelab(place) as homelab:
        await homelab.send("one", "m1", priority=Priority.NORMAL)
        await homelab.send("two", "m2")
        edited = await homelab.changes.edit("homelab", "m1", "one, but better", None, FELT)
        assert (edited.id, edited.reason) == ("m1", None)
        assert [message.text for message in await homelab.changes.unfinished("homelab", 9)] == [
            "one, but better",
            "two",
        ]
        await homelab.changes.edit("homelab", "m2", "two, at once", Priority.URGENT, FELT)
        assert await homelab.take() == "two, at once"
        await homelab.world.sender.drain()
        assert "team felt (edited): one, but better" in homelab.world.api.texts("-100")
        for bad in ("", " ", "x\0"):
            with pytest.raises(BadInput):
                await homelab.changes.edit("homelab", "m1", bad, None, FELT)


async def test_the_same_id_at_two_targets_is_only_cancelled_where_it_is_named(place: Place) -> None:
    async with queue_of_homelab(place) as homelab:
        await homelab.send("one", "m1")
        await homelab.bridge.send("sentry", "one", message_id="m1", sender=FELT.label)
        with pytest.raises(Conflict, match="Several targets"):
            await homelab.changes.cancel("m1", None, FELT)
        await homelab.changes.cancel("m1", "sentry", FELT)
        assert await homelab.take() == "one"


async def test_a_cancelled_stop_halts_nothing(place: Place) -> None:
    async with queue_of_homelab(place) as homelab:
        since = await homelab.world.store.read(lambda tx: queue.last_seq(tx, "homelab"))
        await homelab.send("STOP", "m1", priority=Priority.STOP)
        assert await homelab.world.store.read(lambda tx: queue.is_stopped(tx, "homelab", since))
        await homelab.changes.cancel("m1")
        assert not await homelab.world.store.read(lambda tx: queue.is_stopped(tx, "homelab", since))


async def test_a_cancelled_message_is_forgotten_as_a_done_one_is(place: Place) -> None:
    async with queue_of_homelab(place) as homelab:
        await homelab.send("one", "m1")
        await homelab.send("two", "m2")
        await homelab.changes.cancel("m1")
        place.shift += 1000
        await homelab.bridge.forget_old(0)
        assert await homelab.statuses() == {"m2": "pending"}


# -- from the phone ---------------------------------------------------------------------------------------------------


async def said(one: World) -> list[str]:
    """What the chat shows new."""
    before = len(one.api.sent)
    await one.poll()
    await one.sender.drain()
    return [sent.text for sent in one.api.sent[before:]]


async def taken(one: World) -> str | None:
    found = await one.store.write(lambda tx: queue.take(tx, "homelab", "agent", "call", LEASE_MS))
    return None if found is None else found.text


async def test_cancel_in_reply_to_a_message_takes_it_back(place: Place) -> None:
    async with world(place) as one:
        number = one.api.write("one")
        one.api.write("two")
        await said(one)
        one.api.write("/cancel", reply_to_message={"message_id": number, "text": "one"})
        assert await said(one) == ["Cancelled by the owner (Ann in the chat): one"]
        one.api.write("/cancel", reply_to_message={"message_id": number, "text": "one"})
        assert await said(one) == ["It is already cancelled."]
        assert [await taken(one), await taken(one)] == ["two", None]


async def test_cancel_says_when_the_agent_already_has_it(place: Place) -> None:
    async with world(place) as one:
        number = one.api.write("one")
        await said(one)
        assert await taken(one) == "one"
        one.api.write("/cancel", reply_to_message={"message_id": number, "text": "one"})
        (answer,) = await said(one)
        assert "its agent already has it. Send a STOP to halt the agent." in answer


async def test_cancel_alone_asks_which_and_its_buttons_take_effect_once(place: Place) -> None:
    async with world(place) as one:
        one.api.write("/cancel")
        assert await said(one) == ["No messages waiting."]
        for text in ("one", "two", "three"):
            one.api.write(text)
        await said(one)
        one.api.write("/cancel")
        (listed,) = await said(one)
        assert "Which one" in listed and "2. two" in listed
        buttons = dict(one.api.sent[-1].buttons)
        assert list(buttons) == ["1", "2", "3"]
        assert await taken(one) == "one"
        for _ in range(2):
            one.api.press(buttons["2"])
        assert await said(one) == ["Cancelled by the owner (Ann in the chat): two", "It is already cancelled."]
        one.api.press(buttons["1"])
        (late,) = await said(one)
        assert "already has it" in late
        for forged in ("cancel:99999", "cancel:", "cancel:x", f"cancel:{'9' * 40}"):
            one.api.press(forged)
        assert len(await said(one)) == 4
        rows = await one.rows("SELECT text, status FROM bridge_messages ORDER BY seq")
        assert [row["status"] for row in rows] == ["leased", "cancelled", "pending"]


async def test_a_button_of_one_chat_cancels_nothing_of_another_target(place: Place) -> None:
    async with world(place) as one:
        one.api.write("for felt", chat=-200, topic=5)
        await said(one)
        (row,) = await one.rows("SELECT row_id FROM bridge_messages")
        one.api.press(f"cancel:{row['row_id']}")
        await said(one)
        assert [row["status"] for row in await one.rows("SELECT status FROM bridge_messages")] == ["pending"]


async def test_an_edit_of_a_waiting_message_replaces_its_text(place: Place) -> None:
    async with world(place) as one:
        number = one.api.write("restart the server")
        one.api.write("and then this")
        await said(one)
        one.api.edit(number, "restart the web server")
        assert await said(one) == ["Edited: the agent gets the new text."]
        one.api.edit(number, "restart the web server")
        assert await said(one) == []
        assert await one.queued("homelab") == ["restart the web server", "and then this"]


async def test_an_edit_of_what_the_agent_has_is_another_message_and_can_be_edited_itself(place: Place) -> None:
    async with world(place) as one:
        number = one.api.write("restart the server")
        await said(one)
        assert await taken(one) == "restart the server"
        one.api.edit(number, "restart the web server")
        await said(one)
        assert (await one.queued("homelab"))[1] == (
            "[Edited: this replaces what was written before.]\nrestart the web server"
        )
        one.api.edit(number, "restart the mail server")
        assert await said(one) == ["Edited: the agent gets the new text."]
        assert (await one.queued("homelab"))[1:] == ["restart the mail server"]
        one.api.write("/cancel", reply_to_message={"message_id": number, "text": "restart the server"})
        assert "restart the mail server" in (await said(one))[0]


async def test_a_target_without_a_chat_has_no_text_for_one(place: Place) -> None:
    async with world(place) as one:
        one.teams["quiet"] = Team("quiet", one.teams["quiet"].project)
        bridge, changes = Bridge(one.store, lambda: one.teams), QueueChanges(one.store, lambda: one.teams)
        await bridge.send("quiet", "one", message_id="m1")
        await changes.edit("quiet", "m1", "two", None)
        assert await one.rows("SELECT seq FROM bridge_updates") == []
