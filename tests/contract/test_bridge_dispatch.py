"""Managed delivery on a tiny real agent: order, STOP, crashes, and nobody's model asked twice, on both engines."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any, TypeVar

import pytest
from tests.agents.echo.run import EchoAgent
from tests.contract.conftest import Place

from holdfast.bridge import managed_delivery
from holdfast.bridge.managed_delivery import LEASE_MS, STOPPED, THREAD, WAY, ManagedDelivery
from holdfast.bridge.model import MAX_ATTEMPTS, Priority, Status, Task
from holdfast.bridge.queries import queue as queries
from holdfast.bridge.queries import tasks
from holdfast.bridge.queries.owner import ListedMessage, named
from holdfast.bridge.queue_changes import QueueChanges
from holdfast.bridge.service import Bridge
from holdfast.bridge.views import pulled_view, retried_view
from holdfast.errors import Conflict, NotFound
from holdfast.identity.caller import Caller
from holdfast.store import Store, Tx
from holdfast.store.calls import KEEP_MS, forget_old
from holdfast.teams.config_file import TeamsFile
from holdfast.teams.model import EXTERNAL, Ask
from holdfast.teams.queries import conversations as team_queries
from holdfast.teams.runner import Runner
from holdfast.teams.service import Teams

pytestmark = pytest.mark.anyio

PATIENCE_S = 60.0
LONG = "sleep 300"

T = TypeVar("T")


class World:
    """One daemon: its teams, its bridge, and what gives messages to its agents."""

    def __init__(self, place: Place, store: Store, name: str = "one", **delivery: str) -> None:
        home = place.home / name
        home.mkdir(exist_ok=True)
        teams = {}
        for team in ("a", "b"):
            (place.home / team).mkdir(exist_ok=True)
            project = str(place.home / team)
            teams[team] = {"project": project, "agent": "echo", "delivery": delivery.get(team, "run")}
        (home / "teams.json").write_text(json.dumps({"teams": teams}))
        self.store = store
        self.alive: set[str] = set()
        self.at_prompt: dict[str, str] = {}
        """The session that is idle at its terminal, by target."""
        self.runner = Runner(store, name, {"echo": EchoAgent(place.home, place.home / "transcripts")}, {})
        self.teams = Teams(store, TeamsFile(home), self.runner)
        self.bridge = Bridge(store, lambda: self.teams.config.teams)
        self.letters = QueueChanges(store, dict)
        self.dispatcher = ManagedDelivery(
            store,
            self.bridge,
            self.teams,
            name,
            can_run=self.runner.pool.can_run,
            alive=lambda target: target in self.alive,
            idle=self.idle,
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def idle(self, target: str) -> str | None:
        return self.at_prompt.get(target)

    async def start(self, *, running: bool = True, dispatching: bool = True) -> None:
        await self.teams.start()
        if running:
            self._tasks.append(asyncio.create_task(self.runner.run()))
        if dispatching:
            self._tasks.append(asyncio.create_task(self.dispatcher.run()))

    async def stop(self) -> None:
        """End without a word: what was under way is left as it is, as kill -9 leaves it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self.runner.stop()

    def check(self) -> None:
        """A loop that failed fails the test, instead of its patience."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def send(self, target: str, text: str, message_id: str, priority: Priority = Priority.NORMAL) -> None:
        sent = await self.bridge.send(target, text, message_id=message_id, priority=priority)
        assert sent.id, sent

    async def message(self, message_id: str) -> ListedMessage:
        (found,) = await self.store.read(lambda tx: named(tx, message_id))
        return found

    async def over(self, message_id: str) -> ListedMessage:
        """The message when nothing more happens to it."""

        async def ended() -> ListedMessage | None:
            self.check()
            found = await self.message(message_id)
            return found if found.finished_at is not None else None

        return await _until(ended, f"{message_id} is over")

    async def asks(self, target: str) -> list[Ask]:
        """What the target's agent was asked, the oldest first."""

        def read(tx: Tx) -> list[Ask]:
            conversation = team_queries.between(tx, EXTERNAL, target, THREAD)
            return [] if conversation is None else team_queries.asks_of(tx, conversation.id, None, 100)[::-1]

        return await self.store.read(read)

    async def at_work(self, target: str) -> Ask:
        """The target's ask, once its agent is in the middle of it."""

        async def running() -> Ask | None:
            asks = [ask for ask in await self.asks(target) if ask.status == "running"]
            busy = [slot for slot in self.runner.pool.slots if slot.team == target and slot.busy]
            return asks[0] if asks and busy else None

        return await _until(running, f"{target} is at work")

    async def replies(self, target: str) -> list[tuple[str, str]]:
        pulled = await self.bridge.pull(target, None)
        return [(one.message_id or "", one.content) for one in pulled.updates if one.kind == "reply"]

    async def session(self, target: str) -> str | None:
        """The session that was last at work for a target."""
        return next(one.session_id for one in await self.bridge.status() if one.target == target)


