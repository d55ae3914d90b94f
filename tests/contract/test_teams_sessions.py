"""What a conversation's next session is told after a reset, a deletion or a fork, on a tiny real agent."""

from __future__ import annotations

import pytest
from tests.agents.acp_agent import AcpAgent
from tests.agents.echo.run import EchoSession
from tests.contract.conftest import Place
from tests.contract.teams_world import World, running, until

from holdfast.agents import Compaction
from holdfast.agents.errors import CompactionFailed, PartMissing, SessionMissing
from holdfast.errors import Conflict
from holdfast.store import Tx
from holdfast.store.calls import AlreadyAnswered, CallKey
from holdfast.teams.queries import conversations as queries
from holdfast.teams.views import conversation_view

pytestmark = pytest.mark.anyio


async def said(world: World, words: str, thread: str | None = None) -> str:
    """The whole answer of an agent that repeats what it was told; nothing of it runs any more."""
    done = await world.answer(await world.ask("a", words, thread=thread))
    await until(lambda: not world.runner._running)
    assert done.answer is not None, done
    return done.answer


@pytest.mark.parametrize("how", ["reset", "delete"])
async def test_an_older_summary_is_forgotten_too(place: Place, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    async def unwilling(session: EchoSession) -> Compaction:
        raise CompactionFailed("there is nothing to compact")

    monkeypatch.setattr(EchoSession, "compact", unwilling)
    async with running(place, compactAfterMessages=2) as world:
        await said(world, "the word is lighthouse")
        await world.teams.maintenance.maintain()
        if how == "reset":
            await world.teams.reset(None, "a", None)
        else:
            await world.teams.archive(None, "a", None, restore=False, delete_files=True)
        again = await said(world, "what was the word?")
        assert again.startswith("echo 1") and "lighthouse" not in again and "so far" not in again
        left = "".join(path.read_text() for path in (place.home / "transcripts").iterdir())
        assert ("lighthouse" in left) == (how == "reset"), "only deleting deletes files"


async def test_a_thread_that_was_to_begin_as_a_copy_forgets_that_when_it_is_reset(place: Place) -> None:
    async with running(place) as world:
        await said(world, "the word is lighthouse")
        original = (await world.teams.conversations("a", 1))[0]

        def to_be_copied(tx: Tx) -> None:
            copy = queries.begin(tx, "", "a", "side")
            tx.run("UPDATE conversations SET fork_of = :id WHERE id = :row", id=original.session_id, row=copy.id)

        await world.store.write(to_be_copied)
        await world.teams.reset(None, "a", "side")
        assert (await said(world, "what was the word?", "side")).startswith("echo 1")


async def test_a_fork_that_is_repeated_or_refused_leaves_one_copy_or_none(place: Place) -> None:
    async with running(place) as world:
        await said(world, "the word is lighthouse")
        key = CallKey.of("agent:asker", "call-1", "teams_session", {"operation": "fork", "team": "a"})
        key.view = conversation_view
        made = await world.teams.fork(None, "a", None, "side", key)
        with pytest.raises(AlreadyAnswered) as known:
            await world.teams.fork(None, "a", None, "side", key)
        assert known.value.result == conversation_view(made)
        with pytest.raises(Conflict, match="a thread"):
            await world.teams.fork(None, "a", None, "side")
        assert len(list((place.home / "transcripts").iterdir())) == 2
        assert (await said(world, "and here?", "side")).startswith("echo 2")


async def test_an_agent_that_cannot_fork_leaves_no_thread(place: Place) -> None:
    async with running(place, agent=AcpAgent(place.home, place.home / "acp", 0.3)) as world:
        await world.answer(await world.ask("a", "one"))
        with pytest.raises(PartMissing):
            await world.teams.fork(None, "a", None, "side")
        assert [one.thread for one in await world.teams.conversations("a", 9)] == ["main"]


async def test_a_conversation_whose_session_is_lost_cannot_be_forked(place: Place) -> None:
    async with running(place) as world:
        await said(world, "one")
        for path in (place.home / "transcripts").iterdir():
            path.unlink()
        with pytest.raises(SessionMissing):
            await world.teams.fork(None, "a", None, "side")
        assert [one.thread for one in await world.teams.conversations("a", 9)] == ["main"]
