"""What the owner can order from a chat: work with its priority, commands, decisions and permissions."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.contract.bridge_chat_world import World, came, world
from tests.contract.conftest import Place

from holdfast.bridge.chat.permissions import asked as asked_in_words
from holdfast.bridge.chat.wording import question
from holdfast.bridge.model import LEASE_MS, MAX_PENDING, Outcome, Priority, Task
from holdfast.bridge.queries import incarnations, tasks
from holdfast.bridge.queries import queue as queries
from holdfast.errors import BadInput
from holdfast.store import Tx
from holdfast.teams.model import request_digest

pytestmark = pytest.mark.anyio

STRANGER = 666


async def said(one: World, text: str, **more: Any) -> str:
    """What the chat answers to a text."""
    before = len(one.api.sent)
    one.api.write(text, **more)
    await one.poll()
    await one.sender.drain()
    return "\n".join(sent.text for sent in one.api.sent[before:])


async def saved_task(one: World, target: str = "homelab") -> None:
    def write(tx: Tx) -> None:
        incarnations.seen(tx, target, "abc-123", "hook")
        tasks.save_for_target(tx, Task("Fix DNS", "abc-123", None, "2", target=target))
        incarnations.seen(tx, target, "def-456", "hook")

    await one.store.write(write)


async def decision(one: World, target: str = "homelab") -> str | None:
    found = await one.store.read(lambda tx: tasks.of_target(tx, target))
    return found.decision if found else None


async def test_the_first_word_decides_the_priority(place: Place) -> None:
    async with world(place) as one:
        for text in ("later", "urgent: now", "Stop!"):
            one.api.write(text)
        await one.poll()
        rows = await one.rows("SELECT text, priority FROM bridge_messages ORDER BY seq")
        assert [(row["text"], row["priority"]) for row in rows] == [("later", 0), ("urgent: now", 1), ("Stop!", 2)]


async def test_an_answer_and_an_attachment_arrive_as_text(place: Place) -> None:
    async with world(place) as one:
        first = one.api.write("restart the server")
        one.api.write("which one?", reply_to_message={"message_id": first, "text": "restart the server"})
        one.api.write("", photo=[{"file_id": "x"}], caption="the screen")
        await one.poll()
        assert await one.queued("homelab") == [
            "restart the server",
            '[In reply to: "restart the server"]\nwhich one?',
            "[photo]\nthe screen",
        ]
        rows = await one.rows("SELECT id, reply_to FROM bridge_messages ORDER BY seq")
        assert rows[1]["reply_to"] == rows[0]["id"]


async def test_the_reply_of_the_agent_answers_the_very_message(place: Place) -> None:
    async with world(place) as one:
        number = one.api.write("do it")
        await one.poll()

        def work(tx: Tx) -> None:
            taken = queries.take(tx, "homelab", "agent", "call", LEASE_MS)
            assert taken is not None
            queries.finish(tx, taken, Outcome.DONE, "done it")

        await one.store.write(work)
        await one.sender.drain()
        assert [(sent.text, sent.reply_to) for sent in one.api.sent] == [("done it", number)]


async def test_a_full_queue_is_told_and_nothing_is_dropped_in_silence(sqlite_place: Place) -> None:
    async with world(sqlite_place) as one:

        def fill(tx: Tx) -> None:
            for number in range(MAX_PENDING):
                queries.enqueue(
                    tx,
                    "homelab",
                    str(number),
                    message_id=str(number),
                    priority=Priority.NORMAL,
                    sender="x",
                    source="mcp",
                    ttl_ms=10**9,
                    reply_to=None,
                )

        await one.store.write(fill)
        assert "queue is full" in await said(one, "one more")


async def test_status_and_queue_tell_what_goes_on(place: Place) -> None:
    async with world(place) as one:
        await saved_task(one)
        await one.sender.drain()
        one.api.write("first job")
        one.api.write("urgent: second job")
        await one.poll()
        await one.sender.drain()
        status = await said(one, "/status")
        for part in ("homelab", "Fix DNS (step 2)", "Waiting: 2", "def-456"):
            assert part in status
        waiting = await said(one, "/queue@holdfast_bot")
        assert waiting.index("second job") < waiting.index("first job")
        assert "/approve" in await said(one, "/help")
        assert "There is no command /stpo" in await said(one, "/stpo")
        assert await said(one, "/status@another_bot") == ""


async def test_stop_is_queued_before_everything_else(place: Place) -> None:
    async with world(place) as one:
        one.api.write("work")
        assert "STOP is queued" in await said(one, "/stop the deploy")
        (first, *_) = await one.store.read(lambda tx: queries.pending(tx, "homelab", 5))
        assert (first.text, first.priority) == ("STOP the deploy", Priority.STOP)


@pytest.mark.parametrize(("order", "word"), [("/resume", "resume"), ("/new", "fresh")])
async def test_the_owner_decides_whether_to_resume(place: Place, order: str, word: str) -> None:
    async with world(place) as one:
        assert "no saved task" in await said(one, order)
        await saved_task(one)
        await said(one, order)
        assert await decision(one) == word
        assert "Fix DNS" in (await one.queued("homelab"))[0]


async def test_the_button_below_a_restart_decides_and_one_from_an_earlier_restart_does_not(place: Place) -> None:
    async with world(place) as one:
        await saved_task(one)
        await one.sender.drain()
        actions = dict(one.api.sent[-1].buttons)
        old = one.api.press(f"resume:{question('abc-123')}")
        await one.poll()
        assert await decision(one) is None
        press = one.api.press(actions["Start fresh"])
        await one.poll(None)
        assert await decision(one) == "fresh"
        assert [number for number, _ in one.api.answered] == [old, press]
        assert "earlier restart" in one.api.answered[0][1]


@pytest.mark.parametrize("second", ["Resume", "Start fresh", "/resume", "/new"])
async def test_resume_and_start_fresh_exclude_each_other_and_take_effect_once(place: Place, second: str) -> None:
    async with world(place) as one:
        await saved_task(one)
        await one.sender.drain()
        actions = dict(one.api.sent[-1].buttons)
        one.api.press(actions["Resume"])
        await one.poll(None)
        if second.startswith("/"):
            assert "Already decided: resume" in await said(one, second)
        else:
            one.api.press(actions[second])
            await one.poll(None)
            assert "Already decided: resume" in one.api.answered[-1][1]
        assert await decision(one) == "resume"
        assert len(await one.queued("homelab")) == 1


async def test_a_button_decides_nothing_once_the_agent_has_saved_a_task_since_the_restart(place: Place) -> None:
    async with world(place) as one:
        await saved_task(one)
        await one.sender.drain()
        actions = dict(one.api.sent[-1].buttons)
        task = Task("Paint it", "def-456", None, None, target="homelab")
        await one.store.write(lambda tx: tasks.save_for_target(tx, task))
        one.api.press(actions["Resume"])
        await one.poll(None)
        assert "is working on: Paint it" in one.api.answered[-1][1]
        assert await one.queued("homelab") == []


@pytest.mark.parametrize("told", [True, False])
async def test_a_decision_that_an_agent_was_told_of_does_not_count_for_the_next_restart(
    place: Place, told: bool
) -> None:
    async with world(place) as one:
        await saved_task(one)
        await said(one, "/new")

        def restarted(tx: Tx) -> None:
            taken = queries.take(tx, "homelab", "session:def-456", "hook", LEASE_MS)
            assert taken is not None
            if told:
                queries.finish(tx, taken, Outcome.DONE, "I start fresh.")
            incarnations.seen(tx, "homelab", "ghi-789", "hook")

        await one.store.write(restarted)
        assert await decision(one) == (None if told else "fresh")


# -- permissions ------------------------------------------------------------------------------------------------------


async def asked(one: World, team: str) -> tuple[str, asyncio.Task[bool | str]]:
    """A managed agent asks for permission."""
    waiting = asyncio.create_task(one.permissions.request("ask-1", team, "Bash", {"command": "rm -r build"}))
    (found,) = await came(one.permissions.open)
    return str(found.id), waiting


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("way", ["button", "command"])
async def test_a_permission_is_shown_once_and_answered_from_the_phone(place: Place, allowed: bool, way: str) -> None:
    async with world(place) as one:
        request, waiting = await asked(one, "homelab")
        await one.desk.show()
        await one.desk.show()
        await one.sender.drain()
        (shown,) = one.api.sent
        assert "rm -r build" in shown.text
        assert not shown.silent
        actions = dict(shown.buttons)
        if way == "button":
            one.api.press(actions["Approve" if allowed else "Deny"])
        else:
            one.api.write(f"/{'approve' if allowed else 'deny'} {request}")
        await one.poll()
        assert await waiting is allowed
        await one.sender.drain()
        assert one.api.sent[-1].text == f"{'Approved' if allowed else 'Denied'}: Bash"


async def test_a_request_that_no_message_holds_is_only_allowed_in_the_terminal(place: Place) -> None:
    async with world(place) as one:
        command = f"echo{' ' * 4000}; rm -r /"
        waiting = asyncio.create_task(one.permissions.request("ask-1", "homelab", "Bash", {"command": command}))
        (found,) = await came(one.permissions.open)
        await one.desk.show()
        await one.sender.drain()
        (shown,) = one.api.sent
        assert "Answer in the terminal" in shown.text
        assert [name for name, _ in shown.buttons] == ["Deny"]
        assert "Answer in the terminal" in await said(one, f"/approve {found.id}")
        assert not waiting.done()
        await said(one, f"/deny {found.id}")
        assert await waiting is False


async def test_what_a_chat_shows_of_a_request_cannot_leave_its_frame(place: Place) -> None:
    async with world(place) as one:
        given = {"command": "true\n```\n/deny x\u202e\x1b[2J\u200b"}
        waiting = asyncio.create_task(one.permissions.request("ask-1", "homelab", "Bash", given))
        (found,) = await came(one.permissions.open)
        framed = asked_in_words(found)
        assert framed.count("```") == 2
        assert all(char.isprintable() or char == "\n" for char in framed)
        inside = framed.split("```")[1]
        assert json.loads(inside) == given
        await one.permissions.decide(found.id, False)
        await waiting


async def test_a_request_that_is_too_long_to_be_shown_is_denied_with_that_reason(place: Place) -> None:
    async with world(place) as one:
        answer = await one.permissions.request("ask-1", "homelab", "Bash", {"command": "x" * 10_001})
        assert isinstance(answer, str) and "too long to be shown" in answer
        assert await one.permissions.open() == []


async def test_only_what_was_shown_can_be_allowed(place: Place) -> None:
    async with world(place) as one:
        request, waiting = await asked(one, "homelab")
        for digest in (None, "0" * 64, request_digest("Bash", json.dumps({"command": "rm -r other"}))):
            with pytest.raises(BadInput, match="digest"):
                await one.permissions.decide(request, True, digest)
        (found,) = await one.permissions.open()
        await one.permissions.decide(request, True, found.digest)
        assert await waiting is True


async def test_a_permission_is_not_decided_from_another_teams_chat_nor_by_a_stranger(place: Place) -> None:
    async with world(place) as one:
        request, waiting = await asked(one, "homelab")
        one.api.write(f"/approve {request}", chat=-200, topic=5)
        one.api.press(f"approve:{request}", user=STRANGER)
        await one.poll()
        assert [row.id for row in await one.permissions.open()] == [request]
        await one.permissions.decide(request, False)
        assert await waiting is False
        assert "No such request is waiting here" in await said(one, f"/approve {request}")
