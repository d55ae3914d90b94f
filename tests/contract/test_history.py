"""Conversations imported from transcripts: read once, redacted, found by their words on both engines."""

from __future__ import annotations

import asyncio
import json
import os
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.contract.conftest import Place

from holdfast.agents.claude.transcripts import batches as files
from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.capability import Progress
from holdfast.errors import BadInput
from holdfast.history.commands import commands
from holdfast.history.model import Scanned
from holdfast.history.search import scan
from holdfast.history.service import History
from holdfast.history.status_line import StatusLine
from holdfast.history.views import scanned_view
from holdfast.identity.project import RootSource, locate
from holdfast.reasoning.queries import projects as project_queries
from holdfast.store import Row, Store
from holdfast.teams.team import Team

TALK = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
NOON = "2026-01-31T12:00:00.000Z"


def quiet(share: float, message: str) -> None:
    """Progress that nobody watches."""


def said(text: str, cwd: str, *, speaker: str = "user") -> str:
    message = {"role": speaker, "content": [{"type": "text", "text": text}]}
    return json.dumps({"type": speaker, "cwd": cwd, "timestamp": NOON, "message": message}) + "\n"


def failed(text: str, cwd: str) -> str:
    block = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": text}
    entry = {"type": "user", "cwd": cwd, "timestamp": NOON, "message": {"role": "user", "content": [block]}}
    return json.dumps(entry) + "\n"


@dataclass
class Library:
    """A store, and an agent's transcripts beside it."""

    store: Store
    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "claude"

    async def command(self, name: str, args: dict[str, Any], progress: Progress = quiet) -> dict[str, Any]:
        run = {one.name: one.run for one in commands(History(self.store, "here"))}[name]
        return await run(args, progress)

    def project(self, name: str = "shop") -> Path:
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return path

    def transcript(self, project: Path, session_id: str = TALK) -> Path:
        path = self.config / "projects" / project_key(project) / f"{session_id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, project: Path, *lines: str, session_id: str = TALK) -> Path:
        path = self.transcript(project, session_id)
        with path.open("a") as file:
            file.writelines(lines)
        return path

    async def take(self, project: Path | None = None) -> dict[str, Any]:
        args = {"config": str(self.config), "project": str(project) if project else None}
        return await self.command("history-import", args)

    async def find(self, query: str, project: Path | None = None, limit: int = 10) -> list[dict[str, Any]]:
        args = {"query": query, "project": str(project) if project else None, "limit": limit}
        answer = await self.command("history-find", {**args, "config": str(self.config)})
        return list(answer["results"])

    async def recovered(self, root: str, occasion: str, what: str, at: int) -> None:
        await self.store.write(
            lambda tx: tx.run(
                "INSERT INTO recoveries (root, session_id, occasion, what, at)"
                " VALUES (:root, 's', :occasion, :what, :at)",
                root=root,
                occasion=occasion,
                what=what,
                at=at,
            )
        )

    async def rows(self, sql: str) -> list[Row]:
        return await self.store.read(lambda tx: tx.all(sql))


def play(place: Place, scenario: Callable[[Library], Awaitable[None]]) -> None:
    async def run() -> None:
        store = place.open()
        try:
            await scenario(Library(store, place.home))
        finally:
            await store.close()

    asyncio.run(run())


def test_an_error_is_found_with_its_project_date_line_and_resume_command(place: Place) -> None:
    async def scenario(library: Library) -> None:
        shop = library.project("my shop")
        library.write(shop, said("Please fix it", str(shop)), failed("boom\nTypeError: till.drawer is undefined\n", ""))
        library.write(library.project("bank"), said("Count the money", "/bank"), session_id=OTHER)
        await library.take()
        (hit,) = await library.find("TypeError: till.drawer")
        assert (hit["project"], hit["date"], hit["role"]) == (str(shop), "2026-01-31 12:00", "error")
        assert hit["line"] == "TypeError: till.drawer is undefined"
        assert hit["resume"] == f"cd '{shop}' && claude --resume {TALK}"
        assert await library.find("TypeError", library.project("bank")) == []
        assert [hit["session"] for hit in await library.find("mon")] == [OTHER]
        assert await library.find("nowhere to be found") == []

    play(place, scenario)


def test_importing_again_reads_only_what_is_new_and_a_half_line_not_at_all(place: Place) -> None:
    async def scenario(library: Library) -> None:
        shop = library.project()
        half = said("The second drawer", str(shop))
        path = library.write(shop, said("The first drawer", str(shop)), half[:30])
        assert (await library.take())["passages"] == 1
        again = await library.take()
        assert (again["found"], again["passages"]) == (1, 0)
        with path.open("a") as file:
            file.write(half[30:])
        assert (await library.take())["passages"] == 1
        (hit,) = await library.find("drawer")
        assert hit["more"] == 1
        assert len(await library.rows("SELECT * FROM history_lines")) == 2

    play(place, scenario)


