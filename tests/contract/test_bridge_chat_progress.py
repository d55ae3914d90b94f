"""The phone always hears what became of a message: stored, taken, done, waiting again, cancelled."""

from __future__ import annotations

import pytest
from tests.bot_api import Fault, Kind
from tests.contract.bridge_chat_world import SECRET, World, receiver, world
from tests.contract.conftest import Place

from holdfast.bridge.chat.webhook_out import SignedWebhook
from holdfast.bridge.model import LEASE_MS, MAX_ATTEMPTS, TTL_MS, Outcome, Priority
from holdfast.bridge.queries import queue
from holdfast.bridge.queue_changes import QueueChanges
from holdfast.store import Tx

pytestmark = pytest.mark.anyio

STORED, TAKEN, DONE, NOT_DONE, NONE = "👌", "👀", "👍", "👎", ""


async def written(one: World, text: str) -> int:
    """The owner writes a message, and the chat shows what comes of it at once."""
    number = one.api.write(text)
    await one.poll()
    await one.sender.drain()
    return number


async def step(one: World, outcome: Outcome | None = None, reply: str | None = None) -> None:
    """An agent takes the next message, or ends the one it has."""

    def write(tx: Tx) -> None:
        if outcome is None:
            assert queue.take(tx, "homelab", "agent", "call", LEASE_MS) is not None
        else:
            queue.finish(tx, queue.leased(tx, "homelab")[0], outcome, reply)

    await one.store.write(write)
    await one.sender.drain()


async def test_a_message_shows_that_it_is_stored_taken_and_done(place: Place) -> None:
    async with world(place) as one:
        number = await written(one, "fix it")
        assert one.api.reacted(number) == [STORED]
        await step(one)
        assert one.api.reacted(number) == [STORED, TAKEN]
        await step(one, Outcome.DONE, "fixed")
        assert one.api.reacted(number) == [STORED, TAKEN, DONE]
        assert [(sent.text, sent.reply_to) for sent in one.api.sent] == [("fixed", number)]


async def test_a_failed_message_and_one_that_was_put_back_show_it(place: Place) -> None:
    async with world(place) as one:
        number = await written(one, "fix it")
        await step(one)
        await step(one, Outcome.LATER)
        assert one.api.reacted(number) == [STORED, TAKEN, STORED]
        await step(one)
        await step(one, Outcome.FAILED, "no key")
        assert one.api.reacted(number)[-1] == NOT_DONE
        assert one.api.texts("-100") == ["Not done: no key"]


async def test_a_message_that_nobody_finishes_or_takes_shows_it_and_so_does_its_retry(place: Place) -> None:
    async with world(place) as one:
        number, late = await written(one, "fix it"), await written(one, "too late")
        for _ in range(MAX_ATTEMPTS):
            await step(one)
            await step(one, Outcome.LATER)
        assert one.api.reacted(number)[-1] == NOT_DONE
        (dead,) = await one.rows("SELECT id FROM bridge_messages WHERE status = 'dead'")
        await QueueChanges(one.store, lambda: one.teams).retry(dead["id"], "homelab")
        await one.sender.drain()
        assert one.api.reacted(number)[-1] == STORED
        place.shift += TTL_MS + 1
        await one.store.write(queue.expire_old)
        await one.sender.drain()
        assert one.api.reacted(late)[-1] == NOT_DONE


async def test_a_lone_message_without_an_agent_is_told_to_wait_for_one(place: Place) -> None:
    async with world(place) as one:
        one.served = False
        number = await written(one, "fix it")
        assert one.api.reacted(number) == [STORED]
        assert one.api.texts("-100") == ["Queued. No agent is at work there now; it is delivered when one is."]
        await written(one, "and that")
        assert one.api.texts("-100")[1].startswith("Queued. 1 more is waiting. No agent")
        one.served = True
        await written(one, "and this")
        assert one.api.texts("-100")[2] == "Queued. 2 more are waiting."


async def test_a_group_without_reactions_is_told_in_words(place: Place) -> None:
    async with world(place) as one:
        one.api.no_reactions = True
        number = await written(one, "fix it")
        await step(one)
        await step(one, Outcome.DONE, "fixed")
        told = [(sent.text, sent.reply_to, sent.silent) for sent in one.api.sent]
        assert told == [
            ("Stored; it is waiting for the agent.", number, True),
            ("The agent has it now.", number, True),
            ("fixed", number, False),
        ]


async def test_a_reaction_that_was_lost_is_given_again(place: Place) -> None:
    async with world(place, jumping=True) as one:
        one.api.faults += [Fault("setMessageReaction", kind) for kind in (Kind.LOST, Kind.ERROR, Kind.DONE_ERROR)]
        number = await written(one, "fix it")
        assert one.api.reacted(number)[-1] == STORED
        assert one.api.texts("-100") == []


async def test_steps_that_came_too_fast_to_be_shown_are_shown_as_the_last_one(place: Place) -> None:
    async with world(place) as one:
        number = one.api.write("fix it")
        await one.poll()

        def work(tx: Tx) -> None:
            taken = queue.take(tx, "homelab", "agent", "call", LEASE_MS)
            assert taken is not None
            queue.finish(tx, taken, Outcome.DONE, "fixed")

        await one.store.write(work)
        await one.sender.drain()
        assert one.api.reacted(number) == [DONE]
        assert one.api.texts("-100") == ["fixed"]


async def test_a_cancelled_message_loses_its_sign(place: Place) -> None:
    async with world(place) as one:
        number = await written(one, "fix it")
        one.api.write("/cancel", reply_to_message={"message_id": number, "text": "fix it"})
        await one.poll()
        await one.sender.drain()
        assert one.api.reacted(number) == [STORED, NONE]
        assert [(sent.text, sent.reply_to) for sent in one.api.sent] == [
            ("Cancelled by the owner (Ann in the chat): fix it", number)
        ]


async def test_what_was_not_written_in_the_chat_needs_no_signs_there(place: Place) -> None:
    async with world(place) as one:

        def send(tx: Tx) -> None:
            queue.enqueue(
                tx,
                "homelab",
                "from elsewhere",
                message_id="tg.4711.-100.2",
                priority=Priority.NORMAL,
                sender="team felt",
                source="mcp",
                ttl_ms=TTL_MS,
                reply_to=None,
            )

        await one.store.write(send)
        await step(one)
        assert one.api.reactions == []


async def test_a_webhook_gets_each_step_with_its_status(sqlite_place: Place) -> None:
    async with world(sqlite_place) as one, receiver() as far:
        hook = SignedWebhook(far.url, SECRET)
        sender = one.sends(hook)
        one.api.write("fix it")
        await one.poll()
        await sender.drain()
        (told,) = far.received
        assert (told["status"], told["text"]) == ("pending", "Stored; it is waiting for the agent.")
        assert told["reply_to"].startswith("tg.4711.-100.")
        await hook.close()


async def test_each_edit_counts_also_when_two_are_made_in_one_second(place: Place) -> None:
    async with world(place) as one:
        number = await written(one, "fix it")
        for text in ("fix that", "fix this"):
            await step(one)
            one.api.edit(number, text)
            await one.poll()
            await step(one, Outcome.DONE)
        found = await one.rows("SELECT text FROM bridge_messages ORDER BY seq")
        assert [row["text"].rpartition("\n")[2] for row in found] == ["fix it", "fix that", "fix this"]