@asynccontextmanager
async def _world(place: Place, **delivery: str) -> AsyncIterator[World]:
    store = place.open()
    world = World(place, store, **delivery)
    await world.start()
    try:
        yield world
    finally:
        await world.stop()
        await store.close()


async def _until(look: Callable[[], Awaitable[T | None]], what: str) -> T:
    deadline = time.monotonic() + PATIENCE_S
    while (found := await look()) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"never: {what}")
        await asyncio.sleep(0.02)
    return found


async def test_a_message_gets_a_turn_and_its_answer_comes_back_as_the_reply(place: Place) -> None:
    async with _world(place) as world:
        await world.send("a", "Fix the DNS record", "m1")
        done = await world.over("m1")
        assert (done.status, done.attempts, done.way) == ("done", 1, WAY)
        ((message_id, content),) = await world.replies("a")
        assert message_id == "m1" and content == done.reply and content.startswith("echo 1:")
        for told in ('[Message m1 for a, from "somebody"', "Fix the DNS record", "is the reply and ends the message"):
            assert told in content
        assert await world.session("a"), "who was at work is known"


async def test_messages_of_a_target_are_carried_out_in_order_and_one_at_a_time(place: Place) -> None:
    async with _world(place) as world:
        for number in range(5):
            await world.send("a", f"n{number}", f"m{number}")
        await world.over("m4")
        assert [message_id for message_id, _ in await world.replies("a")] == [f"m{number}" for number in range(5)]
        asks = await world.asks("a")
        assert all(
            before.finished_at is not None and after.started_at is not None and before.finished_at <= after.started_at
            for before, after in pairwise(asks)
        )


async def test_a_target_that_takes_long_does_not_hold_up_another(place: Place) -> None:
    async with _world(place) as world:
        await world.send("a", LONG, "slow")
        await world.at_work("a")
        await world.send("b", "quick", "quick")
        assert (await world.over("quick")).status == "done"
        assert (await world.message("slow")).status == "leased"


async def test_stop_ends_the_turn_that_is_under_way_and_the_next_message_goes_on(place: Place) -> None:
    async with _world(place) as world:
        await world.send("a", LONG, "slow")
        ask = await world.at_work("a")
        await world.send("a", "after that", "next")
        await world.send("a", "halt", "stop", Priority.STOP)
        stopped = await world.over("slow")
        assert (stopped.status, stopped.reply) == ("failed", STOPPED)
        assert (await world.teams.find(ask.id)).status == "cancelled"
        told = await world.over("stop")
        assert (told.status, told.reply) == ("done", f"Stopped: {LONG}")
        assert (await world.over("next")).status == "done"
        assert [message_id for message_id, _ in await world.replies("a")] == ["slow", "stop", "next"]
        assert len(await world.asks("a")) == 2, "a STOP costs no turn"


async def test_stop_with_nothing_under_way_asks_no_model(place: Place) -> None:
    async with _world(place) as world:
        await world.send("a", "halt", "stop", Priority.STOP)
        told = await world.over("stop")
        assert (told.status, told.reply) == ("done", "Nothing was under way.")
        assert await world.asks("a") == []


async def test_a_stop_that_another_agent_of_the_target_got_ends_the_managed_turn_too(place: Place) -> None:
    async with _world(place, a="hook") as world:
        # Nobody but the other agent is there to take the STOP, until the turn is begun below.
        await world.send("a", LONG, "slow")
        await world.store.write(lambda tx: queries.take(tx, "a", "daemon:one", WAY, LEASE_MS))
        work = await world.store.write(lambda tx: world.dispatcher._next(tx, "a", way=None))
        assert work is not None
        await world.send("a", "halt", "stop", Priority.STOP)
        other = await world.store.write(lambda tx: queries.take(tx, "a", "session:other", "hook", LEASE_MS))
        assert other is not None and other.id == "stop"
        async with asyncio.timeout(PATIENCE_S):
            await world.dispatcher._carry_out(work)
        assert (await world.message("slow")).status == "failed"
        (ask,) = await world.asks("a")
        assert not world.runner.works_on(ask.id), "it was stopped even though its turn had hardly begun"
        assert (await world.message("stop")).lease_by == "session:other", "ending it is the other's"