def test_a_file_that_was_replaced_is_read_anew(place: Place) -> None:
    async def scenario(library: Library) -> None:
        shop = library.project()
        path = library.write(shop, said("An old umbrella", str(shop)))
        await library.take()
        path.write_text(said("A completely different conversation about boats", str(shop)))
        await library.take()
        assert await library.find("umbrella") == []
        assert len(await library.find("boats")) == 1

    play(place, scenario)


def test_an_import_that_was_broken_off_goes_on_where_it_ended(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BATCH_BYTES", 1)

    def stop_at(count: int) -> Callable[[float, str], None]:
        calls = iter(range(count))

        def progress(share: float, message: str) -> None:
            if next(calls, None) is None:
                raise KeyboardInterrupt

        return progress

    async def scenario(library: Library) -> None:
        shop = library.project()
        for number, name in enumerate((TALK, OTHER)):
            library.write(shop, *[said(f"word{number}x{n}", str(shop)) for n in range(3)], session_id=name)
        args = {"config": str(library.config), "project": None}
        with pytest.raises(KeyboardInterrupt):
            await library.command("history-import", args, stop_at(1))
        assert len(await library.rows("SELECT * FROM history_lines")) == 3
        assert (await library.take())["passages"] == 3
        assert len(await library.rows("SELECT * FROM history_lines")) == 6

    play(place, scenario)


def test_secrets_are_taken_out_before_anything_is_kept(place: Place) -> None:
    async def scenario(library: Library) -> None:
        shop, secret = library.project(), "sk-ant-" + "api03-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"
        library.write(shop, said(f"export ANTHROPIC_API_KEY={secret} and go", str(shop)))
        await library.take()
        (row,) = await library.rows("SELECT content FROM history_lines")
        assert secret not in row["content"]
        assert "go" in row["content"]
        for before in (11_990, 20_000, 50_000):
            library.write(shop, said(f"{'x ' * (before // 2)} TOKEN={secret} {'y ' * 60_000} the end", str(shop)))
        await library.take()
        rows = await library.rows("SELECT content FROM history_lines")
        assert not any(secret[:20] in row["content"] or secret[-12:] in row["content"] for row in rows)
        assert sum(row["content"].endswith("the end") and len(row["content"]) <= 20_010 for row in rows) == 3

    play(place, scenario)


def test_what_is_searched_for_is_no_query_language(place: Place) -> None:
    async def scenario(library: Library) -> None:
        shop = library.project()
        library.write(shop, said("a (b) OR \"c\" NEAR/2 'd' & e | f:* !g", str(shop)))
        await library.take()
        for query in ('"c" NEAR/2', "b) OR (", "'d' & e", "f:*", "!g", "a -- b"):
            assert len(await library.find(query)) == 1, query
        with pytest.raises(BadInput, match="holds no word"):
            await library.find("!!!")
        with pytest.raises(BadInput, match="limit"):
            await library.find("a", limit=0)

    play(place, scenario)


def test_any_line_at_all_is_survived(place: Place) -> None:
    async def scenario(library: Library) -> None:
        shop = library.project()
        odd = [
            "no json\n",
            "[]\n",
            "{}\n",
            '{"type":"user","message":null}\n',
            '{"type":"user","message":{"content":[1,{"type":"tool_use","input":[1]},{"type":"text","text":7}]}}\n',
            json.dumps({"type": "user", "message": {"content": "NUL \0 half \ud83d drawer"}}) + "\n",
            '{"type":"assistant","timestamp":"yesterday","message":{"content":"drawer again"}}\n',
        ]
        path = library.write(shop, *odd)
        with path.open("ab") as file:
            file.write(b"\xff\xfe{\n")
        assert (await library.take())["passages"] == 2
        (hit,) = await library.find("drawer")
        assert (hit["more"], hit["date"]) == (1, "")

    play(place, scenario)


def test_a_transcript_of_somebody_hostile_takes_neither_memory_nor_time(sqlite_place: Place) -> None:
    async def scenario(library: Library) -> None:
        shop = library.project()
        bomb = '{"type":"user","message":{"content":[' + "[]," * 2_000_000 + '{"type":"text","text":"drawer bomb"}]}}\n'
        library.write(shop, said("A drawer", str(shop)), bomb, said("Another drawer", str(shop)))
        holes = library.write(shop, said("A drawer full of holes", str(shop)), session_id=OTHER)
        os.truncate(holes, 2**40)
        beside = library.transcript(shop).with_suffix("")
        (library.folder / "elsewhere").mkdir()
        (library.folder / "elsewhere" / "x.jsonl").write_text(said("A drawer elsewhere", str(shop)))
        beside.symlink_to(library.folder / "elsewhere")
        tracemalloc.start()
        try:
            taken = await library.take()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert (taken["passages"], taken["unreadable"]) == (2, 1)
        assert peak < 64 * 1024 * 1024

    play(sqlite_place, scenario)


def test_a_conversation_from_another_machine_belongs_to_the_project_it_lies_in(place: Place) -> None:
    async def scenario(library: Library) -> None:
        shop = library.project()
        root = locate(str(shop), RootSource.ARGUMENT)
        await library.store.write(lambda tx: project_queries.know(tx, root))
        library.write(shop, said("The drawer", "/home/other/shop"))
        await library.take()
        (hit,) = await library.find("drawer")
        assert hit["project"] == str(shop)

    play(place, scenario)


def test_a_directory_that_a_terminal_would_obey_is_not_shown(place: Place) -> None:
    async def scenario(library: Library) -> None:
        shop = library.project()
        library.write(shop, said("The drawer \x1b[2J", "/\x1b[2Jevil"), said("Another drawer", str(shop)))
        await library.take()
        (hit,) = await library.find("drawer")
        assert hit["project"] == str(shop)
        assert json.dumps(hit["line"] + hit["resume"], ensure_ascii=False).isprintable()

    play(place, scenario)


def test_subagents_are_found_under_their_conversation_and_links_are_not_followed(place: Place) -> None:
    async def scenario(library: Library) -> None:
        shop = library.project()
        main = library.write(shop, said("Go", str(shop)))
        side = main.with_suffix("") / "subagents" / "agent-1.jsonl"
        side.parent.mkdir(parents=True)
        side.write_text(said("A hidden drawer", str(shop), speaker="assistant"))
        outside = library.folder / "outside.jsonl"
        outside.write_text(said("An outside drawer", str(shop)))
        library.transcript(shop, OTHER).symlink_to(outside)
        await library.take(shop)
        (hit,) = await library.find("drawer")
        assert (hit["session"], hit["line"], hit["more"]) == (TALK, "A hidden drawer", 0)

    play(place, scenario)


def test_what_was_imported_can_be_dropped_for_one_project_or_all(place: Place) -> None:
    async def scenario(library: Library) -> None:
        shop, bank = library.project("shop"), library.project("bank")
        library.write(shop, said("A drawer", str(shop)))
        library.write(bank, said("Another drawer", str(bank)), session_id=OTHER)
        await library.take()
        assert await library.command("history-remove", {"project": str(shop)}) == {"files": 1}
        assert [hit["session"] for hit in await library.find("drawer")] == [OTHER]
        await library.command("history-remove", {"project": None})
        assert await library.find("drawer") == []
        assert await library.rows("SELECT * FROM history_lines") == []

    play(place, scenario)


def test_a_scan_finds_the_same_without_keeping_anything(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(library: Library) -> None:
        shop = library.project()
        library.write(shop, said("nothing", str(shop)), failed("TypeError: till.drawer is undefined", ""))
        found = scanned_view(scan("TypeError: till.drawer", library.config, None, 10, quiet), library.config)
        await library.take()
        assert found["results"] == await library.find("TypeError: till.drawer")
        assert (found["files"], found["left_out"]) == (1, 0)
        monkeypatch.setattr("holdfast.history.search.MAX_BYTES", 1)
        assert scan("drawer", library.config, None, 10, quiet) == Scanned((), files=0, left_out=1)

    play(place, scenario)


def test_what_was_saved_is_counted_by_project_and_occasion(place: Place) -> None:
    async def scenario(library: Library) -> None:
        now = (await library.store.read(lambda tx: tx.now())) - 1000
        old = now - 8 * 24 * 3_600_000
        for root, occasion, what, at in (
            ("file:///shop", "crash", ["task", "thoughts"], now),
            ("file:///shop", "compact", ["task"], now),
            ("file:///bank", "crash", ["task"], now),
            ("file:///bank", "crash", ["task"], old),
        ):
            await library.recovered(root, occasion, json.dumps(what), at)
        week = (await library.command("saved", {}))["projects"]
        assert [(one["project"], one["times"]) for one in week] == [("/shop", 2), ("/bank", 1)]
        assert (week[0]["after"], week[0]["what"]) == ({"crash": 1, "compact": 1}, {"task": 2, "thoughts": 1})
        ever = (await library.command("saved", {"all": True}))["projects"]
        assert sorted((one["project"], one["times"]) for one in ever) == [("/bank", 2), ("/shop", 2)]

    play(place, scenario)


def test_the_status_line_tells_waiting_messages_and_is_empty_where_nothing_is(place: Place) -> None:
    async def scenario(library: Library) -> None:
        shop = library.project()
        status = StatusLine(library.store, lambda: {"shop": Team("shop", shop)})
        args = {"session": TALK, "cwd": str(shop)}
        assert await status.line(args, quiet) == {"line": ""}
        await library.store.write(
            lambda tx: tx.run(
                "INSERT INTO bridge_messages (id, target, seq, text, fingerprint, sender, source, priority, status,"
                " attempts, created_at, expires_at)"
                " VALUES ('m', 'shop', 1, 'x', 'f', 'me', 'cli', 0, 'pending', 0, 1, 9)"
            )
        )
        assert await status.line(args, quiet) == {"line": "holdfast: 1 message waiting"}
        for odd in ({}, {"session": 7, "cwd": 7}, {"cwd": "\0"}, {"cwd": "/no/such/place"}):
            assert await status.line(odd, quiet) == {"line": ""}

    play(place, scenario)
