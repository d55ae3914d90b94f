"""A project handed off as one file and adopted elsewhere: nothing lost, nothing twice, nothing hostile believed."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.contract.archive_world import OTHER_TALK, TALK, Machine, beside, busy_project, line, play
from tests.contract.conftest import Place
from tests.contract.reasoning_world import agent

from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.briefing.queries import agent_sessions as queries
from holdfast.errors import Conflict
from holdfast.handoff.errors import ArchiveRefused
from holdfast.handoff.tables import TABLES
from holdfast.identity.project import RootSource, locate
from holdfast.reasoning.hash_chain_check import chain_check
from holdfast.store.copying import sqlite_tables
from holdfast.store.sqlite import connect
from holdfast.store.verify import verify


@pytest.fixture
def there(place: Place, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """The other machine's store, on the same engine and apart."""
    home = tmp_path / "there" / "home"
    home.mkdir(parents=True)
    url = "" if place.engine == "sqlite" else request.getfixturevalue("new_database")()
    return Place(place.engine, home, url)


def test_what_was_handed_off_is_there_after_adopting_and_adopting_again_changes_nothing(
    place: Place, there: Place, tmp_path: Path
) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        session = await busy_project(ours)
        report = await ours.handoff(tmp_path / "a.handoff")
        assert (report["counts"]["thoughts"], report["counts"]["transcripts"]) == (4, 1)
        adopted = await theirs.adopt(tmp_path / "a.handoff")
        assert (adopted["notes"], adopted["refused"], adopted["resume"]) == ([], [], TALK)

        root = locate(str(theirs.project), RootSource.DIRECTORY).uri
        (kept,) = await theirs.world.rows("SELECT * FROM sessions")
        assert (kept["id"], kept["root_uri"], kept["thought_count"], kept["branch_count"]) == (session, root, 4, 1)
        assert (await verify(theirs.world.store, {"thoughts": chain_check})).ok
        (run,) = await theirs.world.rows("SELECT root, project, status FROM protocol_runs")
        assert list(run.values()) == [root, root, "active"]
        (evidence,) = await theirs.world.rows("SELECT subject FROM protocol_evidence")
        assert evidence["subject"] == "README.md"
        messages = await theirs.world.rows("SELECT id, status, lease_by FROM bridge_messages ORDER BY seq")
        assert [tuple(row.values()) for row in messages] == [
            ("m1", "done", None),
            ("m2", "held", None),
            ("m3", "held", None),
            (messages[3]["id"], "held", None),
        ]
        assert messages[3]["id"].startswith("task-")
        assert [row["id"] for row in await theirs.world.rows("SELECT id FROM asks")] == ["a1"]
        (seen,) = await theirs.world.rows("SELECT root, machine, pid, transcript FROM agent_sessions")
        assert list(seen.values()) == [root, "machine-there", None, str(theirs.transcript())]

        assert theirs.transcript().read_bytes() == ours.transcript().read_bytes()
        side = theirs.transcript().with_suffix("") / "subagents" / "agent-a1.jsonl"
        assert side.read_text() == line("s1", "Search")
        assert json.loads(side.with_suffix(".meta.json").read_text()) == {"agentType": "Explore"}

        before, files = await theirs.everything(), _files(theirs.config)
        again = await theirs.adopt(tmp_path / "a.handoff")
        assert (again["added"], again["changed"], again["transcripts"]) == ({}, {}, {"known": 1})
        assert (await theirs.everything(), _files(theirs.config)) == (before, files)

    play(place, there, scenario)


