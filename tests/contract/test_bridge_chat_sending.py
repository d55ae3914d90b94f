"""The sender: updates reach a chat once and in order, a doubt is marked, and no chat holds up another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.bot_api import TOKEN, Fault, Kind
from tests.contract.bridge_chat_world import SECRET, World, came, eventually, receiver, target, world
from tests.contract.conftest import Place

from holdfast.bridge.chat import Address, Limit, Outgoing
from holdfast.bridge.chat.pace import Pace
from holdfast.bridge.chat.sender import Sender
from holdfast.bridge.chat.telegram import Telegram
from holdfast.bridge.chat.webhook_out import SignedWebhook
from holdfast.bridge.chat.wording import REPETITION
from holdfast.bridge.model import Task, UpdateKind
from holdfast.bridge.queries import incarnations, tasks
from holdfast.store import Tx

pytestmark = pytest.mark.anyio


class Crash(Exception):
    """The daemon dies here."""


@asynccontextmanager
async def running(*senders: Sender) -> AsyncIterator[None]:
    """Senders at work in the background."""
    tasks = [asyncio.create_task(sender.run()) for sender in senders]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in ended), ended


class Dying(Telegram):
    """A transport whose daemon dies before or after a message has left."""

    when = ""

    async def send(self, address: Address, text: Outgoing) -> str:
        if self.when == "before":
            raise Crash
        sent = await super().send(address, text)
        if self.when == "after":
            raise Crash
        return sent


def dying(one: World, when: str) -> Sender:
    transport = Dying(TOKEN, api=one.api.url)
    transport.when = when
    return Sender(one.store, transport, lambda: one.teams, "one")


async def test_updates_appear_once_and_in_order_in_their_own_chat_and_topic(place: Place) -> None:
    async with world(place) as one, running(one.sender):
        for name in ("homelab", "felt", "sentry", "quiet"):
            await one.tell(name, *(f"{name} {number}" for number in range(5)))
        await eventually(lambda: len(one.api.sent) >= 15)
        assert one.api.texts("-100") == [f"homelab {number}" for number in range(5)]
        assert one.api.texts("-200", 5) == [f"felt {number}" for number in range(5)]
        assert one.api.texts("-200", 6) == [f"sentry {number}" for number in range(5)]
        await one.sender.drain()
        assert len(one.api.sent) == 15


@pytest.mark.parametrize("when", ["before", "after"])
async def test_after_a_crash_between_send_and_commit_it_is_sent_again_and_marked(place: Place, when: str) -> None:
    async with world(place) as one:
        await one.tell("homelab", "first", "second")
        with pytest.raises(ExceptionGroup) as died:
            await dying(one, when).drain()
        assert died.group_contains(Crash)
        await one.sender.drain()
        assert one.api.texts("-100")[-2:] == [f"{REPETITION}\nfirst", "second"]
        assert len(one.api.sent) == (3 if when == "after" else 2)


async def test_what_was_sent_and_committed_is_not_sent_again_by_the_next_daemon(place: Place) -> None:
    async with world(place) as one:
        await one.tell("homelab", "first")
        await one.sender.drain()
        await one.tell("homelab", "second")
        await World(one.store, one.api).sender.drain()
        assert one.api.texts("-100") == ["first", "second"]


@pytest.mark.parametrize("kind", [Kind.ERROR, Kind.DONE_ERROR, Kind.LOST, Kind.CUT])
async def test_an_uncertain_failure_is_tried_again_and_marked(sqlite_place: Place, kind: Kind) -> None:
    async with world(sqlite_place, jumping=True) as one:
        one.api.faults.append(Fault("sendMessage", kind))
        await one.tell("homelab", "first", "second")
        await one.sender.drain()
        assert one.api.texts("-100")[-2:] == [f"{REPETITION}\nfirst", "second"]


async def test_a_chat_that_asks_for_a_pause_gets_it_and_holds_up_no_other(place: Place) -> None:
    async with world(place) as one:
        one.api.faults.append(Fault("sendMessage", Kind.FLOOD, "-100", seconds=3600))
        await one.tell("homelab", "late")
        async with running(one.sender):
            await eventually(lambda: not one.api.faults)
            await one.tell("felt", "in", "time")
            await eventually(lambda: len(one.api.sent) == 2)
        assert one.api.texts("-200", 5) == ["in", "time"]
        assert one.api.violations == []
        place.shift = 3_601_000
        one.api.floods.clear()
        again = World(one.store, one.api)
        await again.sender.drain()
        assert one.api.texts("-100") == ["late"]
        await again.telegram.close()


async def test_targets_that_share_a_chat_share_its_pause_also_after_a_restart(place: Place) -> None:
    async with world(place) as one:
        one.api.faults.append(Fault("sendMessage", Kind.FLOOD, "-200", seconds=3600))
        await one.tell("felt", "late")
        async with running(one.sender):
            await came(lambda: one.rows("SELECT next_at FROM bridge_chats WHERE target = 'sentry' AND next_at > 0"))
        await one.tell("sentry", "late too")
        await one.tell("homelab", "in time")
        again = World(one.store, one.api)
        async with running(again.sender):
            await eventually(lambda: one.api.texts("-100"))
        assert one.api.violations == []
        assert [sent.chat for sent in one.api.sent] == ["-100"]
        await again.telegram.close()


async def test_a_short_pause_is_kept_to_the_second(sqlite_place: Place) -> None:
    async with world(sqlite_place, jumping=True) as one:
        one.api.faults += [Fault("sendMessage", Kind.FLOOD, "-100", seconds=1)] * 2
        await one.tell("homelab", "first", "second")
        await one.sender.drain()
        assert one.api.texts("-100") == ["first", "second"]
        assert one.api.violations == []


async def test_a_text_that_is_refused_for_good_is_noted_and_the_next_one_follows(place: Place) -> None:
    async with world(place) as one:
        one.api.faults.append(Fault("sendMessage", Kind.REFUSED))
        await one.tell("homelab", "bad", "good")
        await one.sender.drain()
        assert one.api.texts("-100") == ["good"]
        events = await one.rows("SELECT subject FROM events WHERE kind = 'bridge.undeliverable'")
        assert [event["subject"] for event in events] == ["homelab"]


async def test_a_long_text_arrives_in_pieces_and_goes_on_where_a_failure_stopped_it(sqlite_place: Place) -> None:
    async with world(sqlite_place, jumping=True) as one:
        text = "\n\n".join(f"Paragraph {number}. " + "word " * 300 for number in range(12))
        await one.tell("homelab", text)
        one.api.faults.append(Fault("sendMessage", Kind.FLOOD, seconds=1))
        await one.sender.drain()
        pieces = one.api.texts("-100")
        assert len(pieces) > 3
        assert "".join("".join(pieces).split()) == "".join(text.split())


async def test_another_daemon_stands_by_while_one_sends(place: Place) -> None:
    async with world(place) as one:
        other = World(one.store, one.api, "two")
        await one.tell("homelab", "first")
        await one.sender.drain()
        await one.tell("homelab", "second")
        await other.sender.drain()
        assert one.api.texts("-100") == ["first"]
        place.shift = 61_000
        await other.sender.drain()
        assert one.api.texts("-100") == ["first", "second"]
        await other.telegram.close()


async def test_a_daemon_that_lost_its_lease_writes_no_progress(place: Place) -> None:
    async with world(place) as one:
        await one.tell("homelab", "first")

        def stolen(tx: Tx) -> None:
            tx.run("UPDATE leases SET holder = 'two'")

        class Robbed(Dying):
            async def send(self, address: Address, text: Outgoing) -> str:
                await one.store.write(stolen)
                return "1"

        transport = Robbed(TOKEN, api=one.api.url)
        with pytest.raises(ExceptionGroup, match="unhandled"):
            await Sender(one.store, transport, lambda: one.teams, "one").drain()
        (row,) = await one.rows("SELECT sent_seq, sending_seq FROM bridge_chats")
        assert (row["sent_seq"], row["sending_seq"]) == (0, 1)


async def test_a_chat_that_is_new_is_spared_the_past(place: Place) -> None:
    async with world(place) as one:
        await one.tell("homelab", "long ago")
        place.shift = 2 * 3_600_000
        await one.tell("homelab", "now")
        await one.sender.drain()
        assert one.api.texts("-100") == ["now"]


async def test_a_chat_that_is_put_right_gets_what_waited(place: Place) -> None:
    async with world(place, jumping=True) as one:
        one.api.chats = {"-555"}
        await one.tell("homelab", "first")
        async with running(one.sender):
            await eventually(lambda: "sendMessage" in one.api.calls)
            one.teams["homelab"] = target("homelab", "-555")
            await eventually(lambda: one.api.texts("-555"))
        assert one.api.texts("-555") == ["first"]


async def test_a_restart_is_shown_with_the_task_and_asks_whether_to_resume(place: Place) -> None:
    async with world(place) as one:

        def restart(tx: Tx) -> None:
            incarnations.seen(tx, "homelab", "abc-123", "hook")
            tasks.save_for_target(tx, Task("Fix DNS", "abc-123", None, "2", target="homelab"))
            incarnations.seen(tx, "homelab", "def-456", "hook")

        await one.store.write(restart)
        await one.sender.drain()
        last = one.api.sent[-1]
        assert "Session: abc-123 → def-456" in last.text
        assert "Fix DNS (last completed step: 2)" in last.text
        assert [label for label, _ in last.buttons] == ["Resume", "Start fresh"]


async def test_only_what_needs_attention_makes_a_sound(sqlite_place: Place) -> None:
    async with world(sqlite_place) as one:
        await one.tell("homelab", "reply")
        await one.tell("homelab", "task", kind=UpdateKind.TASK)
        await one.sender.drain()
        assert [sent.silent for sent in one.api.sent] == [False, True]


async def test_the_limits_of_the_chat_are_kept_by_all_targets_that_share_it(sqlite_place: Place) -> None:
    async with world(sqlite_place) as one:
        now = 0.0
        at: list[tuple[float, str]] = []

        async def sleep(seconds: float) -> None:
            nonlocal now
            now += seconds

        class Timed(Telegram):
            async def send(self, address: Address, text: Outgoing) -> str:
                assert address.chat is not None
                at.append((now, address.chat.id))
                return "1"

        transport = Timed(TOKEN, api=one.api.url)
        for name in ("homelab", "felt", "sentry"):
            await one.tell(name, *(str(number) for number in range(30)))
        await Sender(one.store, transport, lambda: one.teams, "one", pace=Pace(lambda: now, sleep)).drain()
        assert len(at) == 90
        for chat in ("-100", "-200"):
            times = [moment for moment, where in at if where == chat]
            for limit in (Limit("second", 1, 1.0), Limit("minute", 20, 60.0)):
                for first, last in zip(times, times[limit.count :], strict=False):
                    assert last - first >= limit.seconds - 1e-6


async def test_a_signed_webhook_gets_every_target_and_keeps_its_own_place(place: Place) -> None:
    async with world(place, jumping=True) as one, receiver() as far:
        hook = SignedWebhook(far.url, SECRET)
        far.faults += [Kind.ERROR]
        await one.tell("homelab", "first")
        await one.tell("quiet", "second")
        await one.sends(hook).drain()
        await one.sender.drain()
        await hook.close()
        assert sorted((row["target"], row["id"]) for row in far.received) == [
            ("homelab", "homelab.1.1"),
            ("quiet", "quiet.1.1"),
        ]
        assert one.api.texts("-100") == ["first"]
        assert far.forged == 0
