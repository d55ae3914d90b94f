"""What is forgotten is gone from every table and file, also after it was cut off in the middle; nothing else is."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import psycopg
import pytest
from tests.contract.conftest import Place
from tests.contract.forgetting_world import (
    EVENTS,
    KEPT,
    NOBODYS,
    SECRET,
    SESSIONS,
    assert_gone,
    dump,
    files_of,
    opened,
    rows_of,
    tables,
    two_projects,
)
from tests.postgres import PostgresServer, fresh_database

from holdfast.errors import Conflict, NotFound
from holdfast.forgetting import copies
from holdfast.forgetting.model import Counts, Scope
from holdfast.forgetting.service import Forgetting
from holdfast.identity.project import Root, RootSource, canonical_uri
from holdfast.reasoning.service import Reasoning
from holdfast.store import Tx, erasing
from holdfast.store.copying import no_progress

pytestmark = pytest.mark.anyio

TABLES = {
    "agent_sessions": "by root and key",
    "api_keys": "nothing of a project",
    "asks": "with their conversations",
    "audit": "nothing of a project: ids, addresses and client names",
    "branches": "with their session",
    "bridge_chats": "by target",
    "bridge_incarnations": "by target",
    "bridge_messages": "by target",
    "bridge_received": "nothing of a project",
    "bridge_targets": "by target",
    "bridge_tasks": "by target",
    "bridge_updates": "by target",
    "browser_sessions": "nothing of a project",
    "calls": "by caller, and by what a result names",
    "connections": "the row stays, without the root",
    "conversations": "by team, in both directions",
    "daemons": "nothing of a project",
    "event_head": "nothing of a project",
    "events": "an empty place stays, because a gap means that an event was lost",
    "forgotten_projects": "a hash, on purpose: transcripts from before are not read again",
    "history_files": "by path",
    "history_lines": "with their file",
    "leases": "nothing of a project",
    "ledgers": "by root and key",
    "notices": "by team, in both directions",
    "permissions": "by team",
    "project_tasks": "by root and key",
    "projects": "by root and key",
    "protocol_evidence": "with its run",
    "protocol_gates": "with their run",
    "protocol_runs": "by root and key",
    "protocol_trust": "by root",
    "protocol_violations": "with their run",
    "recoveries": "by root",
    "requests": "nothing of a project: tool names and durations",
    "schema_migrations": "nothing of a project",
    "session_links": "with either session",
    "session_roots": "by root and key, and with their session",
    "session_register": "id and hash stay, on purpose: a missing session would look like a loss",
    "sessions": "by root and key",
    "signing_keys": "nothing of a project",
    "thoughts": "with their session",
    "tokens": "nothing of a project",
    "transcript_lines": "with their agent's session or conversation",
}
"""What happens to each table when a project is forgotten."""


async def test_every_table_says_what_becomes_of_it_when_a_project_is_forgotten(place: Place) -> None:
    async with opened(place) as app:
        named = set(TABLES) - ({"signing_keys"} if place.engine == "sqlite" else set())
        assert set(await tables(app.store)) == named
        filled = set(rows_of(place.home, SECRET))
        assert set(TABLES) == filled | NOBODYS, "a new table gets a row in forgetting_world, or a reason"


async def test_a_forgotten_project_is_gone_from_every_table_and_file_and_its_neighbour_is_whole(place: Place) -> None:
    async with opened(place) as app:
        gone, kept = await two_projects(place, app)
        before = await dump(app.store)

        report = await app.service(Forgetting).forget(str(gone), no_progress)
        assert report.left == ()
        assert report.counts == Counts(1, 1, 1, 1, asks=2, agent_sessions=1, history_files=1)
        assert report.named_in == (place.home / "teams.json",)

        after = await dump(app.store)
        for name, found in after.items():
            assert SECRET not in str(found), name
        for name in rows_of(kept, KEPT):
            of_neighbour = [row for row in before[name] if KEPT in row or SESSIONS[KEPT] in row]
            assert of_neighbour and [row for row in of_neighbour if row not in after[name]] == [], name
        assert sum("erased'" in row for row in after["events"]) == EVENTS, "their places stay"
        assert any(SESSIONS[SECRET] in row for row in after["session_register"]), "the id stays, and counts"
        assert_gone(place)


async def test_a_forgotten_session_is_gone_from_every_table_and_file(place: Place) -> None:
    async with opened(place) as app:
        await two_projects(place, app)

        def strip(tx: Tx) -> None:
            """Leave nothing of the project but its session."""
            for table in reversed(rows_of(place.home, SECRET)):
                if table not in ("sessions", "session_register", "branches", "thoughts", "calls", "session_links"):
                    tx.run(f"DELETE FROM {table}")
            tx.run("DELETE FROM calls WHERE call_key <> :key", key=f"{SESSIONS[SECRET]}-4")
            tx.run("DELETE FROM events WHERE kind NOT LIKE 'reasoning.%'")

        await app.store.write(strip)
        report = await app.service(Forgetting).forget(SESSIONS[SECRET], no_progress)
        assert (report.left, report.counts) == ((), Counts(sessions=1, thoughts=1))
        after = await dump(app.store)
        assert SECRET not in str(after) and len(after["sessions"]) == len(after["thoughts"]) == 1
    assert_gone(place)


@pytest.mark.parametrize("step", ["rows", "calls", "events", "reasoning", "erasing", "copies", "logs"])
async def test_a_removal_that_was_cut_off_at_any_step_is_finished_later(
    sqlite_place: Place, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Cut(Exception):
        pass

    async def cut(*args: Any, **options: Any) -> Any:
        raise Cut

    def cut_now(*args: Any, **options: Any) -> Any:
        raise Cut

    place = sqlite_place
    async with opened(place) as app:
        gone, _ = await two_projects(place, app)
        at: dict[str, tuple[Any, ...]] = {
            "rows": ("holdfast.forgetting.rows.remove", cut),
            "calls": ("holdfast.protocol.queries.forget", cut_now),
            "events": ("holdfast.forgetting.rows._empty_events", cut),
            "reasoning": (app.service(Reasoning), "forget_project", cut),
            "erasing": ("holdfast.forgetting.service.erase_deleted", cut),
            "copies": ("holdfast.forgetting.copies.remove", cut_now),
            "logs": ("holdfast.forgetting.copies.scrub_logs", cut_now),
        }
        with monkeypatch.context() as patch:
            patch.setattr(*at[step])
            with pytest.raises(Cut):
                await app.service(Forgetting).forget(str(gone), no_progress)
        assert (copies.note_path(place.home, place.engine)).exists()
    async with opened(place) as again:
        await again.service(Forgetting).finish()
        assert not (copies.note_path(place.home, place.engine)).exists()
        after = str(await dump(again.store))
        assert SECRET not in after and KEPT in after
    assert_gone(place)


async def test_what_cannot_be_erased_for_a_reader_is_said_and_erased_when_it_is_gone(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "READERS_WAIT_S", 0.1)
    place = sqlite_place
    async with opened(place) as app:
        gone, _ = await two_projects(place, app)
        reader = apsw.Connection(str(place.path))
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM thoughts").fetchall()
        report = await app.service(Forgetting).forget(str(gone), no_progress)
        assert "holdfast.db-wal" in report.left[0]
        reader.close()
        again = await app.service(Forgetting).forget(str(gone), no_progress)
        assert again.left == (), "asked for again, it goes on where it was"
        assert_gone(place)


async def test_what_cannot_be_erased_for_a_transaction_on_the_server_is_said(
    postgres_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "READERS_WAIT_S", 0.1)
    monkeypatch.setattr(erasing, "LOCK_MS", 50)
    place = postgres_place
    async with opened(place) as app:
        gone, _ = await two_projects(place, app)
        with psycopg.connect(place.url) as reader:
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT count(*) FROM asks")
            report = await app.service(Forgetting).forget(str(gone), no_progress)
            assert report.left
            told = {line.split(" ")[2].rpartition(".")[2]: line for line in report.left}
            assert "it is in use" in told["asks"] and "still sees" in told["thoughts"]
        await app.service(Forgetting).finish()
        assert not (copies.note_path(place.home, place.engine)).exists()
    assert_gone(place)


async def test_a_user_of_the_server_without_special_rights_can_have_a_project_forgotten(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = fresh_database(postgres, migrated=False)
    with psycopg.connect(url, autocommit=True) as connection:
        database = connection.info.dbname
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'plain'").fetchone() is None:
            connection.execute("CREATE ROLE plain LOGIN")
            # For the looks of this test alone.
            connection.execute("GRANT pg_checkpoint, pg_read_all_settings TO plain")
        connection.execute(f'ALTER DATABASE "{database}" OWNER TO plain'.encode())
    place = Place("postgres", tmp_path, url.replace("//postgres:@", "//plain:@"))
    async with opened(place) as app:
        gone, kept = await two_projects(place, app)
        assert (await app.service(Forgetting).forget(str(gone), no_progress)).left == ()
        assert_gone(place)
        assert (await app.service(Forgetting).forget(str(kept), no_progress)).left == (), "nothing is left in any table"
        for name, content in files_of(place).items():
            assert f"team-{KEPT}".encode() not in content, name


async def test_without_room_the_rows_are_overwritten_and_the_rest_is_erased_when_there_is_room(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = sqlite_place
    async with opened(place) as app:
        gone, _ = await two_projects(place, app)
        daily = place.home / "backups" / "daily-new.db"
        with monkeypatch.context() as patch:
            patch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1000))
            report = await app.service(Forgetting).forget(str(gone), no_progress)
            assert "no room" in report.left[0]
            daily.parent.mkdir()
            daily.write_bytes(b"")
            await app.service(Forgetting).finish()
            assert daily.exists(), "while it waits for room, the newest backup is not taken every hour"
        await app.service(Forgetting).finish()
        assert not (copies.note_path(place.home, place.engine)).exists() and not daily.exists()
    assert_gone(place)


async def test_a_project_at_whose_team_an_agent_works_is_not_forgotten(place: Place) -> None:
    async with opened(place) as app:
        gone, _ = await two_projects(place, app)
        sql = "UPDATE asks SET status = 'running', lease_until = :until"
        await app.store.write(lambda tx: tx.run(sql, until=tx.now() + 60_000))
        before = await dump(app.store)
        with pytest.raises(Conflict, match="Nothing was removed"):
            await app.service(Forgetting).forget(str(gone), no_progress)
        assert await dump(app.store) == before and not (copies.note_path(place.home, place.engine)).exists()


async def test_a_name_that_is_not_known_removes_nothing_and_is_told_what_is_named_alike(place: Place) -> None:
    async with opened(place) as app:
        gone, kept = await two_projects(place, app)
        before = await dump(app.store)
        for wrong, meant in (
            (f"{gone}e", str(gone)),
            (f"{gone}/src", str(gone)),
            (str(gone.parent), str(gone)),
            (f"/elsewhere/{gone.name}", str(gone)),
            (gone.name, str(gone)),
            (kept.name[:-1], str(kept)),
            ("session-", SESSIONS[SECRET]),
            ("sesion-two", SESSIONS[KEPT]),
        ):
            with pytest.raises(NotFound) as refused:
                await app.service(Forgetting).forget(wrong, no_progress)
            assert meant in str(refused.value), wrong
        with pytest.raises(NotFound, match="There is nothing with a similar name"):
            await app.service(Forgetting).forget("qqqqqqqq", no_progress)
        assert await dump(app.store) == before


@pytest.mark.parametrize(
    "table", ["protocol_runs", "bridge_messages", "agent_sessions", "history_files", "connections"]
)
async def test_a_project_without_a_reasoning_session_is_known_by_whatever_there_is_of_it(
    sqlite_place: Place, table: str
) -> None:
    place = sqlite_place
    async with opened(place) as app:
        gone, _ = await two_projects(place, app)
        for name in reversed(rows_of(gone, SECRET)):
            if name != table:
                await app.store.write(partial(_clear, name=name))
        if table != "bridge_messages":  # which are known by the team
            (place.home / "teams.json").write_text("{}")
        assert (await app.service(Forgetting).preview(str(gone))).roots == (str(gone),)
        assert (await app.service(Forgetting).forget(str(gone), no_progress)).left == ()
        assert SECRET not in str((await dump(app.store))[table])


def _clear(tx: Tx, name: str) -> None:
    tx.run(f"DELETE FROM {name}")


async def test_a_directory_that_is_gone_is_forgotten_with_its_project(place: Place) -> None:
    async with opened(place) as app:
        gone, _ = await two_projects(place, app)
        gone.rmdir()
        clone = Root(canonical_uri(f"{gone}-clone"), f"example.org/{SECRET}", RootSource.ARGUMENT)
        await app.service(Reasoning).pause(clone)
        report = await app.service(Forgetting).preview(str(gone))
        assert report.roots == (str(gone), f"{gone}-clone")
        await app.service(Forgetting).forget(str(gone), no_progress)
        assert SECRET not in str(await dump(app.store))
    assert_gone(place)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/home/dev/shop", True),
        ("in /home/dev/shop.", True),
        ("/home/dev/shop/src/a.py", True),
        ('{"root":"file:///home/dev/shop"}', True),
        ("/home/dev/shop2", False),
        ("/home/dev/shop-old/a", False),
        ("/home/dev/shop.git", False),
        ("/home/dev", False),
    ],
)
async def test_a_project_is_not_taken_for_one_whose_name_begins_alike(text: str, found: bool) -> None:
    scope = Scope("x", None, (Root("file:///home/dev/shop", None, RootSource.ARGUMENT),))
    names = scope.names()
    assert names is not None and (names.search(text) is not None) == found
