"""The queue on both engines: order, priorities, duplicates, leases, dead letters, restarts, tasks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.contract.conftest import Place

from holdfast.bridge.errors import UnknownMessage, UnknownTarget
from holdfast.bridge.model import (
    LEASE_MS,
    MAX_ATTEMPTS,
    MAX_PENDING,
    SAME_TEXT_MS,
    TTL_MS,
    Outcome,
    Priority,
    Status,
    TaskReport,
)
from holdfast.bridge.queries import queue as queries
from holdfast.bridge.service import Bridge
from holdfast.bridge.views import pulled_view, sent_view, status_view, taken_view
from holdfast.errors import BadInput
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.identity.project import RootSource, locate
from holdfast.identity.senders import NotYours
from holdfast.store import Tx
from holdfast.store.calls import AlreadyAnswered, CallKey, store_answer
from holdfast.teams.team import Team

pytestmark = pytest.mark.anyio

TARGETS = ("homelab", "felt", "sentry")


def agent(session: str, at: Path | None = None) -> Caller:
    """An agent with a session of its own, in a project."""
    root = locate(str(at), RootSource.DIRECTORY) if at else None
    return Caller(Transport.RELAY, Era.LEGACY, f"agent:{session}", agent_session=session, root=root)


ME, OTHER = agent("me"), agent("other")


@asynccontextmanager
async def _bridge(place: Place) -> AsyncIterator[Bridge]:
    store = place.open()
    teams = {name: Team(name, place.home / name) for name in TARGETS}
    for team in teams.values():
        team.project.mkdir(exist_ok=True)
    try:
        yield Bridge(store, lambda: teams)
    finally:
        await store.close()


async def _take(bridge: Bridge, target: str = "homelab", by: Caller = ME) -> dict[str, Any]:
    return taken_view(await bridge.take(by, target))


async def _pull(bridge: Bridge, target: str, since: str | None) -> dict[str, Any]:
    return pulled_view(await bridge.pull(target, since))


async def _texts(bridge: Bridge, target: str) -> list[str]:
    found = []
    while "id" in (taken := await _take(bridge, target)):
        found.append(taken["text"].split("\n\n")[1].removeprefix("> "))
        await bridge.finish(ME, taken["id"], Outcome.DONE, None)
    return found


async def test_messages_of_one_target_never_appear_in_another(place: Place) -> None:
    async with _bridge(place) as bridge:
        for target in TARGETS:
            for number in range(3):
                sent = await bridge.send(target, f"{target} {number}")
                assert (sent.reason, sent.target) == (None, target)
        for target in TARGETS:
            assert await _texts(bridge, target) == [f"{target} {number}" for number in range(3)]


async def test_urgent_goes_first_and_stop_before_everything(place: Place) -> None:
    async with _bridge(place) as bridge:
        await bridge.send("homelab", "first")
        await bridge.send("homelab", "second")
        await bridge.send("homelab", "hurry", priority=Priority.URGENT)
        await bridge.send("homelab", "halt", priority=Priority.STOP)
        assert await _texts(bridge, "homelab") == ["halt", "hurry", "first", "second"]


async def test_one_message_at_a_time_but_a_stop_does_not_wait(place: Place) -> None:
    async with _bridge(place) as bridge:
        await bridge.send("homelab", "first")
        await bridge.send("homelab", "second", priority=Priority.URGENT)
        urgent = await _take(bridge)
        assert urgent["priority"] == "urgent"
        assert "id" not in await _take(bridge, by=OTHER)
        assert (await _take(bridge))["id"] == urgent["id"], "asked again, it is still the same one"
        await bridge.send("homelab", "halt", priority=Priority.STOP)
        stop = await _take(bridge, by=OTHER)
        assert stop["priority"] == "stop" and "halt what you are doing at once" in stop["text"]


async def test_the_same_id_is_a_duplicate_the_same_text_only_for_a_moment(place: Place) -> None:
    async with _bridge(place) as bridge:
        assert (await bridge.send("homelab", "continue", message_id="m1")).id
        again = await bridge.send("homelab", "something else", message_id="m1")
        assert sent_view(again) == {"queued": False, "reason": "duplicate"}
        assert (await bridge.send("felt", "continue", message_id="m1")).id, "another target's queue"
        assert (await bridge.send("homelab", "go on")).id
        assert (await bridge.send("homelab", " go  on ")).reason == "duplicate"
        place.shift += SAME_TEXT_MS + 1
        assert (await bridge.send("homelab", "go on")).id, "a second one later is a new message"
        taken = await _take(bridge)
        assert taken["id"] == "m1"
        await bridge.finish(ME, "m1", Outcome.DONE, None)
        assert (await bridge.send("homelab", "continue", message_id="m1")).reason == "duplicate"


async def test_a_text_that_was_taken_may_be_sent_again_at_once(place: Place) -> None:
    async with _bridge(place) as bridge:
        await bridge.send("homelab", "continue")
        await _take(bridge)
        assert (await bridge.send("homelab", "continue")).id


async def test_an_unknown_target_and_a_full_queue_are_told_by_name(place: Place) -> None:
    async with _bridge(place) as bridge:
        assert sent_view(await bridge.send("nowhere", "x")) == {"queued": False, "reason": "unknown target: nowhere"}
        with pytest.raises(UnknownTarget):
            await _pull(bridge, "nowhere", None)
        await bridge._store.write(_nearly_full)
        assert (await bridge.send("homelab", "x", message_id="last")).id
        assert (await bridge.send("homelab", "one too many")).reason == "full"
        assert (await bridge.send("homelab", "x", message_id="m0")).reason == "duplicate", (
            "it is there: no need to retry"
        )
        assert (await bridge.send("felt", "x")).id, "another queue has room"
        stop = await bridge.send("homelab", "STOP", priority=Priority.STOP)
        assert stop.id and (await _take(bridge))["id"] == stop.id, "a full queue does not hold up a STOP"


def _nearly_full(tx: Tx) -> None:
    """Queue all but one of the messages that one target may have, as the bridge does and in one transaction."""
    for number in range(MAX_PENDING - 1):
        made = queries.enqueue(
            tx,
            "homelab",
            "x",
            message_id=f"m{number}",
            priority=Priority.NORMAL,
            sender="somebody",
            source="mcp",
            ttl_ms=TTL_MS,
            reply_to=None,
        )
        assert made == f"m{number}"


async def test_a_lease_that_runs_out_comes_back_and_says_so(place: Place) -> None:
    async with _bridge(place) as bridge:
        sent = await bridge.send("homelab", "work")
        first = await _take(bridge)
        place.shift += LEASE_MS + 1
        second = await _take(bridge, by=OTHER)
        assert (second["id"], second["attempt"]) == (sent.id, 2) and "handed out before" in second["text"]
        with pytest.raises(NotYours):
            await bridge.finish(ME, first["id"], Outcome.DONE, "too late")
        assert (await bridge.finish(OTHER, first["id"], Outcome.DONE, "it is done")).status is Status.DONE
        assert (await bridge.finish(OTHER, first["id"], Outcome.DONE, "it is done")).repeated
        updates = (await _pull(bridge, "homelab", None))["updates"]
        assert [(update["type"], update["content"]) for update in updates] == [("reply", "it is done")]


async def test_a_message_handed_out_too_often_is_a_dead_letter(place: Place) -> None:
    async with _bridge(place) as bridge:
        sent = await bridge.send("homelab", "poison")
        await bridge.send("homelab", "after it")
        for _ in range(MAX_ATTEMPTS):
            assert (await _take(bridge))["id"] == sent.id
            place.shift += LEASE_MS + 1
        assert (await _take(bridge))["text"].split("\n\n")[1] == "> after it"
        (update,) = (await _pull(bridge, "homelab", None))["updates"]
        assert (update["type"], update["message_id"]) == ("dead_letter", sent.id)
        assert status_view(await bridge.status())["targets"]["homelab"]["dead_letters"] == 1


async def test_later_keeps_its_place_and_an_old_message_expires(place: Place) -> None:
    async with _bridge(place) as bridge:
        first = await bridge.send("homelab", "first", ttl_ms=60_000)
        await bridge.send("homelab", "second")
        await _take(bridge)
        assert (await bridge.finish(ME, first.id or "", Outcome.LATER, None)).status is Status.PENDING
        assert (await _take(bridge))["id"] == first.id
        await bridge.finish(ME, first.id or "", Outcome.LATER, None)
        place.shift += 60_001
        assert (await _take(bridge))["text"].split("\n\n")[1] == "> second"
        (update,) = (await _pull(bridge, "homelab", None))["updates"]
        assert (update["type"], update["message_id"]) == ("expired", first.id)


async def test_a_restart_is_told_in_the_seeds_words_and_leases_come_back(place: Place) -> None:
    async with _bridge(place) as bridge:
        await bridge.send("homelab", "work")
        assert (await bridge.seen("homelab", "abc-123", "hook:startup"))[0] is None, "the first one is no restart"
        assert (await bridge.seen("homelab", "abc-123", "hook:resume"))[0] is None, "nor is the same one again"
        taken = await _take(bridge, by=agent("abc-123"))
        await bridge.save_task(
            agent("abc-123"),
            "homelab",
            TaskReport("Fix nexus.mg DNS record", "msg-456", "2", ("msg-789",)),
        )
        cursor = (await _pull(bridge, "homelab", None))["cursor"]
        assert (await bridge.seen("homelab", "beside", "hook:startup", known_is_alive=True))[0] is None
        restart, task = await bridge.seen("homelab", "def-456", "hook:startup")
        assert restart is not None and (restart.old, restart.new) == ("abc-123", "def-456")
        assert task is not None and (task.current_task, task.last_completed_step) == ("Fix nexus.mg DNS record", "2")
        pulled = await _pull(bridge, "homelab", cursor)
        (update,) = pulled["updates"]
        assert update == {
            "message_id": None,
            "content": "⚠️ Agent session restarted. Previous context lost. Session: abc-123 → def-456",
            "created_at": update["created_at"],
            "type": "session_restart",
        }
        assert pulled["session_restart"]["new"] == "def-456"
        again = await _take(bridge, by=agent("def-456"))
        assert (again["id"], again["attempt"]) == (taken["id"], 2)
        status = status_view(await bridge.status())["targets"]
        assert set(status) == set(TARGETS)
        assert status["homelab"]["session_id"] == "def-456" and status["homelab"]["in_progress"] == 1


async def test_updates_are_pulled_by_cursor_or_by_time(place: Place) -> None:
    async with _bridge(place) as bridge:
        for number in range(3):
            sent = await bridge.send("homelab", f"work {number}")
            await _take(bridge)
            place.shift += 1_000
            await bridge.finish(ME, sent.id or "", Outcome.DONE, f"reply {number}")
        everything = await _pull(bridge, "homelab", None)
        assert [update["content"] for update in everything["updates"]] == ["reply 0", "reply 1", "reply 2"]
        assert (await _pull(bridge, "homelab", everything["cursor"])) == {"updates": [], "cursor": everything["cursor"]}
        since = everything["updates"][1]["created_at"]
        assert [one["content"] for one in (await _pull(bridge, "homelab", since))["updates"]] == ["reply 1", "reply 2"]
        with pytest.raises(BadInput, match="since"):
            await _pull(bridge, "homelab", "yesterday")


async def test_a_target_is_found_by_the_project_its_agent_sits_in(place: Place) -> None:
    async with _bridge(place) as bridge:
        await bridge.send("felt", "for felt")
        taken = await bridge.take(agent("felt-1", place.home / "felt"), None)
        assert taken.message is not None and (taken.target, taken.message.text) == ("felt", "for felt")
        with pytest.raises(BadInput, match="target"):
            await bridge.take(agent("nowhere", place.home), None)


async def test_what_is_not_there_or_not_yours_is_refused_by_name(place: Place) -> None:
    async with _bridge(place) as bridge:
        with pytest.raises(UnknownMessage):
            await bridge.finish(ME, "no-such", Outcome.DONE, None)
        sent = await bridge.send("homelab", "waiting")
        with pytest.raises(NotYours):
            await bridge.finish(ME, sent.id or "", Outcome.DONE, None)
        for text in ("", "  \n", "x" * 100_001, "nul\0"):
            with pytest.raises(BadInput, match="message"):
                await bridge.send("homelab", text)
        with pytest.raises(BadInput, match="id"):
            await bridge.send("homelab", "x", message_id="with space")
        with pytest.raises(BadInput, match="ttl"):
            await bridge.send("homelab", "x", ttl_ms=10 * 365 * TTL_MS)


async def test_what_was_done_long_ago_is_dropped_and_nothing_else(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.bridge.queries.retention.AT_ONCE", 2)
    month = 30 * 24 * 3_600_000
    async with _bridge(place) as bridge:
        for number in range(5):
            await bridge.send("homelab", f"old {number}", message_id=f"old{number}", ttl_ms=12 * month)
            taken = await _take(bridge)
            await bridge.finish(ME, taken["id"], Outcome.FAILED if number == 1 else Outcome.DONE, None)
        await bridge.send("homelab", "waits", message_id="waits", ttl_ms=12 * month)
        await bridge.send("felt", "all of it", message_id="felt")
        await bridge.finish(ME, (await _take(bridge, "felt"))["id"], Outcome.DONE, None)
        cursor, felt = (await _pull(bridge, "homelab", None))["cursor"], (await _pull(bridge, "felt", None))["cursor"]
        place.shift += 3 * month
        store = place.open()
        again = Bridge(store, dict)
        assert await again.forget_old(4 * month) == 0
        assert await again.forget_old(2 * month) == 4 + 4
        assert await again.forget_old(2 * month) == 0
        left = await store.read(lambda tx: tx.all("SELECT id FROM bridge_messages ORDER BY id"))
        assert [row["id"] for row in left] == ["felt", "old1", "waits"]
        await store.close()
        assert (await bridge.send("homelab", "again", message_id="old1")).reason == "duplicate"
        await bridge.finish(ME, (await _take(bridge))["id"], Outcome.DONE, "there it is")
        (told,) = (await _pull(bridge, "homelab", cursor))["updates"]
        assert told["content"] == "there it is"
        await bridge.send("felt", "more", message_id="more")
        await bridge.finish(ME, (await _take(bridge, "felt"))["id"], Outcome.DONE, "more of it")
        assert [update["message_id"] for update in (await _pull(bridge, "felt", felt))["updates"]] == ["more"]


async def test_a_repeated_call_has_the_answer_that_an_earlier_version_stored(place: Place) -> None:
    stored = {"queued": True, "id": "m1", "target": "homelab"}
    async with _bridge(place) as bridge:
        key = CallKey.of("agent:me", "call-1", "send_message", {"target": "homelab"})
        await bridge._store.write(lambda tx: store_answer(tx, key, stored))
        with pytest.raises(AlreadyAnswered) as known:
            await bridge.send("homelab", "continue", key=key)
        assert known.value.result == stored
        assert await _texts(bridge, "homelab") == [], "it had its effect the first time"
