"""Search finds what a person would call the same words, alike on both engines, and says what to relax."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process.clients import Session, Way
from tests.shared_daemon import Guest

pytestmark = pytest.mark.anyio

STDIO = Way("stdio", "legacy")
THOUGHTS = [
    "我们的数据库很大，需要分区。",
    "このセッションはデータベースを使います。",
    "Le café du résumé était naïve; Größe zählt.",
    "the cache is stale because the lock was never released",
    "the lock is released, the cache was never stale",
    "ข้อมูลอยู่ในฐานข้อมูลหลัก",
]


async def _found(client: Session, query: str) -> list[int]:
    reply = await client.call("session", operation="search", query=query)
    return sorted(hit["thoughtNumber"] for hit in reply["results"] if "thoughtNumber" in hit)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("数据库", [1]),
        ("据库", [1]),
        ("库数", []),
        ("分区", [1]),
        ("データベース", [2]),
        ("ベース", [2]),
        ("セッション 使い", [2]),
        ("cafe", [3]),
        ("CAFÉ resume", [3]),
        ("RÉSUMÉ", [3]),
        ("grosse", [3]),
        ("cache stale", [4, 5]),
        ('"cache is stale"', [4]),
        ('"never released"', [4]),
        ('"the lock" "never stale"', [5]),
        ('"lock the"', []),
        ("ฐานข้อมูล", [6]),
    ],
)
async def test_words_are_found_inside_a_run_in_quotes_and_whatever_their_accents(
    shared: Guest, project: Path, query: str, numbers: list[int]
) -> None:
    async with STDIO.connect(shared, cwd=str(project)) as client:
        await client.init("start_new", title="Search")
        for text in THOUGHTS:
            await client.think(text)
        assert await _found(client, query) == numbers
        if numbers:
            hits = (await client.call("session", operation="search", query=query))["results"]
            assert all("**" in hit["snippet"] for hit in hits)


async def test_titles_and_tags_are_found_without_their_accents(shared: Guest, project: Path) -> None:
    async with STDIO.connect(shared, cwd=str(project)) as client:
        made = (await client.init("start_new", title="Überarbeitung 数据库迁移", tags=["déjà-vu"]))["session"]["id"]
        for query in ("uberarbeitung", "数据", "deja", '"deja vu"'):
            results = (await client.call("session", operation="search", query=query))["results"]
            assert [hit["sessionId"] for hit in results] == [made], query


async def test_a_search_that_finds_nothing_says_which_looser_one_does(
    shared: Guest, project: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with STDIO.connect(shared, cwd=str(elsewhere)) as client:
        await client.init("start_new", title="There")
        await client.think(f"only there {shared.mark}")
    async with STDIO.connect(shared, cwd=str(project)) as client:
        await client.init("start_new", title="Here")
        await client.think("apples and pears")

        async def told(query: str) -> str:
            reply = await client.call("session", operation="search", query=query)
            assert reply["results"] == []
            return str(reply["message"])

        assert 'scope "all"' in await told(shared.mark)
        assert "leave the quotes out" in await told('"pears and apples"')
        alone = await told("apples bananas")
        assert '"apples"' in alone
        assert '"bananas"' not in alone
        assert "no part of it is found" in await told("qqqqqq zzzzzz")
        found = await client.call("session", operation="search", query="apples")
        assert "message" not in found
