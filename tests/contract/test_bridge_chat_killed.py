"""Chats killed with -9 again and again before a Bot API that misbehaves: nothing is lost, nothing is stored twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.bot_api import BotApi, Fault, Kind, bot_api
from tests.contract.bridge_chat_world import World, eventually
from tests.contract.conftest import Place

from holdfast.bridge.chat.wording import REPETITION
from holdfast.bridge.model import LEASE_MS, Outcome, Status
from holdfast.bridge.queries import queue as queries
from holdfast.store import Store, Tx

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[2]
PLACES = {"homelab": (-100, None), "felt": (-200, 5), "sentry": (-200, 6)}


def child(home: str, port: str) -> None:
    """A daemon's chats, and an agent that answers everything at once; ends by being killed."""
    asyncio.run(_child(Place("sqlite", Path(home), ""), int(port)))


async def _child(place: Place, port: int) -> None:
    store = place.open()
    one = World(store, BotApi(port=port))
    await asyncio.gather(one.poller.run(), one.sender.run(), _agent(store))


async def _agent(store: Store) -> None:
    def work(tx: Tx) -> None:
        for target in PLACES:
            taken = queries.take(tx, target, "agent", "call", LEASE_MS)
            if taken is not None:
                queries.finish(tx, taken, Outcome.DONE, f"did {taken.text}")

    while True:
        await store.write(work)
        await asyncio.sleep(0.01)


@asynccontextmanager
async def chats(home: Path, port: int) -> AsyncIterator[None]:
    """A process with the chats, killed with -9 at the end."""
    program = f"from tests.contract.test_bridge_chat_killed import child; child({str(home)!r}, '{port}')"
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}
    )
    try:
        yield
        assert process.returncode is None, "the chats ended by themselves"
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()


def _misbehaviour(chance: random.Random) -> list[Fault]:
    receiving = [Kind.LOST, Kind.CUT, Kind.ERROR, Kind.REPEAT, Kind.SHUFFLE, Kind.SLOW]
    sending = [Kind.LOST, Kind.CUT, Kind.ERROR, Kind.DONE_ERROR, Kind.SLOW]
    return [
        Fault("getUpdates", chance.choice(receiving), seconds=0.1),
        Fault("sendMessage", chance.choice(sending), seconds=0.1),
        Fault("sendMessage", chance.choice(sending), seconds=0.1),
    ]


@pytest.mark.parametrize(
    ("each", "kills"),
    [pytest.param(6, 2, id="small"), pytest.param(25, 6, id="whole", marks=pytest.mark.long)],
)
async def test_nothing_is_lost_or_stored_twice_however_often_the_chats_are_killed(
    sqlite_place: Place, each: int, kills: int
) -> None:
    chance = random.Random(11)
    async with bot_api() as api:
        for number in range(each):
            for name, (chat, topic) in PLACES.items():
                api.write(f"{name} {number}", chat=chat, topic=topic)
        for _ in range(kills):
            api.faults += _misbehaviour(chance)
            async with chats(sqlite_place.home, api.port):
                enough = len(api.calls) + chance.randint(3, 12)
                await eventually(lambda enough=enough: len(api.calls) >= enough)  # type: ignore[misc]
        # Not while it is killed: who dies before the request for a pause is written down cannot know of it.
        api.end()
        await eventually(lambda: api.open == 0)
        api.faults += [Fault("sendMessage", Kind.FLOOD, chat, seconds=1.0) for chat in ("-100", "-200")]
        async with chats(sqlite_place.home, api.port):
            await eventually(lambda: all(_shown(api, name)[-1:] == [f"did {name} {each - 1}"] for name in PLACES))
        assert api.violations == []
        for name in PLACES:
            _check_chat(api, name, each)
    store = sqlite_place.open()
    try:
        for name in PLACES:
            await _check_queue(store, name, each)
    finally:
        await store.close()


def _texts(api: BotApi, name: str) -> list[str]:
    """What was shown in a target's chat, without what the bridge itself said of the queue."""
    chat, topic = PLACES[name]
    return [text for text in api.texts(str(chat), topic) if "did " in text]


def _shown(api: BotApi, name: str) -> list[str]:
    return [text.removeprefix(f"{REPETITION}\n") for text in _texts(api, name)]


def _check_chat(api: BotApi, name: str, each: int) -> None:
    shown = _shown(api, name)
    once = list(dict.fromkeys(shown))
    assert once == [f"did {name} {number}" for number in range(each)]
    for number, text in enumerate(_texts(api, name)):
        if shown[number] in shown[:number]:
            assert text.startswith(REPETITION), f"{text} was repeated and not marked"


async def _check_queue(store: Store, name: str, each: int) -> None:
    rows = await store.read(
        lambda tx: tx.all("SELECT text, status FROM bridge_messages WHERE target = :target ORDER BY seq", target=name)
    )
    assert [row["text"] for row in rows] == [f"{name} {number}" for number in range(each)]
    assert {row["status"] for row in rows} == {Status.DONE.value}