def _files(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def test_no_table_of_the_store_holds_a_byte_more_after_adopting_again(tmp_path: Path, sqlite_place: Place) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await busy_project(ours)
        await ours.handoff(tmp_path / "a.handoff")
        await theirs.adopt(tmp_path / "a.handoff")
        before = _content(theirs.world.place.path)
        await theirs.adopt(tmp_path / "a.handoff")
        assert _content(theirs.world.place.path) == before

    play(sqlite_place, beside(tmp_path), scenario)


def _content(path: Path) -> dict[str, list[Any]]:
    connection = connect(path, readonly=True)
    try:
        return {
            table.name: sorted(map(repr, connection.execute(f"SELECT {table.quoted_columns} FROM {table.quoted}")))
            for table in sqlite_tables(connection)
        }
    finally:
        connection.close()


def test_work_goes_there_and_back_without_losing_a_thought_or_a_line(
    place: Place, there: Place, tmp_path: Path
) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        session = await busy_project(ours)
        await ours.handoff(tmp_path / "a.handoff")
        await theirs.adopt(tmp_path / "a.handoff")
        await theirs.world.think(theirs.caller, "It was the spring.", session_id=session)
        theirs.say(line("u3", "Order a spring", cwd=str(theirs.project)))
        await theirs.handoff(tmp_path / "b.handoff")
        back = await ours.adopt(tmp_path / "b.handoff")
        assert (back["changed"]["sessions"], back["added"]["thoughts"], back["transcripts"]) == (1, 1, {"ahead": 1})
        texts = await ours.world.rows("SELECT content, number FROM thoughts ORDER BY number")
        assert [row["content"] for row in texts][-1] == "It was the spring."
        assert (await verify(ours.world.store, {"thoughts": chain_check})).ok
        assert ours.transcript().read_text() == theirs.transcript().read_text()
        older = await ours.adopt(tmp_path / "a.handoff")
        assert (older["added"], older["changed"], older["notes"]) == ({}, {}, [])
        await ours.world.think(ours.caller, "And it fits.", session_id=session)

    play(place, there, scenario)


def test_a_conversation_that_no_hook_told_of_has_a_ledger_there(place: Place, there: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        ours.say(line("u1", "Fix the till", cwd=str(ours.project)))
        await ours.handoff(tmp_path / "a.handoff")
        await theirs.adopt(tmp_path / "a.handoff")
        root = locate(str(theirs.project), RootSource.DIRECTORY).uri
        before = await theirs.everything()
        assert [(row["session_id"], row["root"]) for row in before["ledgers"]] == [(TALK, root)]
        assert "Fix the till" in before["ledgers"][0]["content"]
        await theirs.adopt(tmp_path / "a.handoff")
        assert await theirs.everything() == before

    play(place, there, scenario)


def test_a_project_that_was_forgotten_is_known_again_once_it_is_adopted(
    place: Place, there: Place, tmp_path: Path
) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        ours.say(line("u1", "Fix the till", cwd=str(ours.project)))
        await ours.handoff(tmp_path / "a.handoff")
        root = locate(str(theirs.project), RootSource.DIRECTORY)
        await theirs.world.store.write(lambda tx: queries.forget(tx, root))
        await theirs.adopt(tmp_path / "a.handoff")
        (ledger,) = (await theirs.everything())["ledgers"]
        assert "Fix the till" in ledger["content"]

    play(place, there, scenario)


def test_what_went_on_in_both_places_stays_as_it_is_here_and_that_is_said(
    place: Place, there: Place, tmp_path: Path
) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        session = await busy_project(ours)
        await ours.handoff(tmp_path / "a.handoff")
        await theirs.adopt(tmp_path / "a.handoff")
        for machine, thought in ((ours, "Here."), (theirs, "There.")):
            await machine.world.think(machine.caller, thought, session_id=session)
            machine.say(line(thought))
        await theirs.handoff(tmp_path / "b.handoff")
        before, files = await ours.everything(), _files(ours.config)
        report = await ours.adopt(tmp_path / "b.handoff")
        assert any(session in note and "was continued here" in note for note in report["notes"])
        assert any(TALK in refusal and "both" in refusal for refusal in report["refused"])
        after = await ours.everything()
        assert [after[name] for name in ("sessions", "thoughts")] == [before[name] for name in ("sessions", "thoughts")]
        assert _files(ours.config) == files

    play(place, there, scenario)


def test_a_transcript_in_use_by_a_live_agent_is_not_written_to(place: Place, there: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        theirs.say(line("u1"))
        ours.say(line("u1"), line("u2"))
        await theirs.world.think(agent(TALK, agent_session=TALK), "I am at work.")
        await ours.handoff(tmp_path / "a.handoff")
        report = await theirs.adopt(tmp_path / "a.handoff")
        assert any(TALK in refusal and "live agent" in refusal for refusal in report["refused"])
        assert theirs.transcript().read_text() == line("u1")
        await theirs.world.connections.detach(f"agent:{TALK}")
        here = {"talk": TALK, "machine": "machine-there", "pid": os.getpid()}
        await theirs.world.run(
            "INSERT INTO agent_sessions (session_id, root, machine, pid, source, started_at, seen_at)"
            " VALUES (:talk, 'file:///x', :machine, :pid, 'startup', 1, 8)",
            **here,
        )
        again = await theirs.adopt(tmp_path / "a.handoff")
        assert any(TALK in refusal and "live agent" in refusal for refusal in again["refused"])
        assert theirs.transcript().read_text() == line("u1")
        warned = await theirs.handoff(tmp_path / "b.handoff")
        assert any(TALK in warning and "live agent" in warning for warning in warned["warnings"])
        await theirs.world.run("DELETE FROM agent_sessions")
        assert (await theirs.adopt(tmp_path / "a.handoff"))["transcripts"] == {"ahead": 1}

    play(place, there, scenario)


def test_an_active_run_brings_no_commands_that_the_project_here_does_not_have(
    place: Place, there: Place, tmp_path: Path
) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await busy_project(ours)
        (row,) = await ours.world.rows("SELECT definition FROM protocol_runs")
        edited = json.loads(row["definition"])
        check = {"kind": "command", "paths": [], "names": [], "argv": ["rm", "-rf", "x"], "timeout_s": 9}
        edited["transitions"][0]["gate"]["checks"].append(check)
        await ours.world.run("UPDATE protocol_runs SET definition = :text", text=json.dumps(edited))
        await ours.handoff(tmp_path / "a.handoff")
        report = await theirs.adopt(tmp_path / "a.handoff")
        assert any("other commands" in note for note in report["notes"])
        assert [row["status"] for row in await theirs.world.rows("SELECT status FROM protocol_runs")] == ["orphaned"]

    play(place, there, scenario)


def test_the_archive_is_for_its_owner_alone_and_holds_no_secret(place: Place, there: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await busy_project(ours)
        await ours.world.connections.reconnects.start()
        target = tmp_path / "a.handoff"
        old = os.umask(0)
        try:
            await ours.handoff(target)
        finally:
            os.umask(old)
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        with zipfile.ZipFile(target) as file:
            stored = {name for name in file.namelist() if name.startswith("store/")}
        assert stored == {table.member for table in TABLES.values()}
        assert not {"tokens", "api_keys", "signing_keys", "connections", "audit", "protocol_trust"} & TABLES.keys()
        with pytest.raises(Conflict, match="exists already"):
            await ours.handoff(target)
        await ours.handoff(target, replace=True)
        assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []

    play(place, there, scenario)


def test_an_archive_that_cannot_be_finished_leaves_nothing_behind(sqlite_place: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await busy_project(ours)
        ours.say(line("x"), session_id=OTHER_TALK)
        odd = ours.transcript(OTHER_TALK).with_suffix("") / "sub agents"
        odd.mkdir(parents=True)
        (odd / "agent.jsonl").write_text(line("y"))
        with pytest.raises(ArchiveRefused):
            await ours.handoff(tmp_path / "a.handoff")
        assert [path.name for path in tmp_path.iterdir() if "handoff" in path.name] == []

    play(sqlite_place, beside(tmp_path), scenario)


def test_a_transcript_that_cannot_be_read_is_left_out_and_named(sqlite_place: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await busy_project(ours)
        ours.say(line("x"), session_id=OTHER_TALK)
        odd = ours.transcript(OTHER_TALK).with_suffix("") / "subagents" / "agent-1.jsonl"
        odd.mkdir(parents=True)
        report = await ours.handoff(tmp_path / "a.handoff")
        assert any(OTHER_TALK in warning and "cannot be read" in warning for warning in report["warnings"])
        assert (await theirs.adopt(tmp_path / "a.handoff"))["transcripts"] == {"new": 1}

    play(sqlite_place, beside(tmp_path), scenario)


def test_a_transcript_whose_note_beside_it_is_damaged_goes_along_all_the_same(
    sqlite_place: Place, tmp_path: Path
) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        ours.say(line("x"))
        odd = ours.transcript(TALK).with_suffix("") / "subagents" / "agent-1.jsonl"
        odd.parent.mkdir(parents=True)
        odd.write_text(line("y"))
        odd.with_suffix(".meta.json").write_text("{")
        assert (await ours.handoff(tmp_path / "a.handoff"))["warnings"] == []
        assert (await theirs.adopt(tmp_path / "a.handoff"))["transcripts"] == {"new": 1}
        moved = theirs.transcript(TALK).with_suffix("") / "subagents" / "agent-1.jsonl"
        assert '"y"' in moved.read_text()

    play(sqlite_place, beside(tmp_path), scenario)


def test_the_latest_conversation_there_is_the_latest_here(sqlite_place: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        for name, day in ((TALK, "2026-01-31"), (OTHER_TALK, "2026-01-30")):
            ours.say(line(name).replace('"type"', f'"timestamp": "{day}T12:00:00Z", "type"'), session_id=name)
        await ours.handoff(tmp_path / "a.handoff")
        assert (await theirs.adopt(tmp_path / "a.handoff"))["resume"] == TALK

    play(sqlite_place, beside(tmp_path), scenario)


def test_paths_that_share_a_folder_of_transcripts_are_told_apart(sqlite_place: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        twin = ours.project.parent.parent / "here-project"
        assert project_key(twin) == project_key(ours.project)
        ours.say(line("u1", cwd=str(ours.project)))
        ours.say(line("u2", cwd=str(twin)), session_id=OTHER_TALK)
        report = await ours.handoff(tmp_path / "a.handoff")
        assert report["counts"]["transcripts"] == 1

    play(sqlite_place, beside(tmp_path), scenario)
