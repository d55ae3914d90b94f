"""Transcripts in the store keep the SDK's contract on every engine, and what levelling adds to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from claude_agent_sdk.testing import run_session_store_conformance
from claude_agent_sdk.types import SessionStore
from tests.contract.conftest import Place

from holdfast.agents.claude.transcripts.files import TranscriptFiles
from holdfast.agents.claude.transcripts.merge import lines_of
from holdfast.agents.claude.transcripts.queries import Entry
from holdfast.agents.claude.transcripts.store import TranscriptStore
from holdfast.agents.claude.transcripts.transcript_copy import TranscriptCopy, level
from holdfast.errors import StoreError
from holdfast.store import Store

KEY = {"project_key": "-a", "session_id": "s"}


def play(place: Place, scenario: Callable[[TranscriptStore], Awaitable[None]]) -> None:
    async def run() -> None:
        store = place.open()
        try:
            await scenario(TranscriptStore(store))
        finally:
            await store.close()

    asyncio.run(run())


def entry(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": name, **more}


def test_transcripts_pass_the_conformance_suite_of_the_sdk(place: Place) -> None:
    async def scenario() -> None:
        opened: list[Store] = []

        async def fresh() -> SessionStore:
            if place.engine == "sqlite":
                # One file has one daemon: each contract gets a file of its own.
                home = place.home / str(len(opened))
                home.mkdir()
                opened.append(replace(place, home=home).open())
            else:
                opened.append(place.open())
                await opened[-1].write(lambda tx: tx.run("DELETE FROM transcript_lines"))
            return cast(SessionStore, TranscriptStore(opened[-1]))

        await run_session_store_conformance(fresh)
        for store in opened:
            await store.close()

    asyncio.run(scenario())


def test_a_batch_that_is_repeated_takes_effect_once(place: Place) -> None:
    async def scenario(transcripts: TranscriptStore) -> None:
        batch = [entry("1"), entry("2")]
        await transcripts.append(KEY, batch)
        await transcripts.append(KEY, [*batch, entry("3")])
        assert await transcripts.load(KEY) == [entry("1"), entry("2"), entry("3")]

    play(place, scenario)


def test_any_text_an_agent_writes_comes_back_as_it_was(place: Place) -> None:
    async def scenario(transcripts: TranscriptStore) -> None:
        written = entry("1", message="NUL \0, half a pair \ud83d, ünïcode 日本, " + "x" * 300_000)
        await transcripts.append(KEY, [written])
        assert await transcripts.load(KEY) == [written]

    play(place, scenario)


def test_lines_that_are_held_for_an_answer_are_stored_with_it_or_before_the_next_ones(place: Place) -> None:
    async def scenario(transcripts: TranscriptStore) -> None:
        async def stored() -> list[str]:
            return [one["uuid"] for one in await transcripts.load(KEY) or []]

        copy = TranscriptCopy(transcripts, place.home / "projects" / "-a" / "s.jsonl")
        copy.holds = True
        await copy.append(KEY, [entry("a")])
        assert not await stored() and copy.appended == 1
        await copy.append(KEY, [entry("b")])
        assert await stored() == ["a", "b"] and copy.take() is None, "a long turn does not pile up in memory"
        await copy.append(KEY, [entry("c")])
        held = copy.take()
        assert held is not None
        await transcripts._store.write(held.store)
        await held.store_alone()  # as after a commit of which nobody knows whether it took effect
        await copy.append(KEY, [entry("d")])
        copy.holds = False
        await copy.append(KEY, [entry("e")])
        assert await stored() == ["a", "b", "c", "d", "e"]

    play(place, scenario)


def test_a_conversation_that_moved_lies_under_its_new_project_alone(place: Place) -> None:
    async def scenario(transcripts: TranscriptStore) -> None:
        await transcripts.append(KEY, [entry("1"), entry("2")])
        await transcripts.append({**KEY, "session_id": "other"}, [entry("x")])
        moved = {**KEY, "project_key": "-b"}
        await transcripts.put(moved, [entry("1"), entry("2"), entry("3")])
        assert await transcripts.load(KEY) is None
        assert await transcripts.load(moved) == [entry("1"), entry("2"), entry("3")]
        assert await transcripts.everywhere("s") == {"": [entry("1"), entry("2"), entry("3")]}
        assert await transcripts.everywhere("other") == {"": [entry("x")]}

    play(place, scenario)


def test_lines_are_put_in_order_and_nothing_is_kept_twice(place: Place) -> None:
    async def scenario(transcripts: TranscriptStore) -> None:
        await transcripts.append(KEY, [entry("1"), entry("3")])
        whole = [entry("1"), entry("2"), entry("3"), {"type": "mode"}, {"type": "mode"}]
        for _ in range(2):
            await transcripts.put(KEY, whole)
            assert await transcripts.load(KEY) == whole

    play(place, scenario)


class Interrupted(TranscriptStore):
    """A store whose daemon dies before the first line is put there."""

    async def put(self, key: Mapping[str, Any], entries: Sequence[Entry]) -> None:
        raise StoreError("The daemon was killed.")


def test_levelling_that_was_broken_off_is_completed_by_the_next(place: Place) -> None:
    async def scenario(transcripts: TranscriptStore) -> None:
        files = TranscriptFiles(place.home)
        files.write("-a", "s", "", lines_of([entry("1"), entry("3")]))
        files.write("-a", "s", "subagents/agent-1", lines_of([entry("x")]))
        await transcripts.append(KEY, [entry("1"), entry("2")])
        with pytest.raises(StoreError):
            await level(Interrupted(transcripts._store), files, "-a", "s")
        for _ in range(2):
            assert await level(transcripts, files, "-a", "s")
            assert await transcripts.load(KEY) == [entry("1"), entry("2"), entry("3")]
            assert [line.entry for line in files.read("s")[""]] == [entry("1"), entry("2"), entry("3")]
            assert await transcripts.load({**KEY, "subpath": "subagents/agent-1"}) == [entry("x")]
        assert not await level(transcripts, files, "-a", "unknown")

    play(place, scenario)


def test_a_forgotten_session_is_gone_under_every_project(place: Place) -> None:
    async def scenario(transcripts: TranscriptStore) -> None:
        await transcripts.append(KEY, [entry("1")])
        await transcripts.append({**KEY, "project_key": "-b", "subpath": "subagents/agent-1"}, [entry("2")])
        assert await transcripts.known("s")
        await transcripts.forget("s")
        assert not await transcripts.known("s")
        assert await transcripts.everywhere("s") == {}

    play(place, scenario)