@pytest.mark.parametrize("moment", ["taken", "asked", "running", "answered"])
async def test_a_daemon_killed_in_the_middle_goes_on_with_the_same_ask_and_finishes_once(
    place: Place, moment: str
) -> None:
    store = place.open()
    dead = World(place, store)
    await dead.start(running=moment == "answered", dispatching=False)
    await dead.send("a", "hello", "m1")
    work = await store.write(lambda tx: dead.dispatcher._next(tx, "a", way=WAY))
    assert work is not None
    if moment != "taken":
        ask_id = await dead.dispatcher._ask(work.message)
        if moment == "running":
            assert [one.ask.id for one in await dead.runner._claim()] == [ask_id]
        elif moment == "answered":
            assert (await dead.teams.wait(ask_id, int(PATIENCE_S * 1000))).ask.status == "answered"
    await dead.stop()
    alive = World(place, store)
    await alive.start()
    try:
        done = await alive.over("m1")
        assert (done.status, done.attempts) == ("done", 1)
        assert len(await alive.replies("a")) == 1
        assert [ask.status for ask in await alive.asks("a")] == ["answered"]
    finally:
        await alive.stop()
        await store.close()


async def test_another_machine_goes_on_with_the_same_ask_when_the_lease_of_a_dead_one_is_over(place: Place) -> None:
    store = place.open()
    dead = World(place, store, "dead")
    await dead.start(running=False, dispatching=False)
    await dead.send("a", "hello", "m1")
    work = await store.write(lambda tx: dead.dispatcher._next(tx, "a", way=WAY))
    assert work is not None
    ask_id = await dead.dispatcher._ask(work.message)
    await dead.stop()
    other = World(place, store, "other")
    await other.start(dispatching=False)
    try:
        assert await store.write(lambda tx: other.dispatcher._next(tx, "a", way=WAY)) is None, "the lease holds"
        place.shift += LEASE_MS + 1
        task = asyncio.create_task(other.dispatcher.run())
        done = await other.over("m1")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (done.status, done.attempts, done.lease_by) == ("done", 2, "daemon:other")
        assert [ask.id for ask in await other.asks("a")] == [ask_id]
    finally:
        await other.stop()
        await store.close()


async def test_a_long_turn_keeps_its_message_and_is_never_asked_twice(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managed_delivery, "LOOK_S", 0.05)  # no news come from a turn that takes long
    async with _world(place) as world:
        await world.send("a", LONG, "slow")
        ask = await world.at_work("a")
        before = await world.message("slow")
        place.shift += LEASE_MS - LEASE_MS // 4

        async def renewed() -> ListedMessage | None:
            found = await world.message("slow")
            return found if (found.lease_until or 0) > (before.lease_until or 0) else None

        kept = await _until(renewed, "the lease is renewed")
        assert (kept.status, kept.attempts) == ("leased", 1)
        place.shift += KEEP_MS - LEASE_MS // 2
        await world.store.write(forget_old)
        assert await world.dispatcher._ask(kept) == ask.id, "what remembers the ask was renewed with the lease"


async def test_a_message_that_was_given_to_somebody_else_is_left_to_them(place: Place) -> None:
    async with _world(place) as world:
        await world.send("a", LONG, "slow")
        ask = await world.at_work("a")

        def give_away(tx: Tx) -> None:
            (mine,) = queries.leased(tx, "a")
            queries.give_back(tx, mine)
            queries.take(tx, "a", "session:other", "hook", LEASE_MS)

        await world.store.write(give_away)
        await world.teams.cancel(ask.id)
        await _until(lambda: _idle(world), "the turn is over")
        left = await world.message("slow")
        assert (left.status, left.lease_by) == ("leased", "session:other")
        assert await world.replies("a") == []


async def _idle(world: World) -> bool | None:
    return all(task.done() for task in world.dispatcher._serving.values()) or None


async def test_a_live_agent_gets_its_messages_itself_and_hook_targets_are_never_run(place: Place) -> None:
    async with _world(place, a="auto", b="hook") as world:
        world.alive.add("a")
        await world.send("a", "for the live one", "m1")
        await world.send("b", "for the hooks", "m2")
        await world.dispatcher._look()
        assert not world.dispatcher._serving
        assert [(await world.message(name)).status for name in ("m1", "m2")] == ["pending", "pending"]
        world.alive.discard("a")
        assert (await world.over("m1")).status == "done"
        assert (await world.message("m2")).attempts == 0
        assert await world.asks("b") == []


