"""How asks end that are not answered at once: cancelled, not opened, waiting for others; on both engines."""

from __future__ import annotations

import asyncio
import errno
import os
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from tests.agents.echo.run import EchoAgent, EchoSession
from tests.contract.conftest import Place
from tests.contract.teams_world import World, agent_of, running, until

from holdfast.agents import AgentEvent, AgentSession, AgentSpec, Compaction
from holdfast.errors import Conflict
from holdfast.store.wakeups import Wakeups
from holdfast.teams import runner as runner_module
from holdfast.teams.model import LEASE_MS, Ask, Conversation
from holdfast.teams.pool import Slot
from holdfast.teams.queries import conversations as queries

pytestmark = pytest.mark.anyio


class SlowToOpen(EchoAgent):
    """Opens no process before it is let."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.home, place.home / "transcripts")
        self.opening, self.may_open = asyncio.Event(), asyncio.Event()
        self.opened = 0

    async def open(self, spec: AgentSpec, session_id: str, *, resume: bool) -> EchoSession:
        self.opening.set()
        await self.may_open.wait()
        self.opened += 1
        return await super().open(spec, session_id, resume=resume)


class Broken(EchoAgent):
    """Cannot be opened until it is repaired."""

    def __init__(self, place: Place, error: Exception) -> None:
        super().__init__(place.home, place.home / "transcripts")
        self.error: Exception | None = error

    async def open(self, spec: AgentSpec, session_id: str, *, resume: bool) -> EchoSession:
        if self.error is not None:
            raise self.error
        return await super().open(spec, session_id, resume=resume)


def _transcripts(place: Place) -> str:
    return "".join(path.read_text() for path in (place.home / "transcripts").glob("*.jsonl"))


def _in_a_turn(session: AgentSession) -> bool:
    return isinstance(session, EchoSession) and session._answer is not None


async def _conversation(world: World, ask: Ask) -> Conversation:
    found = await world.store.read(lambda tx: queries.conversation(tx, ask.conversation_id))
    assert found is not None
    return found


async def _is_free(world: World) -> None:
    """Nothing is at work, and a process could be opened."""
    await until(lambda: not world.runner._running)
    assert world.runner.room == world.runner.config.settings.max_processes
    assert not any(slot.busy for slot in world.runner.pool.slots)


def _is_later(slot: Slot, than: float) -> bool:
    return slot.alive_at > than


def _stalls_after(world: World, milliseconds: int, patch: pytest.MonkeyPatch) -> None:
    settings = replace(world.runner.config.settings, stall_timeout_ms=milliseconds)
    patch.setattr(world.runner, "config", replace(world.runner.config, settings=settings))


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x.jsonl"), "E_FILE", "the disk is full. Free disk space"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "x.jsonl"), "E_FILE", "Is a directory. Repair it"),
        (KeyError("uuid"), "E_INTERNAL", "KeyError"),
    ],
    ids=["disk full", "directory", "unforeseen"],
)
async def test_where_opening_an_agent_fails_the_ask_ends_and_the_conversation_is_anybodys(
    place: Place, error: Exception, code: str, words: str
) -> None:
    agent = Broken(place, error)
    async with running(place, agent=agent) as world:
        failed = await world.answer(await world.ask("a", "one"))
        assert (failed.status, failed.error_code) == ("failed", code)
        assert words in str(failed.error)
        await _is_free(world)
        assert (await _conversation(world, failed)).lease_by is None
        agent.error = None
        assert (await world.answer(await world.ask("a", "two"))).status == "answered"


async def test_a_lease_that_could_not_be_released_runs_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(place, agent=Broken(place, KeyError("uuid"))) as world:
        monkeypatch.setattr(queries, "let_go", lambda *arguments: None)
        failed = await world.answer(await world.ask("a", "one"))
        await _is_free(world)
        place.shift += LEASE_MS // 2
        await world.runner.renew()
        place.shift += LEASE_MS
        left = await _conversation(world, failed)
        now = await world.store.read(lambda tx: tx.now())
        assert left.lease_until is not None and left.lease_until < now, "only what has a process is renewed"


async def test_an_agent_that_does_not_get_ready_ends_its_ask_and_frees_its_place(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = SlowToOpen(place)
    async with running(place, agent=agent, maxProcesses=1) as world:
        _stalls_after(world, 50, monkeypatch)
        failed = await world.answer(await world.ask("a", "one"))
        assert (failed.status, failed.error_code) == ("failed", "E_AGENT_STALLED")
        assert "did not get ready" in str(failed.error)
        await _is_free(world)
        assert (await _conversation(world, failed)).lease_by is None


async def test_an_ask_that_is_cancelled_while_its_process_opens_never_executes(place: Place) -> None:
    agent = SlowToOpen(place)
    async with running(place, agent=agent, maxProcesses=1) as world:
        ask = await world.ask("a", "never")
        await asyncio.wait_for(agent.opening.wait(), 30)
        assert (await world.teams.cancel(ask.id)).ask.status == "cancelled"
        await _is_free(world)
        assert agent.opened == 0, "its opening was given up, too"
        assert (await _conversation(world, ask)).lease_by is None
        agent.may_open.set()
        assert (await world.answer(await world.ask("a", "next"))).status == "answered"
        assert "never" not in _transcripts(place)


async def test_an_ask_that_another_daemon_cancels_while_its_process_opens_never_executes(place: Place) -> None:
    agent = SlowToOpen(place)
    async with running(place, agent=agent) as world:
        ask = await world.ask("a", "never")
        await asyncio.wait_for(agent.opening.wait(), 30)
        assert await world.store.write(lambda tx: queries.cancel(tx, ask.id)) == [ask.id]
        agent.may_open.set()
        await _is_free(world)
        assert (await world.answer(await world.ask("a", "next"))).status == "answered"
        assert "never" not in _transcripts(place)


async def test_a_turn_that_does_not_take_the_interrupt_is_ended_with_its_process(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "INTERRUPT_AGAIN", 0.02)
    monkeypatch.setattr(runner_module, "INTERRUPT_SECONDS", 0.1)

    async def deaf(session: EchoSession) -> None:
        await asyncio.Event().wait()

    async with running(place, maxProcesses=1) as world:
        ask = await world.ask("a", "sleep 60")
        await until(lambda: any(_in_a_turn(slot.session) for slot in world.runner.pool.slots))
        with monkeypatch.context() as patch:
            patch.setattr(EchoSession, "interrupt", deaf)
            await world.teams.cancel(ask.id)
            await _is_free(world)
        assert world.runner.pool.slots == []
        assert (await world.answer(await world.ask("a", "next"))).status == "answered"


async def test_cancelling_an_ask_cancels_what_its_agent_asked_also_from_another_machine(postgres_place: Place) -> None:
    stores = [postgres_place.open(), postgres_place.open()]
    here, there = (World(postgres_place, store, name) for store, name in zip(stores, ("one", "two"), strict=True))
    await here.start()
    await there.teams.start()
    try:
        parent = await here.ask("a", "sleep 60")
        child = await here.ask("b", "sleep 60", agent_of(parent))
        grandchild = await here.ask("c", "sleep 60", agent_of(child))
        await until(lambda: sum(slot.busy for slot in here.runner.pool.slots) == 3)
        assert [child.parent, grandchild.parent] == [parent.id, child.id]
        assert (await there.teams.cancel(parent.id)).ask.status == "cancelled"
        for ask in (parent, child, grandchild):
            assert (await here.teams.find(ask.id)).status == "cancelled"
        await here.runner.renew()  # a daemon learns of it at once, by the event; at the latest here
        await _is_free(here)
    finally:
        await here.stop()
        for store in stores:
            await store.close()


async def test_what_the_agent_of_a_cancelled_ask_asks_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async def deaf(session: EchoSession) -> None:
        pass

    async with running(place) as world:
        monkeypatch.setattr(EchoSession, "interrupt", deaf)
        parent = await world.ask("a", "sleep 60")
        await until(lambda: any(_in_a_turn(slot.session) for slot in world.runner.pool.slots))
        await world.teams.cancel(parent.id)
        with pytest.raises(Conflict, match="cancelled"):
            await world.ask("b", "for nobody", agent_of(parent))


async def _request(world: World) -> str:
    """The permission that an agent waits for, once it does."""
    with Wakeups(world.store) as news:
        while True:
            news.clear()
            if waiting := await world.teams.permissions.open():
                return waiting[0].id
            await news.wait(30)


async def test_a_permission_request_ends_with_its_ask(place: Place) -> None:
    async with running(place, team={"policy": "ask"}) as world:
        ask = await world.ask("a", "permission Bash")
        request = await _request(world)
        await world.teams.cancel(ask.id)
        assert await world.teams.permissions.open() == []
        with pytest.raises(Conflict, match="nobody waits"):
            await world.teams.permissions.decide(request, allowed=False)
        await _is_free(world)
        assert all(slot.requests == 0 for slot in world.runner.pool.slots)


async def test_an_ask_that_waits_for_a_permission_or_for_another_ask_has_not_stalled_and_says_so(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(place, team={"policy": "ask"}) as world:

        async def waits_longer_than_a_stall(ask: Ask) -> None:
            slot = world.runner.pool.slot(ask.conversation_id)
            assert slot is not None
            with monkeypatch.context() as patch:
                _stalls_after(world, 10, patch)
                for _ in range(3):
                    seen = slot.alive_at
                    await until(partial(_is_later, slot, seen + 0.01))

        ask = await world.ask("a", "permission Bash")
        request = await _request(world)
        await waits_longer_than_a_stall(ask)
        state = await world.teams.look(ask.id)
        assert f"waits until its owner allows Bash (`holdfast approve {request}`)" in state.progress
        (status,) = (await world.teams.status("a")).teams
        assert [one.id for one in status.approvals] == [request]
        await world.teams.permissions.decide(request, False)
        assert "Bash denied" in str((await world.answer(ask)).answer)
        assert (await world.teams.status("a")).teams[0].approvals == ()

        asking = await world.ask("b", "permission Edit")
        request = await _request(world)
        slot = world.runner.pool.slot(asking.conversation_id)
        assert slot is not None
        with world.runner.parked(agent_of(asking).managed):
            monkeypatch.setattr(slot, "requests", 0)
            await waits_longer_than_a_stall(asking)
            assert (await world.teams.find(asking.id)).status == "running"


async def test_wait_parks_its_caller_as_ask_does(place: Place) -> None:
    async with running(place, maxProcesses=1) as world:
        parent = await world.ask("a", "sleep 60")
        await until(lambda: any(slot.busy for slot in world.runner.pool.slots))
        child = await world.ask("b", "quick", agent_of(parent))
        done = await world.teams.wait(child.id, 60_000, managed=agent_of(parent).managed)
        assert done.ask.status == "answered"
        assert (await world.teams.find(parent.id)).status == "running"


async def test_the_limit_of_processes_holds_after_nested_chains(place: Place) -> None:
    async with running(place, maxProcesses=1) as world:
        parent = await world.ask("a", "sleep 60")
        await until(lambda: any(slot.busy for slot in world.runner.pool.slots))
        child = await world.ask("b", "sleep 60", agent_of(parent))
        with world.runner.parked(agent_of(parent).managed):
            await until(lambda: sum(slot.busy for slot in world.runner.pool.slots) == 2)
            for number in range(3):
                grandchild = await world.ask("c", "quick", agent_of(child), thread=f"t{number}")
                done = await world.teams.wait(grandchild.id, 60_000, managed=agent_of(child).managed)
                assert done.ask.status == "answered"
            await until(lambda: len(world.runner.pool.slots) == 2)
            await world.teams.cancel(child.id)
            await until(lambda: child.id not in world.runner._running)
        await until(lambda: [slot.conversation_id for slot in world.runner.pool.slots] == [parent.conversation_id])


async def test_a_conversation_that_cannot_be_compacted_holds_up_no_other_and_is_not_tried_every_time(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    compact = EchoSession.compact

    async def compacted(session: EchoSession) -> Compaction:
        tried.append(session.session_id)
        if session.session_id == broken:
            raise RuntimeError("nobody foresaw this")
        return await compact(session)

    monkeypatch.setattr(EchoSession, "compact", compacted)
    async with running(place, compactAfterMessages=2) as world:
        asks = [await world.answer(await world.ask(team, "one")) for team in ("a", "b")]
        broken, other = [(await _conversation(world, ask)).session_id for ask in asks]
        await _is_free(world)
        for _ in range(2):
            await world.teams.maintenance.maintain()
        assert tried == [broken, other]
        await world.answer(await world.ask("a", "it grows"))
        await _is_free(world)
        await world.teams.maintenance.maintain()
        assert tried == [broken, other, broken], "there is more to compact now"
        assert (await world.answer(await world.ask("a", "and goes on"))).status == "answered"


async def test_maintenance_leaves_conversations_of_other_machines_and_removed_teams_alone(place: Place) -> None:
    async with running(place, compactAfterMessages=2, warmUp=5) as world:
        ask = await world.answer(await world.ask("a", "one"))
        await _is_free(world)
        await world.runner.release(["a"], [])
        await world.store.write(lambda tx: queries.hold(tx, ask.conversation_id, "another"))
        await world.teams.maintenance.maintain()
        await world.teams.maintenance.warm_up()
        assert world.runner.pool.slots == []
        assert (await _conversation(world, ask)).compacted_count == 0
        with pytest.raises(Conflict, match="Another machine"):
            await world.teams.compact(None, "a", None)
        await world.store.write(lambda tx: queries.let_go(tx, ask.conversation_id, "another"))
        await world.teams.maintenance.warm_up()
        assert (await _conversation(world, ask)).lease_by == "one", "a warm process has its conversation to itself"


async def test_a_process_whose_conversation_another_machine_has_taken_up_is_ended(place: Place) -> None:
    async with running(place) as world:
        ask = await world.answer(await world.ask("a", "one"))
        await _is_free(world)
        await world.store.write(lambda tx: queries.let_go(tx, ask.conversation_id, "one"))
        await world.store.write(lambda tx: queries.hold(tx, ask.conversation_id, "another"))
        await world.runner.renew()
        assert world.runner.pool.slots == []
        assert (await _conversation(world, ask)).lease_by == "another"


async def test_a_model_that_only_refuses_is_no_sign_of_life_and_is_named_as_the_cause(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    retries: list[str] = []

    async def refused(session: EchoSession, text: str, on_event: Any, **more: Any) -> Any:
        while True:
            retries.append("answered 529")
            on_event(AgentEvent("retry", f"answered 529 (retry {len(retries)} of 10)"))
            await asyncio.sleep(0.02)

    async with running(place) as world:
        monkeypatch.setattr(EchoSession, "send", refused)
        ask = await world.ask("a", "one")
        await until(lambda: len(retries) > 2)
        assert "trying its model again, which answered 529" in (await world.teams.look(ask.id)).progress
        _stalls_after(world, 10, monkeypatch)
        failed = await world.answer(ask)
        assert (failed.status, failed.error_code) == ("failed", "E_AGENT_STALLED")
        assert "trying its model again, which answered 529" in str(failed.error)


async def test_an_agent_that_reports_too_late_is_told_as_an_agent_not_as_a_file(place: Place) -> None:
    async with running(place, agent=Broken(place, TimeoutError()), maxProcesses=1) as world:
        failed = await world.answer(await world.ask("a", "one"))
        assert (failed.status, failed.error_code) == ("failed", "E_AGENT_STALLED")
        assert "did not get ready in time" in str(failed.error)
        await _is_free(world)
