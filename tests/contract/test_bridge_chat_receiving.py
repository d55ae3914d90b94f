"""Receiving from a chat: stored before it is confirmed, once each, from people on the list alone, and obeyed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.bot_api import TOKEN, Fault, Kind
from tests.contract.bridge_chat_world import SECRET, World, came, eventually, target, world
from tests.contract.conftest import Place

from holdfast.bridge.chat import ChatError
from holdfast.bridge.chat.service import Chats
from holdfast.bridge.views import chat_status_view
from holdfast.config import Settings
from holdfast.errors import BadInput

pytestmark = pytest.mark.anyio

STRANGER = 666


@asynccontextmanager
async def polling(*worlds: World) -> AsyncIterator[None]:
    """Pollers at work in the background."""
    tasks = [asyncio.create_task(one.poller.run()) for one in worlds]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in ended), ended


# -- once, and stored first -------------------------------------------------------------------------------------------


async def test_a_message_goes_to_the_target_of_its_chat_and_topic_and_to_no_other(place: Place) -> None:
    async with world(place) as one:
        one.api.write("for homelab")
        one.api.write("for felt", chat=-200, topic=5)
        one.api.write("for sentry", chat=-200, topic=6)
        one.api.write("for nobody", chat=-200)
        await one.poll()
        for name in ("homelab", "felt", "sentry"):
            assert await one.queued(name) == [f"for {name}"]
        assert len(await one.rows("SELECT id FROM bridge_messages")) == 3


async def test_a_crash_between_receive_and_commit_loses_nothing(place: Place) -> None:
    async with world(place) as one:
        one.api.write("first")
        one.api.write("second")

        class Dies(Exception):
            pass

        async def dying(raw: object) -> int | None:
            raise Dies

        take, one.intake.take = one.intake.take, dying  # type: ignore[method-assign]
        with pytest.raises(Dies):
            await one.poll()
        one.intake.take = take  # type: ignore[method-assign]
        assert one.api.unconfirmed == 2
        await one.poll()
        assert await one.queued("homelab") == ["first", "second"]


async def test_a_crash_between_commit_and_confirmation_stores_nothing_twice(place: Place) -> None:
    async with world(place) as one:
        one.api.write("first")
        one.api.write("/stop")
        await one.poll()
        again = World(one.store, one.api)
        offset = await again.poll()
        assert one.api.unconfirmed == 2
        assert await one.queued("homelab") == ["first", "STOP"]
        one.api.write("second")
        await again.poll(offset)
        assert one.api.unconfirmed == 1
        assert await one.queued("homelab") == ["first", "STOP", "second"]
        await again.telegram.close()


async def test_what_is_repeated_and_out_of_order_is_stored_once_and_in_order(place: Place) -> None:
    async with world(place) as one:
        for number in range(10):
            one.api.write(f"text {number}")
        one.api.faults.append(Fault("getUpdates", Kind.SHUFFLE))
        offset = await one.poll()
        one.api.write("text 10")
        one.api.faults += [Fault("getUpdates", Kind.REPEAT), Fault("getUpdates", Kind.SHUFFLE)]
        await one.poll(offset)
        assert await one.queued("homelab") == [f"text {number}" for number in range(11)]


async def test_the_loop_comes_through_errors_and_broken_connections(place: Place) -> None:
    async with world(place) as one:
        kinds = [Kind.ERROR, Kind.LOST, Kind.CUT, Kind.DONE_ERROR, Kind.REPEAT, Kind.SHUFFLE]
        one.api.faults += [Fault("getUpdates", kind) for kind in kinds]
        async with polling(one):
            for number in range(20):
                one.api.write(f"text {number}")
                await asyncio.sleep(0)
            await eventually(lambda: not one.api.unconfirmed)
        assert await one.queued("homelab") == [f"text {number}" for number in range(20)]
        assert one.api.violations == []


async def test_the_first_question_has_no_offset_and_an_empty_answer_leads_back_to_none(sqlite_place: Place) -> None:
    async with world(sqlite_place) as one:
        asked: list[int | None] = []
        fetch = one.telegram.fetch

        async def noted(offset: int | None, wait_s: int = 0) -> list[Any]:
            asked.append(offset)
            return await fetch(offset, 0)

        one.telegram.fetch = noted  # type: ignore[method-assign]
        one.api.write("first")
        offset = await one.poll()
        offset = await one.poll(offset)
        await one.poll(offset)
        assert asked[0] is None
        assert asked[1] is not None
        assert asked[2] is None


async def test_what_cannot_be_confirmed_is_trouble_and_not_a_busy_loop(sqlite_place: Place) -> None:
    async with world(sqlite_place) as one:

        async def odd(offset: int | None, wait_s: int = 0) -> list[Any]:
            return ["odd", {"message": {}}]

        one.telegram.fetch = odd  # type: ignore[method-assign]
        with pytest.raises(ChatError, match="no numbers"):
            await one.poll()


async def test_only_one_daemon_polls_and_the_other_takes_over_when_it_ends(place: Place) -> None:
    async with world(place) as one:
        other = World(one.store, one.api, "two")
        async with polling(one):
            await eventually(lambda: "getupdates" in one.api.calls)
            async with polling(other):
                one.api.write("first")
                await eventually(lambda: not one.api.unconfirmed)
        assert other.poller.trouble is None
        async with polling(other):
            one.api.write("second")
            await eventually(lambda: not one.api.unconfirmed)
        assert await one.queued("homelab") == ["first", "second"]
        await other.telegram.close()


async def test_a_second_poller_elsewhere_is_survived(sqlite_place: Place) -> None:
    async with world(sqlite_place) as one:
        async with polling(one):
            await eventually(lambda: "getupdates" in one.api.calls)
            with suppress(ChatError):
                await one.telegram.fetch(None, 0)
            one.api.write("first")
            await eventually(lambda: not one.api.unconfirmed)
        assert await one.queued("homelab") == ["first"]


async def test_a_webhook_that_was_left_behind_gives_way_to_polling(sqlite_place: Place) -> None:
    async with world(sqlite_place) as one:
        one.api.webhook = {"url": "https://example.org", "secret": "x"}
        one.api.write("waited")
        async with polling(one):
            await eventually(lambda: not one.api.unconfirmed)
        assert await one.queued("homelab") == ["waited"]
        assert one.api.violations == []


# -- who may ----------------------------------------------------------------------------------------------------------


async def test_a_stranger_is_refused_once_an_hour_and_nothing_of_theirs_is_kept(place: Place) -> None:
    async with world(place) as one:
        offset = None
        for number in range(5):
            one.api.write(f"let me in {number}", user=STRANGER)
            one.api.press("approve:x", user=STRANGER)
            offset = await one.poll(offset)
        assert len(one.api.sent) + len(one.api.answered) == 1
        one.now = 3601.0
        one.api.write("and now?", user=STRANGER)
        await one.poll(offset)
        assert len(one.api.sent) + len(one.api.answered) == 2
        assert one.intake.refused == 11
        for table in ("bridge_messages", "bridge_updates", "bridge_received"):
            assert await one.rows(f"SELECT * FROM {table}") == []


async def test_the_owner_in_a_chat_of_no_target_is_told_so(sqlite_place: Place) -> None:
    async with world(sqlite_place) as one:
        one.api.write("hello?", chat=-999)
        await one.poll()
        assert "chat -999" in one.api.texts("-999")[0]
        assert await one.rows("SELECT id FROM bridge_messages") == []


async def test_a_chat_that_was_just_linked_is_served_and_who_was_just_taken_off_the_list_is_not(place: Place) -> None:
    async with world(place) as one:
        one.edited = {"homelab": target("homelab", "-999", users=(STRANGER,))}
        one.api.write("from the new chat", chat=-999, user=STRANGER)
        one.api.write("from the old one")
        await one.poll()
        assert await one.queued("homelab") == ["from the new chat"]


# -- Telegram brings it itself ----------------------------------------------------------------------------------------


def chats(one: World, **more: Any) -> Chats:
    settings = Settings(
        Path("unused"),
        telegram_token=TOKEN,
        telegram_api=one.api.url,
        telegram_webhook="https://example.org/telegram",
        telegram_webhook_secret="s" * 32,
        **more,
    )
    return Chats(
        one.store, lambda: one.teams, one.permissions, "one", settings, served=lambda target: True, refresh=one.refresh
    )


async def test_a_webhook_stores_before_it_says_200_and_stores_a_repetition_once(place: Place) -> None:
    async with world(place) as one:
        door = chats(one)
        await door.loops()["chat: telegram webhook"]()
        assert one.api.webhook == {"url": "https://example.org/telegram", "secret": "s" * 32}
        one.api.write("first")
        (update,) = one.api.take_pending()
        for _ in range(3):
            assert await door.webhook(json.dumps(update).encode(), "s" * 32) == 200
        assert await one.queued("homelab") == ["first"]
        await door.close()


@pytest.mark.parametrize(
    ("body", "secret", "status"),
    [
        (b"{}", "wrong", 401),
        (b"{}", "", 401),
        (b"{}", "s\udcff", 401),
        (b"not json", "s" * 32, 400),
        (b"[" * 100_000, "s" * 32, 400),
        (b"x" * 2_000_000, "s" * 32, 413),
        (b"[1]", "s" * 32, 200),
        (b'{"update_id": 1}', "s" * 32, 200),
    ],
)
async def test_what_is_not_from_telegram_is_turned_away(
    sqlite_place: Place, body: bytes, secret: str, status: int
) -> None:
    async with world(sqlite_place) as one:
        assert await chats(one).webhook(body, secret) == status
        assert await one.rows("SELECT * FROM bridge_received") == []


async def test_without_any_chat_nothing_runs_and_the_webhook_is_not_there(sqlite_place: Place) -> None:
    async with world(sqlite_place) as one:
        settings, served = Settings(Path("unused")), lambda target: True
        none = Chats(one.store, lambda: one.teams, one.permissions, "one", settings, served=served, refresh=one.refresh)
        assert none.loops() == {}
        assert await none.webhook(b"{}", "") == 404
        assert chat_status_view(await none.status()) == {"transports": []}


async def test_all_chats_together_run_by_their_names_and_report_trouble(sqlite_place: Place) -> None:
    async with world(sqlite_place) as one:
        settings = Settings(
            Path("unused"),
            telegram_token=TOKEN,
            telegram_api=one.api.url,
            webhook_url="http://127.0.0.1:9/",
            webhook_secret=SECRET,
        )
        both = Chats(
            one.store,
            lambda: one.teams,
            one.permissions,
            "one",
            settings,
            served=lambda target: True,
            refresh=one.refresh,
        )
        loops = both.loops()
        assert set(loops) == {"chat: telegram", "chat: webhook", "chat: permissions", "chat: telegram updates"}
        tasks = [asyncio.ensure_future(loop()) for loop in loops.values()]
        one.api.write("/help")
        await eventually(lambda: one.api.sent)

        async def troubles() -> Any:
            return chat_status_view(await both.status()).get("troubles")

        assert [trouble["transport"] for trouble in await came(troubles)] == ["webhook"]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await both.close()


def test_a_webhook_without_a_good_secret_is_refused(tmp_path: Path) -> None:
    place = Place("sqlite", tmp_path, "")
    store = place.open()
    settings = Settings(
        tmp_path, telegram_token=TOKEN, telegram_webhook="https://example.org", telegram_webhook_secret=TOKEN[:5]
    )
    with pytest.raises(BadInput, match="HOLDFAST_TELEGRAM_WEBHOOK_SECRET"):
        Chats(store, dict, None, "one", settings, served=None, refresh=None)  # type: ignore[arg-type]
    asyncio.run(store.close())


async def test_received_numbers_are_forgotten_when_they_cannot_come_again(place: Place) -> None:
    async with world(place) as one:
        one.api.write("first")
        await one.poll()
        place.shift = 9 * 24 * 3_600_000
        door = chats(one)
        await door.sweep()
        assert await one.rows("SELECT * FROM bridge_received") == []
