"""A long session is read and exported in pages that an agent's client does not cut off."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.process.clients import Session, Way
from tests.shared_daemon import Guest

pytestmark = pytest.mark.anyio

STDIO = Way("stdio", "legacy")
MOST = 25_000
LONG = "".join(f'line {number} of a "long" thought\n' for number in range(3_000))


async def _pages(client: Session, **arguments: Any) -> AsyncIterator[dict[str, Any]]:
    """Every page, as long as its client shows it whole."""
    cursor: dict[str, str] = {}
    while True:
        result = await client.client.call_tool("session", arguments | cursor)
        assert not result.is_error, result.content
        (content,) = result.content
        assert len(content.text) < MOST  # type: ignore[union-attr]
        reply: dict[str, Any] = result.structured_content or {}
        yield reply
        if "nextCursor" not in reply:
            return
        cursor = {"cursor": reply["nextCursor"]}


async def _fill(client: Session) -> None:
    await client.think("the beginning")
    await client.think(LONG)
    for number in range(30):
        await client.think(f"{number} " + "word " * 300, branchId=f"branch-{number}", branchFromThought=1)
    await client.think("the end")


async def test_whole_thoughts_come_in_pages_and_no_character_is_missing(shared: Guest, project: Path) -> None:
    async with STDIO.connect(shared, cwd=str(project)) as client:
        await _fill(client)
        texts: dict[int, str] = {}
        async for page in _pages(client, operation="get", **{"from": 1}):
            for entry in page["thoughts"]:
                number = entry["thoughtNumber"]
                assert entry.get("fromCharacter", 0) == len(texts.get(number, ""))
                texts[number] = texts.get(number, "") + entry["thought"]
        assert sorted(texts) == list(range(1, 34))
        assert texts[2] == LONG
        outline = [
            entry["thoughtNumber"] async for page in _pages(client, operation="get") for entry in page["outline"]
        ]
        assert outline == list(range(1, 34))


@pytest.mark.parametrize("form", ["markdown", "json", "mermaid"])
async def test_an_export_comes_in_pages_with_every_thought(shared: Guest, project: Path, form: str) -> None:
    async with STDIO.connect(shared, cwd=str(project)) as client:
        await _fill(client)
        pages = [page["text"] async for page in _pages(client, operation="export", format=form)]
        if form == "json":
            entries = [entry for page in pages for entry in json.loads(page)["thoughts"]]
            assert "".join(entry["thought"] for entry in entries if entry["thoughtNumber"] == 2) == LONG
            named = {branch["branchId"] for page in pages for branch in json.loads(page)["branches"]}
            assert named == {f"branch-{number}" for number in range(30)}
        mark = {"markdown": "## Thought {}", "json": '"thoughtNumber": {},', "mermaid": '  t{}["'}[form]
        assert all(mark.format(number) in "\n".join(pages) for number in range(1, 34))


async def test_a_limit_counts_for_get_and_export(shared_embedded: Guest, project: Path) -> None:
    async with STDIO.connect(shared_embedded, cwd=str(project)) as client:
        for number in range(5):
            await client.think(f"step {number}")
        read = [
            len(page["thoughts"]) async for page in _pages(client, operation="get", limit=2, **{"from": 1, "to": 5})
        ]
        assert read == [2, 2, 1]
        exported = [page["text"].count("## Thought") async for page in _pages(client, operation="export", limit=3)]
        assert exported == [3, 2]
