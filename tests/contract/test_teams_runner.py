"""The runner and its pool on a tiny real agent: order, fairness, room, leases and failures, on both engines."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import psutil
import pytest
from tests.agents.acp_agent import AcpAgent
from tests.agents.echo.run import PROGRAM, EchoSession
from tests.contract.conftest import Place
from tests.contract.teams_world import World, running, until

from holdfast.agents import Compaction
from holdfast.agents.errors import CompactionFailed
from holdfast.errors import BadInput, StoreError
from holdfast.store import Store, Tx
from holdfast.store.calls import AlreadyAnswered, CallKey, store_answer
from holdfast.teams import pool as pool_module
from holdfast.teams import runner as runner_module
from holdfast.teams.errors import AskCycle, TeamUnavailable, UnknownTeam
from holdfast.teams.model import LEASE_MS
from holdfast.teams.queries import conversations as queries

pytestmark = pytest.mark.anyio


async def test_asks_of_one_conversation_are_answered_in_order(place: Place) -> None:
    async with running(place) as world:
        asks = [await world.ask("a", f"n{n}") for n in range(10)]
        answers = [await world.answer(ask) for ask in asks]
        assert [answer.status for answer in answers] == ["answered"] * 10
        assert [answer.answer.split(":")[0] for answer in answers if answer.answer] == [
            f"echo {n}" for n in range(1, 11)
        ]
        assert len({answer.conversation_id for answer in answers}) == 1


async def test_a_conversation_goes_on_under_the_id_that_its_agent_chose(place: Place) -> None:
    agent = AcpAgent(place.home, place.home / "acp", patience=5.0)
    chosen = []
    for number in (1, 2):  # the second by another life of the daemon, which has only the store to know the id from
        async with running(place, agent=agent) as world:
            answer = await world.answer(await world.ask("a", f"n{number}"))
            assert (answer.status, answer.cost_microusd) == ("answered", None)
            assert f"seen {number} turns" in str(answer.answer)
            chosen += await world.store.read(lambda tx: sorted(queries.known_sessions(tx)))
    assert chosen[0].startswith("ses_") and chosen == [chosen[0]] * 2


async def test_an_agent_that_neither_compacts_nor_lists_its_sessions_is_looked_after_all_the_same(place: Place) -> None:
    agent = AcpAgent(place.home, place.home / "acp", patience=5.0)
    async with running(place, agent=agent, compactAfterMessages=2) as world:
        await world.answer(await world.ask("a", "the word is lighthouse"))
        await until(lambda: not world.runner._running)
        assert await world.teams.found() == []
        await world.teams.discover()
        await world.teams.maintenance.maintain()
        second = await world.answer(await world.ask("a", "what was the word?"))
        assert "seen 1 turns" in str(second.answer), "it is a new session"
        assert "What this conversation was about so far" in str(second.answer)


async def test_a_long_queue_does_not_hold_up_other_conversations(place: Place) -> None:
    async with running(place, maxProcesses=1) as world:
        many = [await world.ask("a", "sleep 0.05", thread="long") for _ in range(10)]
        late = await world.answer(await world.ask("b", "quick"))
        first = await world.teams.find(many[0].id)
        last = await world.answer(many[-1])
        assert late.finished_at is not None and last.finished_at is not None and first.finished_at is not None
        assert first.finished_at <= late.finished_at < last.finished_at


@pytest.mark.parametrize("number", [pytest.param(6, id="small"), pytest.param(12, id="whole", marks=pytest.mark.long)])
async def test_no_more_processes_than_allowed_and_no_busy_one_is_evicted(place: Place, number: int) -> None:
    async with running(place, maxProcesses=2) as world:
        most = 0

        async def watch() -> None:
            nonlocal most
            while True:
                most = max(most, len(world.runner.pool.slots))
                await asyncio.sleep(0.005)

        watching = asyncio.create_task(watch())
        asks = [await world.ask("abc"[n % 3], "sleep 0.05", thread=f"t{n}") for n in range(number)]
        answers = [await world.answer(ask) for ask in asks]
        watching.cancel()
        assert {answer.status for answer in answers} == {"answered"}
        assert {answer.attempts for answer in answers} == {1}
        assert 1 <= most <= 2


async def test_a_warm_process_is_looked_at_once_for_each_ask_and_replaced_if_it_was_overtaken(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[bool] = []
    overtaken = False

    async def look(session: EchoSession) -> bool:
        looks.append(overtaken)
        return overtaken

    monkeypatch.setattr(EchoSession, "is_overtaken", look)
    async with running(sqlite_place) as world:
        pids = []
        for number in (1, 2, 3):
            overtaken = number == 3
            answer = await world.answer(await world.ask("a", f"n{number}"))
            assert str(answer.answer).startswith(f"echo {number}")
            pids += [slot.session.pid for slot in world.runner.pool.slots]
            await until(lambda: not world.runner._running)
        assert looks == [False, True], "the first ask opened the process"
        assert pids[0] == pids[1] != pids[2]


async def test_what_was_looked_up_too_long_ago_does_not_count(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([True, False, False])  # for an ask that was never run, and twice for the one that is

    async def look(session: EchoSession) -> bool:
        return next(looks)

    monkeypatch.setattr(EchoSession, "is_overtaken", look)
    monkeypatch.setattr(pool_module, "AHEAD_SECONDS", 0.0)
    async with running(sqlite_place) as world:
        await world.answer(await world.ask("a", "one"))
        await until(lambda: not world.runner._running)
        (slot,) = world.runner.pool.slots
        world.runner.look_ahead(*slot.between)
        assert slot.ahead is not None and await slot.ahead.overtaken
        await world.answer(await world.ask("a", "two"))
        assert world.runner.pool.slots == [slot] and next(looks, None) is None


async def test_idle_processes_end_and_the_conversation_goes_on(place: Place) -> None:
    async with running(place, idleTimeout=1000) as world:
        await world.answer(await world.ask("a", "one"))
        assert len(world.runner.pool.slots) == 1
        await world.runner.look_after()
        (slot,) = world.runner.pool.slots
        slot.used_at -= 1.1  # as if it had been idle for so long
        await world.runner.look_after()
        assert world.runner.pool.slots == []
        again = await world.answer(await world.ask("a", "two"))
        assert again.answer is not None and again.answer.startswith("echo 2")


async def test_an_agent_that_dies_twice_is_a_typed_failure(place: Place) -> None:
    async with running(place) as world:
        await world.answer(await world.ask("a", "fine"))
        lost = await world.answer(await world.ask("a", "die"))
        assert (lost.status, lost.error_code, lost.attempts) == ("failed", "E_AGENT_DIED", 2)
        failed = await world.answer(await world.ask("a", "fail"))
        assert (failed.status, failed.error_code) == ("failed", "E_AGENT_ERROR")
        assert (await world.answer(await world.ask("a", "fine again"))).status == "answered"


async def test_a_dead_daemons_asks_are_taken_over_when_its_leases_end(place: Place) -> None:
    store = place.open()
    dead = World(place, store, "dead")
    await dead.teams.start()
    ask = await dead.ask("a", "left behind")
    claimed = await dead.runner._claim()
    assert [one.ask.id for one in claimed] == [ask.id]
    alive = World(place, store, "alive")
    await alive.start()
    try:
        await alive.runner.renew()
        assert (await alive.teams.find(ask.id)).status == "running", "the lease still holds"
        place.shift += LEASE_MS + 1
        await alive.runner.renew()
        done = await alive.answer(ask)
        assert (done.status, done.attempts) == ("answered", 2)
        assert done.note is not None and "asked again" in done.note
    finally:
        await alive.stop()
        await store.close()


async def test_a_temporary_conversation_is_put_away_when_it_is_answered(place: Place) -> None:
    async with running(place) as world:
        first = await world.answer(await world.ask("a", "hello"))
        once = await world.answer(await world.ask("a", "just this", temporary=True))
        assert once.status == "answered" and once.conversation_id != first.conversation_id
        await until(lambda: not world.runner._running)
        statuses = {one.thread: one.status for one in await world.teams.conversations("a", 10)}
        (thread,) = statuses.keys() - {"main"}
        assert (statuses["main"], statuses[thread]) == ("active", "archived")
        assert [slot.conversation_id for slot in world.runner.pool.slots] == [first.conversation_id]
        with pytest.raises(BadInput, match="threadId"):
            await world.ask("a", "x", temporary=True, thread="mine")


@pytest.mark.parametrize(
    ("number", "threads"),
    [pytest.param(12, 2, id="small"), pytest.param(30, 5, id="whole", marks=pytest.mark.long)],
)
async def test_two_daemons_share_the_work_and_answer_each_ask_once(
    postgres_place: Place, number: int, threads: int
) -> None:
    place = postgres_place
    stores = [place.open(), place.open()]
    worlds = [World(place, store, name, maxProcesses=2) for store, name in zip(stores, ("one", "two"), strict=True)]
    for world in worlds:
        await world.start()
    try:
        asks = [await worlds[n % 2].ask("abc"[n % 3], "hello", thread=f"t{n % threads}") for n in range(number)]
        worlds[1].runner.wake()
        answers = [await worlds[0].answer(ask) for ask in asks]
        assert {answer.status for answer in answers} == {"answered"}
        assert {answer.attempts for answer in answers} == {1}
    finally:
        for world in worlds:
            await world.stop()
        for store in stores:
            await store.close()


async def test_a_runner_that_is_stopped_while_work_arrives_stops(place: Place) -> None:
    async with running(place) as world:
        first = await world.answer(await world.ask("a", "hello"))
        assert first.status == "answered" and world._task is not None
        await until(lambda: not world.runner._running)
        world.runner.wake()
        world._task.cancel()
        done, _ = await asyncio.wait([world._task], timeout=5)
        assert done, "it took the cancellation for nothing"


async def test_an_ask_to_a_machine_that_is_not_there_ends_with_that_reason(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "UNSERVED_LOOK", 0.05)
    monkeypatch.setattr(runner_module, "UNSERVED_ELSEWHERE_SECONDS", 0.5)
    async with running(place) as world:
        file = place.home / "one" / "teams.json"
        document = json.loads(file.read_text())
        document["teams"]["a"]["machine"] = "two"
        file.write_text(json.dumps(document))
        if world.runner.is_alone:
            with pytest.raises(TeamUnavailable, match='runs on the machine "two"'):
                await world.ask("a", "anybody?")
            return
        at_work = await world.ask("b", "works elsewhere")
        await world.answer(at_work)
        await until(lambda: not world.runner._running)
        await _lease(world.store, at_work.conversation_id, "two")
        asked = await world.ask("a", "anybody?")
        state = await world.teams.wait(asked.id, 1_000)
        assert state.ask.status == "waiting", "another machine is at work and may come to it"
        assert 'the machine "two"' in state.progress and "Waiting at place" not in state.progress
        await _lease(world.store, at_work.conversation_id, None)
        world.runner.wake()
        ended = await world.answer(asked)
        assert (ended.status, ended.error_code) == ("failed", TeamUnavailable.code)
        assert "No other machine took it." in str(ended.error)


async def _lease(store: Store, conversation: int, holder: str | None) -> None:
    """Let a machine work on a conversation, or let it go."""

    def write(tx: Tx) -> None:
        until = None if holder is None else tx.now() + LEASE_MS
        tx.run(
            "UPDATE conversations SET lease_by = :holder, lease_until = :until WHERE id = :id",
            holder=holder,
            until=until,
            id=conversation,
        )

    await store.write(write)


async def test_what_cannot_be_asked_is_refused_by_name(place: Place) -> None:
    async with running(place) as world:
        with pytest.raises(UnknownTeam):
            await world.ask("nobody", "x")
        with pytest.raises(AskCycle):
            await world.ask("a", "x", from_team="a")


async def test_a_cancelled_ask_is_never_run(place: Place) -> None:
    async with running(place, maxProcesses=1) as world:
        busy = await world.ask("a", "sleep 0.5")
        waiting = await world.ask("b", "never")
        cancelled = await world.teams.cancel(waiting.id)
        assert cancelled.ask.status == "cancelled"
        assert (await world.answer(busy)).status == "answered"
        await until(lambda: not world.runner._running)
        assert (await world.teams.find(waiting.id)).attempts == 0


async def test_a_conversation_that_cannot_be_compacted_is_summed_up_and_goes_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unwilling(session: EchoSession) -> Compaction:
        raise CompactionFailed("there is nothing to compact")

    monkeypatch.setattr(EchoSession, "compact", unwilling)
    async with running(place, compactAfterMessages=2) as world:
        first = await world.answer(await world.ask("a", "the word is lighthouse"))
        await until(lambda: not world.runner._running)
        await world.teams.maintenance.maintain()
        second = await world.answer(await world.ask("a", "what was the word?"))
        assert first.conversation_id == second.conversation_id
        assert second.answer is not None and second.answer.startswith("echo 1"), "it is a new session"
        assert "What this conversation was about so far" in second.answer
        third = await world.answer(await world.ask("a", "and now?"))
        assert third.answer is not None and "was about so far" not in third.answer.partition(":")[2]


async def test_a_grown_conversation_is_compacted_while_nobody_uses_it(place: Place) -> None:
    async with running(place, compactAfterMessages=2) as world:
        ask = await world.answer(await world.ask("a", "one"))
        await until(lambda: not world.runner._running)
        await world.teams.maintenance.maintain()
        conversation = await world.store.read(lambda tx: queries.conversation(tx, ask.conversation_id))
        assert conversation is not None
        assert (conversation.compacted_count, conversation.status) == (2, "active")
        again = await world.answer(await world.ask("a", "two"))
        assert again.status == "answered"


async def test_a_conversation_unused_for_long_is_archived_and_taken_up_again(place: Place) -> None:
    async with running(place, archiveAfterDays=1) as world:
        ask = await world.answer(await world.ask("a", "one"))
        place.shift += 2 * 24 * 3_600_000
        await world.teams.maintenance.maintain()
        conversation = await world.store.read(lambda tx: queries.conversation(tx, ask.conversation_id))
        assert conversation is not None and conversation.status == "archived"
        again = await world.answer(await world.ask("a", "two"))
        assert again.answer is not None and again.answer.startswith("echo 2")


async def test_the_first_turn_of_a_new_process_is_told_its_ask_alone(sqlite_place: Place) -> None:
    async with running(sqlite_place) as world:
        first = await world.answer(await world.ask("a", "one"))
    async with running(sqlite_place) as world:
        again = await world.answer(await world.ask("a", "one"))
        assert first.answer is not None and again.answer is not None
        assert again.answer.startswith("echo 2")
        assert len(again.answer.splitlines()) == len(first.answer.splitlines())


async def test_an_answer_for_which_there_was_no_room_is_stored_when_there_is(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "STORE_AGAIN_SECONDS", 0.01)
    async with running(place) as world:
        refused = 0
        finish = queries.finish

        def full(*arguments: Any, **values: Any) -> bool:
            nonlocal refused
            if refused < 3:
                refused += 1
                raise StoreError("The disk is full; nothing was written.")
            return finish(*arguments, **values)

        monkeypatch.setattr(queries, "finish", full)
        answer = await world.answer(await world.ask("a", "kept"))
        assert (answer.status, refused) == ("answered", 3)
        following = await world.answer(await world.ask("a", "and on"))
        assert following.status == "answered", "nothing hangs behind it"


async def test_an_exception_that_nobody_foresaw_ends_its_ask_with_an_error_and_nothing_hangs(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(place) as world:
        slot = world.runner.open

        async def unforeseen(*arguments: Any) -> Any:
            raise KeyError("uuid")

        monkeypatch.setattr(world.runner, "open", unforeseen)
        failed = await world.answer(await world.ask("a", "one"))
        assert (failed.status, failed.error_code) == ("failed", "E_INTERNAL")
        assert failed.error is not None and "KeyError" in failed.error
        monkeypatch.setattr(world.runner, "open", slot)
        assert (await world.answer(await world.ask("a", "two"))).status == "answered"


@pytest.mark.parametrize("write", ["mark_begun", "let_go", "set_session"])
async def test_a_conversation_goes_on_after_the_disk_was_full_while_its_agent_was_opened_or_ended(
    place: Place, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    """Each write around a process fails in turn, as on a full disk, and then there is room again."""
    async with running(place) as world:
        first = await world.answer(await world.ask("a", "one"))
        if write != "let_go":
            await world.runner.release(["a"], [])
        if write == "set_session":  # what is lost is begun afresh in another session
            for transcript in (place.home / "transcripts").glob("*.jsonl"):
                transcript.unlink()

        def full(*arguments: Any, **values: Any) -> None:
            raise StoreError("The disk is full; nothing was written.")

        with monkeypatch.context() as no_room:
            no_room.setattr(queries, write, full)
            during = await world.answer(await world.ask("a", "two\ndie" if write == "let_go" else "two"))
            assert during.status == "failed"
        following = await world.answer(await world.ask("a", "three"))
        assert following.status == "answered", "nothing hangs behind it"
        assert following.conversation_id == first.conversation_id
        assert _echo_processes(place) == 1, "a process that could not be used has ended"


async def test_a_conversation_whose_last_line_a_full_disk_cut_off_goes_on(sqlite_place: Place) -> None:
    async with running(sqlite_place) as world:
        await world.answer(await world.ask("a", "one"))
        await world.runner.release(["a"], [])
        (transcript,) = (sqlite_place.home / "transcripts").glob("*.jsonl")
        with transcript.open("a") as file:
            file.write('{"text": "was never answ')
        second = await world.answer(await world.ask("a", "two"))
        assert second.answer is not None and second.answer.startswith("echo 2")
        await world.runner.release(["a"], [])
        third = await world.answer(await world.ask("a", "three"))
        assert third.answer is not None and third.answer.startswith("echo 3")


def _echo_processes(place: Place) -> int:
    """How many agents of this test run."""
    folder = str(place.home / "transcripts")
    return sum(
        child.info["cmdline"][3:5] == [PROGRAM, folder]
        for child in psutil.process_iter(["cmdline"])
        if child.info["cmdline"]
    )


async def test_an_ask_that_its_runner_lost_sight_of_is_taken_up_again(place: Place) -> None:
    async with running(place) as world:
        ask = await world.ask("a", "sleep 30")
        await until(lambda: world.runner.works_on(ask.id))
        task = world.runner._running.pop(ask.id)
        place.shift += LEASE_MS // 2
        await world.runner.renew()
        place.shift += LEASE_MS
        lost = await world.store.read(lambda tx: queries.abandoned(tx, None))
        assert [one.id for one in lost] == [ask.id]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_repeated_reset_still_ends_the_process_of_the_session_that_was_left(place: Place) -> None:
    async with running(place) as world:
        first = await world.answer(await world.ask("a", "one"))
        await until(lambda: not world.runner._running)
        key = CallKey.of("agent:asker", "call-1", "teams_session", {"operation": "reset", "team": "a"})

        def reset_alone(tx: Tx) -> None:
            """What is left when the call was cut off right after its transaction."""
            queries.set_session(tx, first.conversation_id, tx.new_id(), begun=False, note=None)
            store_answer(tx, key, {"conversation": {"id": first.conversation_id}})

        await world.store.write(reset_alone)
        assert len(world.runner.pool.slots) == 1
        with pytest.raises(AlreadyAnswered) as known:
            await world.teams.reset(None, "a", None, key)
        assert known.value.result == {"conversation": {"id": first.conversation_id}}
        assert world.runner.pool.slots == []
        again = await world.answer(await world.ask("a", "two"))
        assert (again.answer or "").startswith("echo 1"), "it begins afresh"
