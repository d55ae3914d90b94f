"""The mark beside the store names what the store itself cannot miss: its newest changes, gone as a whole."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from pathlib import Path

import pytest
from tests.contract.conftest import Place
from tests.contract.reasoning_world import DAY, World, agent, living

from holdfast.records.service import Records
from holdfast.store import high_water, register
from holdfast.store.high_water import HighWater
from holdfast.store.loss_notices import LossNotices


def _mark(world: World) -> HighWater:
    """As a daemon that starts anew keeps it."""
    return HighWater(world.place.home, world.store)


async def _go_back(world: World, session_id: str, count: int) -> None:
    """Put the store back to where a session had so many thoughts, as an older copy of everything would be."""
    (head,) = await world.rows(
        "SELECT hash FROM thoughts WHERE session_id = :id AND number = :number", id=session_id, number=count
    )
    (seq,) = await world.rows(
        "SELECT min(seq) - 1 AS seq FROM events WHERE subject = :id AND seq > :first", id=session_id, first=count + 1
    )
    await world.run("DELETE FROM thoughts WHERE session_id = :id AND number > :count", id=session_id, count=count)
    await world.run("DELETE FROM events WHERE seq > :seq", seq=seq["seq"])
    await world.run(
        "UPDATE sessions SET thought_count = :count, head_hash = :head WHERE id = :id",
        count=count,
        head=head["hash"],
        id=session_id,
    )
    await world.run(
        "UPDATE event_head SET seq = :seq, heads_sum = :heads", seq=seq["seq"], heads=register.total([head["hash"]])
    )


def test_an_older_copy_of_the_store_is_noticed_and_its_sessions_are_named(place: Place) -> None:
    async def scenario() -> None:
        async with living(place) as world:
            for number in range(6):
                session = (await world.think(agent("a"), f"thought {number}"))["sessionId"]
            await _mark(world).note()
            assert await _mark(world).lost() == []
            await _go_back(world, session, 2)
            lost = await _mark(world).lost()
            assert lost[0].startswith("the newest changes, events ")
            assert lost[1] == f"session {session}: thoughts 3 to 6 are missing"

    asyncio.run(scenario())


def test_what_comes_after_the_mark_and_what_is_forgotten_is_no_loss(place: Place) -> None:
    async def scenario() -> None:
        async with living(place) as world:
            first = (await world.think(agent("a"), "one"))["sessionId"]
            second = (await world.think(agent("b"), "one"))["sessionId"]
            await _mark(world).note()
            await world.think(agent("a"), "two")
            await world.reasoning.forget_session(second)
            assert await world.store.read(lambda tx: list(_mark(world).check(tx))) == []
            await world.run("DELETE FROM thoughts WHERE session_id = :id", id=first)
            await world.run("DELETE FROM sessions WHERE id = :id", id=first)
            (found,) = await world.store.read(lambda tx: list(_mark(world).check(tx)))
            assert found.text == f"session {first}: missing; it had one thought"

    asyncio.run(scenario())


def test_a_mark_whose_last_line_was_cut_off_counts_up_to_the_line_before(place: Place) -> None:
    async def scenario() -> None:
        async with living(place) as world:
            session = (await world.think(agent("a"), "one"))["sessionId"]
            mark = _mark(world)
            await mark.note()
            await world.think(agent("a"), "two")
            await mark.note()
            (file,) = world.place.home.glob("high-water*.jsonl")
            text = file.read_bytes()
            file.write_bytes(text[:-20])
            assert high_water.read_mark(file).sessions[session][0] == 1
            await _mark(world).note()
            assert high_water.read_mark(file).sessions[session][0] == 2
            assert await _mark(world).lost() == []

    asyncio.run(scenario())


def test_a_mark_that_a_full_disk_cut_off_is_written_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel writes what fits and says how much that was, without an error."""
    write = os.write

    def write_what_fits(descriptor: int, data: bytes) -> int:
        monkeypatch.setattr(os, "write", full)
        return write(descriptor, data[:-20])

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def scenario() -> None:
        async with living(place) as world:
            session = (await world.think(agent("a"), "one"))["sessionId"]
            mark = _mark(world)
            monkeypatch.setattr(os, "write", write_what_fits)
            with pytest.raises(OSError, match="No space left"):
                await mark.note()
            monkeypatch.setattr(os, "write", write)
            (file,) = world.place.home.glob("high-water*.jsonl")
            assert session not in high_water.read_mark(file).sessions
            await mark.note()
            assert high_water.read_mark(file).sessions[session][0] == 1

    asyncio.run(scenario())


def test_a_mark_that_grows_is_written_anew_with_the_same_content(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(high_water, "MAX_FILE_BYTES", 700)

    async def scenario() -> None:
        async with living(sqlite_place) as world:
            mark = _mark(world)
            for number in range(12):
                session = (await world.think(agent(f"a{number % 3}"), f"thought {number}"))["sessionId"]
                await mark.note()
            file = world.place.home / "high-water.jsonl"
            assert file.stat().st_size < 2_000
            assert file.stat().st_mode & 0o777 == 0o600
            assert len(high_water.read_mark(file).sessions) == 3
            assert high_water.read_mark(file).sessions[session][0] == 4

    asyncio.run(scenario())


def test_nothing_is_written_while_nothing_changes(place: Place) -> None:
    async def scenario() -> None:
        async with living(place) as world:
            await world.think(agent("a"), "one")
            mark = _mark(world)
            await mark.note()
            (file,) = world.place.home.glob("high-water*.jsonl")
            before = file.read_bytes()
            for _ in range(3):
                await mark.note()
            await _mark(world).note()
            assert file.read_bytes() == before
            epoch, seq, sessions = json.loads(before)
            assert len(epoch) == 32 and seq > 0 and len(sessions) == 1

    asyncio.run(scenario())


def _dailies(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "backups").glob("daily-*.db"))


def test_a_backup_is_made_every_day_and_seven_are_kept(sqlite_place: Place) -> None:
    async def scenario() -> None:
        async with living(sqlite_place) as world:
            await world.think(agent("a"), "one")
            now = 1_800_000_000_000
            records = Records(world.store, sqlite_place.home, lambda: now)
            await records.daily_backup()
            await records.daily_backup()
            assert len(_dailies(sqlite_place.home)) == 1
            for _ in range(9):
                now += DAY
                await records.daily_backup()
            kept = _dailies(sqlite_place.home)
            assert len(kept) == 7

            # A store that does not verify is no reason to give up a backup that does.
            await world.run("UPDATE thoughts SET content = 'changed'")
            now += DAY
            await records.daily_backup()
            assert _dailies(sqlite_place.home) == kept
            (notice,) = LossNotices(sqlite_place.home).open()
            assert "thought 1 was changed" in notice.lost[0]

    asyncio.run(scenario())
