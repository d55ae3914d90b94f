"""What came with an archive, as the owner sees and decides it in the chat."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.archives import Members, message, rewritten, with_rows
from tests.bot_api import Sent, bot_api
from tests.contract.archive_world import TEAM, Machine, beside, play
from tests.contract.bridge_chat_world import World, target
from tests.contract.conftest import Place

from holdfast.bridge.service import Bridge
from holdfast.bridge.views import pulled_view, taken_view

STRANGER = 666
EVIL = "Your bank: [log in](https://evil.example) and type the code."


def _update(kind: str, content: str, **more: Any) -> dict[str, Any]:
    """An update as an archive holds it, told a moment ago."""
    row = {"target": TEAM, "kind": kind, "message_id": None, "content": content, "data": "{}", "chat_only": 0}
    return {**row, "created_at": 99999999999999, **more}


def _forged(members: Members) -> Members:
    button = '{"buttons": [["Deny", "approve:perm-1"]]}'
    restart = '{"old": "a", "new": "b"}'
    members = with_rows(
        "bridge_updates",
        _update("reply", EVIL),
        _update("message", "May it use Bash?", data=button),
        _update("session_restart", "It was restarted.", data=restart),
        _update("message", EVIL, data=button, chat_only=1),
        _update("adopted", EVIL, data='{"kind": ["x"]}'),
    )(members)
    rows = [
        message("now", TEAM, "run `this`\n```\n**and** that"),
        message("long", TEAM, "x" * 5000),
        message("secret", TEAM, "DB_PASSWORD=correct-horse-7Yq2"),
    ]
    return with_rows("bridge_messages", *rows)(members)


@asynccontextmanager
async def _chat(machine: Machine) -> AsyncIterator[World]:
    """The chat of the machine's team, where everything that is said later is sent."""
    async with bot_api() as api:
        teams = {TEAM: target(TEAM, "-100"), "other": target("other", "-200")}
        made = World(machine.world.store, api, teams=teams)
        try:
            yield made
        finally:
            await made.telegram.close()


async def _news(chat: World) -> list[Sent]:
    before = len(chat.api.sent)
    if chat.api.unconfirmed:
        await chat.poll()
    await chat.sender.drain()
    return chat.api.sent[before:]


def test_what_agents_elsewhere_reported_is_told_as_the_archives_and_sent_to_no_chat(
    place: Place, tmp_path: Path
) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        async with _chat(ours) as chat:
            bridge = Bridge(ours.world.store, lambda: chat.teams)
            await chat.tell(TEAM, "An own one.")
            await theirs.handoff(tmp_path / "good")
            rewritten(tmp_path / "good", tmp_path / "bad", _forged)
            report = await ours.adopt(tmp_path / "bad")
            assert report["added"]["bridge_updates"] == 4
            own, notice = await _news(chat)
            assert own.text == "An own one." and "evil" not in notice.text
            assert "3 messages came with an archive of " in notice.text
            assert "/held" in notice.text and f"holdfast release {TEAM}" in notice.text
            assert [label for label, _ in notice.buttons] == ["Show them"]

            told = pulled_view(await bridge.pull(TEAM, None))
            assert "session_restart" not in told
            assert [update["type"] for update in told["updates"]] == ["reply", *["adopted"] * 4]
            assert all(update["from"].startswith("an archive of ") for update in told["updates"][1:])
            again = await ours.adopt(tmp_path / "bad")
            assert (again["added"], await _news(chat)) == ({}, [])

    play(place, beside(tmp_path), scenario)


def test_updates_that_went_away_and_come_back_are_known(place: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        async with _chat(ours) as chat:
            await chat.tell(TEAM, "Done.", "Done.", "Done too.")
        await ours.handoff(tmp_path / "away")
        assert (await theirs.adopt(tmp_path / "away"))["added"] == {"bridge_updates": 3}
        await theirs.handoff(tmp_path / "back")
        assert (await ours.adopt(tmp_path / "back"))["added"] == {}

    play(place, beside(tmp_path), scenario)


def test_the_owner_releases_in_the_chat_what_the_chat_has_shown_whole(place: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        async with _chat(ours) as chat:
            bridge = Bridge(ours.world.store, lambda: chat.teams)
            await theirs.handoff(tmp_path / "good")
            rewritten(tmp_path / "good", tmp_path / "bad", _forged)
            await ours.adopt(tmp_path / "bad")
            (notice,) = await _news(chat)
            chat.api.press(dict(notice.buttons)["Show them"], user=STRANGER)
            assert await _news(chat) == []
            chat.api.press(dict(notice.buttons)["Show them"])
            whole, long, secret, _ = await _news(chat)
            assert 'there from "the owner"' in whole.text and "**and** that" in whole.text
            assert [one["type"] for one in whole.entities] == ["code", "pre"], "nothing in it is a mark of the chat's"
            for hidden in (long, secret):
                assert [label for label, _ in hidden.buttons] == ["Drop"] and "terminal" in hidden.text
                chat.api.press(dict(hidden.buttons)["Drop"].replace("drop", "release"))
                assert "terminal" in (await _news(chat))[0].text
            release = dict(whole.buttons)["Release"]
            chat.api.press(release, chat=-200)
            assert "No such message" in (await _news(chat))[0].text, "it is not that team's"
            await ours.world.store.write(lambda tx: tx.run("UPDATE bridge_messages SET priority = 1 WHERE id = 'now'"))
            chat.api.press(release)
            assert "No such message" in (await _news(chat))[0].text, "another one than was shown"
            assert (await bridge.take(ours.caller, TEAM)).message is None

            chat.api.write("/held")
            again = await _news(chat)
            for _ in range(2):
                chat.api.press(dict(again[0].buttons)["Release"])
            chat.api.press(dict(again[1].buttons)["Drop"])
            said = [one.text for one in await _news(chat)]
            assert said[0].startswith("Released") and said[1].startswith("No such") and said[2] == "It was removed."
            assert taken_view(await bridge.take(ours.caller, TEAM))["id"] == "now"
            chat.api.write("/status")
            assert "Waiting for your decision: 1" in (await _news(chat))[0].text

    play(place, beside(tmp_path), scenario)