async def test_a_turn_that_fails_fails_the_message_with_its_words(place: Place) -> None:
    async with _world(place) as world:
        await world.send("a", "fail", "bad")
        await world.send("a", "die", "worse")
        bad, worse = await world.over("bad"), await world.over("worse")
        assert bad.status == "failed" and (bad.reply or "").startswith('The agent reported an error: "told to fail')
        assert worse.status == "failed" and worse.reply is not None and "asked twice" in worse.reply
        assert len(await world.replies("a")) == 2


async def test_a_message_that_cannot_be_asked_fails_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with _world(place) as world:
        ask = world.teams.ask

        async def refuse_one(caller: Caller, to_team: str, text: str, **more: Any) -> str:
            if "poison" in text:
                raise Conflict("No agent takes that.")
            return await ask(caller, to_team, text, **more)

        monkeypatch.setattr(world.teams, "ask", refuse_one)
        await world.send("a", "poison", "m1")
        await world.send("a", "fine", "m2")
        refused, fine = await world.over("m1"), await world.over("m2")
        assert (refused.status, refused.reply) == ("failed", "No agent takes that.")
        assert fine.status == "done"


async def test_a_conversation_begun_afresh_is_a_restart_and_its_agent_is_told_of_the_task(place: Place) -> None:
    async with _world(place) as world:
        await world.send("a", "begin", "m1")
        await world.over("m1")
        task = Task("Fix nexus.mg DNS record", None, "m1", "2", target="a")
        await world.store.write(lambda tx: tasks.save_for_target(tx, task))
        old = await world.session("a")
        await world.send("a", "go on", "m2")
        await world.over("m2")
        assert "session_restart" not in pulled_view(await world.bridge.pull("a", None)), (
            "the same conversation is no restart"
        )
        await world.teams.reset(None, "a", THREAD)
        await world.send("a", "and now?", "m3")
        await world.over("m3")
        restart = pulled_view(await world.bridge.pull("a", None))["session_restart"]
        assert restart["old"] == old and restart["new"] != old
        before, after = (await world.asks("a"))[-2:]
        assert '"Fix nexus.mg DNS record". The last completed step was "2".' in after.text
        assert "was working on" not in before.text


async def test_a_retried_message_is_asked_anew_behind_those_that_wait(place: Place) -> None:
    async with _world(place) as world:
        await world.send("a", "fail", "bad")
        await world.over("bad")
        again = await world.letters.retry("bad")
        assert retried_view(again) == {"id": "bad", "target": "a", "status": "pending"}
        ended = await world.over("bad")
        assert (ended.status, ended.attempts) == ("failed", 2)
        asks = await world.asks("a")
        assert len(asks) == 2 and "handed out before" in asks[1].text and "handed out before" not in asks[0].text


async def test_a_dead_letter_waits_again_when_its_owner_says_so(place: Place) -> None:
    async with _world(place, a="hook") as world:
        await world.send("a", "poison", "m1")
        for _ in range(MAX_ATTEMPTS):
            await world.store.write(_take_and_give_back)
        await world.send("a", "other", "m2")
        (dead,) = await world.letters.listed("a", Status.DEAD, 10)
        assert (dead.id, dead.status, dead.text) == ("m1", "dead", "poison")
        await world.letters.retry("m1")
        assert await world.letters.listed("a", Status.DEAD, 10) == []
        assert [one.id for one in await world.letters.listed(None, Status.PENDING, 10)] == ["m2", "m1"]
        waiting = await world.store.read(lambda tx: queries.pending(tx, "a", 10))
        assert [message.id for message in waiting] == ["m2", "m1"], "it waits behind what was sent meanwhile"
        with pytest.raises(Conflict, match="still waiting"):
            await world.letters.retry("m1")


async def test_what_cannot_be_retried_is_refused_by_name(place: Place) -> None:
    async with _world(place, a="hook", b="hook") as world:
        with pytest.raises(NotFound, match="nobody"):
            await world.letters.retry("nobody")
        for target in ("a", "b"):
            await world.send(target, "same", "twin")
        with pytest.raises(Conflict, match="a, b"):
            await world.letters.retry("twin")
        with pytest.raises(Conflict, match="still waiting"):
            await world.letters.retry("twin", "a")


def _take_and_give_back(tx: Tx) -> None:
    taken = queries.take(tx, "a", "session:x", "hook", LEASE_MS)
    assert taken is not None and taken.id == "m1"
    queries.give_back(tx, taken)
