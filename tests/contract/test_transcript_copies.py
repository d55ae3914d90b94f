"""A transcript goes to the store and from there to another machine, through the agent seam, and loses nothing."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.contract.conftest import Place

from holdfast.agents.claude.transcripts import copying
from holdfast.agents.registry import transcripts_of
from holdfast.store import Store

SESSION = "5f0c9a1e-0000-4000-8000-000000000001"
BEGAN = 1_767_225_600


def play(place: Place, scenario: Callable[[Store], Awaitable[None]]) -> None:
    async def run() -> None:
        store = place.open()
        try:
            await scenario(store)
        finally:
            await store.close()

    asyncio.run(run())


def folder_on(machine: Path) -> Path:
    folder = machine / "projects" / "-p"
    folder.mkdir(parents=True)
    return folder


def write(path: Path, *names: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    times = (f"2026-01-01T00:00:0{number}.000Z" for number in range(len(names)))
    lines = [{"type": "user", "uuid": name, "timestamp": at} for name, at in zip(names, times, strict=True)]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return path


def test_a_transcript_with_its_subagents_arrives_as_it_was_and_with_its_time(place: Place, tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        here, there = folder_on(tmp_path / "here"), folder_on(tmp_path / "there")
        main = write(here / f"{SESSION}.jsonl", "1", "2")
        inside = write(here / SESSION / "agent-a.jsonl", "3")
        await transcripts_of().copy_to_store(store, SESSION, main)
        assert await transcripts_of().copy_from_store(store, SESSION, there)
        for path in (main, inside):
            assert (there / path.relative_to(here)).read_bytes() == path.read_bytes()
        assert (there / main.name).stat().st_mtime == BEGAN + 1, "by it the agent finds its latest session"

    play(place, scenario)


@pytest.mark.parametrize(
    ("ours", "arrives", "after"),
    [
        (["1"], True, ["1", "2", "3"]),
        (["1", "2", "3"], True, ["1", "2", "3"]),
        (["1", "2", "3", "4"], True, ["1", "2", "3", "4"]),
        (["1", "other"], False, ["1", "other"]),
    ],
    ids=["behind", "level", "ahead", "forked"],
)
def test_a_file_that_is_there_already_only_grows(
    ours: list[str], arrives: bool, after: list[str], place: Place, tmp_path: Path
) -> None:
    async def scenario(store: Store) -> None:
        here, there = folder_on(tmp_path / "here"), folder_on(tmp_path / "there")
        await transcripts_of().copy_to_store(store, SESSION, write(here / f"{SESSION}.jsonl", "1", "2", "3"))
        mine = write(there / f"{SESSION}.jsonl", *ours)
        assert await transcripts_of().copy_from_store(store, SESSION, there) is arrives
        assert [json.loads(line)["uuid"] for line in mine.read_text().splitlines()] == after

    play(place, scenario)


def test_a_transcript_that_is_too_long_to_merge_in_memory_is_not_copied_to_the_store(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(store: Store) -> None:
        here, there = folder_on(tmp_path / "here"), folder_on(tmp_path / "there")
        main = write(here / f"{SESSION}.jsonl", "1", "2")
        with monkeypatch.context() as patch:
            patch.setattr(copying, "MAX_TRANSCRIPT_BYTES", os.path.getsize(main) - 1)
            await transcripts_of().copy_to_store(store, SESSION, main)
        assert not await transcripts_of().copy_from_store(store, SESSION, there), "nothing was copied"

    play(place, scenario)
