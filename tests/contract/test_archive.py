"""A project handed off as one file and adopted elsewhere: nothing lost, nothing twice, nothing hostile believed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import stat
import zipfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.contract.conftest import Place
from tests.contract.reasoning_world import World, agent, living
from tests.postgres import fresh_database

from holdfast.archive.container import MANIFEST
from holdfast.archive.errors import ArchiveRefused
from holdfast.archive.service import Archives
from holdfast.archive.tables import TABLES
from holdfast.errors import Conflict, HoldfastError, NotFound
from holdfast.project import RootSource, locate
from holdfast.protocol import definition
from holdfast.protocol import queries as protocol_queries
from holdfast.protocol.builtin import SIMPLE
from holdfast.reasoning.checks import chain_check
from holdfast.store import Row, Tx
from holdfast.store.copying import sqlite_tables
from holdfast.store.sqlite import connect
from holdfast.store.verify import verify
from holdfast.teams.agents.project_key import project_key
from holdfast.teams.team import Team

TALK = "11111111-1111-4111-8111-111111111111"
OTHER_TALK = "22222222-2222-4222-8222-222222222222"
TEAM = "shop"


def quiet(share: float, message: str) -> None:
    """Progress that nobody watches."""


def line(name: str, text: str = "", cwd: str = "/there") -> str:
    return json.dumps({"type": "user", "uuid": name, "cwd": cwd, "message": {"role": "user", "content": text}}) + "\n"


@dataclass
class Machine:
    """One machine: its store, its home, its agent's files and its copy of the project."""

    world: World
    folder: Path

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def config(self) -> Path:
        return self.folder / "claude"

    @property
    def archives(self) -> Archives:
        async def roster() -> dict[str, Team]:
            return {TEAM: Team(TEAM, self.project)}

        return Archives(self.world.store, self.folder / "home", f"machine-{self.folder.name}", roster)

    @property
    def caller(self) -> Any:
        return agent("a", locate(str(self.project), RootSource.DIRECTORY))

    def transcript(self, session_id: str = TALK) -> Path:
        return self.config / "projects" / project_key(self.project) / f"{session_id}.jsonl"

    def say(self, *lines: str, session_id: str = TALK) -> None:
        path = self.transcript(session_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.writelines(lines)

    async def handoff(self, target: Path, **more: Any) -> dict[str, Any]:
        args = {"project": str(self.project), "file": str(target), "config": str(self.config), **more}
        return await self.archives.handoff(args, quiet)

    async def adopt(self, source: Path) -> dict[str, Any]:
        args = {"project": str(self.project), "file": str(source), "config": str(self.config)}
        return await self.archives.adopt(args, quiet)

    async def everything(self) -> dict[str, list[Row]]:
        """Every row of every table that the archive touches, the events included."""

        def read(tx: Tx) -> dict[str, list[Row]]:
            names = [*TABLES, "events", "projects"]
            return {name: sorted(tx.all(f"SELECT * FROM {name}"), key=str) for name in names}

        return await self.world.store.read(read)


Scenario = Callable[[Machine, Machine], Awaitable[None]]


@pytest.fixture
def there(place: Place, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """The other machine's store, on the same engine and apart."""
    home = tmp_path / "there" / "home"
    home.mkdir(parents=True)
    url = "" if place.engine == "sqlite" else fresh_database(request.getfixturevalue("postgres"))
    return Place(place.engine, home, url)


def play(place: Place, there: Place, scenario: Scenario) -> None:
    async def run() -> None:
        folder = place.home / "here"
        (folder / "project").mkdir(parents=True)
        (there.home.parent / "project").mkdir()
        async with living(place) as ours, living(there) as theirs:
            await scenario(Machine(ours, folder), Machine(theirs, there.home.parent))

    asyncio.run(run())


def beside(tmp_path: Path) -> Place:
    """Another machine with an embedded store."""
    home = tmp_path / "there" / "home"
    home.mkdir(parents=True)
    return Place("sqlite", home, "")


async def busy_project(machine: Machine) -> str:
    """A project with a bit of everything; returns its reasoning session."""
    think = machine.world.think
    session = (await think(machine.caller, "Why does the till jam?"))["sessionId"]
    await think(machine.caller, "Because of the drawer.")
    await think(machine.caller, "Or of the receipt roll.", branch_id="roll", branch_from=1)
    await think(machine.caller, "The drawer is fine.", is_revision=True, revises=2)
    await machine.world.store.write(lambda tx: _rest(tx, machine))
    machine.say(line("u1", "Fix the till"), line("u2", "Look at the drawer"), '{"type":"mode","mode":"plan"}\n')
    side = machine.transcript().with_suffix("") / "subagents" / "agent-a1.jsonl"
    side.parent.mkdir(parents=True)
    side.write_text(line("s1", "Search"))
    side.with_suffix(".meta.json").write_text('{"agentType": "Explore"}')
    return str(session)


def _rest(tx: Tx, machine: Machine) -> None:
    root = locate(str(machine.project), RootSource.DIRECTORY)
    run = protocol_queries.begin(
        tx,
        root=root.uri,
        project=root.uri,
        protocol=SIMPLE.name,
        definition=definition.dumps(SIMPLE),
        objective="Fix the till",
        branch="main",
        starting_commit=None,
        on_disk={},
    )
    tx.run(
        "INSERT INTO protocol_evidence (run, gate, kind, subject, detail, source, at)"
        " VALUES (:run, NULL, 'file_read', 'README.md', 'x', 'hook', 1)",
        run=run.row_id,
    )
    for number, status in enumerate(("done", "leased", "pending"), 1):
        tx.run(
            "INSERT INTO bridge_messages (id, target, seq, text, fingerprint, sender, source, priority, status,"
            " attempts, lease_by, created_at, expires_at)"
            " VALUES (:id, :team, :n, 'do it', 'f', 'me', 'cli', 0, :status, 1, 'x', 1, 99999999999999)",
            id=f"m{number}",
            team=TEAM,
            n=number,
            status=status,
        )
    tx.run(
        "INSERT INTO bridge_updates (target, seq, kind, message_id, content, data, chat_only, created_at)"
        " VALUES (:team, 1, 'reply', 'm1', 'Done.', '{}', 0, 5)",
        team=TEAM,
    )
    tx.run(
        "INSERT INTO bridge_tasks (target, current_task, pending_messages, updated_at)"
        " VALUES (:team, 'the till', '[]', 7)",
        team=TEAM,
    )
    tx.run(
        "INSERT INTO conversations (from_team, to_team, thread, session_id, begun, status, message_count,"
        " compacted_count, created_at, last_used_at, last_started_at)"
        " VALUES ('', :team, 'main', :talk, 1, 'active', 2, 0, 1, 2, 3)",
        team=TEAM,
        talk=OTHER_TALK,
    )
    for name, status in (("a1", "answered"), ("a2", "running")):
        tx.run(
            "INSERT INTO asks (id, conversation_id, to_team, text, chain, status, attempts, answer, created_at)"
            " SELECT :id, id, :team, 'How?', '[]', :status, 1, 'So.', 4 FROM conversations",
            id=name,
            team=TEAM,
            status=status,
        )
    tx.run(
        "INSERT INTO ledgers (session_id, root, machine, transcript, file_mark, read_to, content, last_at, updated_at)"
        " VALUES (:talk, :root, 'm', '/there/t.jsonl', 'mark', 9, '{}', 8, 8)",
        talk=TALK,
        root=root.uri,
    )
    tx.run(
        "INSERT INTO agent_sessions (session_id, root, machine, pid, transcript, source, started_at, seen_at)"
        " VALUES (:talk, :root, 'm', 4711, '/there/t.jsonl', 'startup', 1, 8)",
        talk=TALK,
        root=root.uri,
    )


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
            ("m2", "pending", None),
            ("m3", "pending", None),
        ]
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
        assert any(session in note and "went on here" in note for note in report["notes"])
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


# -- hostile archives -------------------------------------------------------------------------------------------------

Members = dict[str, bytes]


def _renamed(name: str) -> Callable[[Members], Members]:
    return lambda members: {**members, name: b"x\n"}


def _row(table: str, **values: Any) -> Callable[[Members], Members]:
    def change(members: Members) -> Members:
        member = TABLES[table].member
        first = json.loads(members[member].splitlines()[0]) | values
        return {**members, member: json.dumps(first).encode() + b"\n"}

    return change


HOSTILE: dict[str, Callable[[Members], Members]] = {
    "a way out": _renamed("../../evil.jsonl"),
    "an absolute name": _renamed("/etc/evil.jsonl"),
    "a way out of the transcripts": _renamed(f"transcripts/{TALK}/../../x.jsonl"),
    "a backslash": _renamed("transcripts\\x.jsonl"),
    "a name that is no session": _renamed("transcripts/not-a-uuid.jsonl"),
    "a hidden file": _renamed(f"transcripts/{TALK}/.evil.jsonl"),
    "another table's column": _row("sessions", **{"id) VALUES ('x'); --": "x"}),
    "a number that is a text": _row("sessions", thought_count="4"),
    "a number beyond all numbers": _row("sessions", created_at=2**70),
    "a changed thought": _row("thoughts", content="Something else."),
    "a status that there is not": _row("bridge_messages", status="gone"),
    "tags that are none": _row("sessions", tags="{"),
    "a thought of nobody": _row("thoughts", session_id="nobody"),
    "a protocol that is none": _row("protocol_runs", definition="{}"),
    "a team that a terminal obeys": _row("bridge_tasks", target="\x1b[2Jshop"),
    "a team that a shell obeys": _row("bridge_updates", target="shop; rm"),
    "a thread that a terminal obeys": _row("conversations", thread="\x1b]0;x"),
    "a run of no day": _row("protocol_runs", day="../../x"),
    "a run of no number": _row("protocol_runs", number=0),
    "a NUL": _row("sessions", title="a\0b"),
    "half a surrogate pair": _row("sessions", title="\ud83d"),
    "a transcript nested too deep": lambda members: {
        **members,
        f"transcripts/{OTHER_TALK}.jsonl": b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n",
    },
    "a subagent of no conversation": _renamed(f"transcripts/{OTHER_TALK}/subagents/agent-1.jsonl"),
    "no JSON": lambda members: {**members, TABLES["sessions"].member: b"{\n"},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_archive_is_refused_with_nothing_written(what: str, sqlite_place: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await busy_project(ours)
        await ours.handoff(tmp_path / "good")
        _rewritten(tmp_path / "good", tmp_path / "bad", HOSTILE[what])
        await _refuses(theirs, tmp_path / "bad")

    play(sqlite_place, beside(tmp_path), scenario)


def _rewritten(
    source: Path, target: Path, change: Callable[[Members], Members], manifest: dict[str, Any] | None = None
) -> None:
    """A changed archive whose manifest fits the change, as somebody hostile would write it."""
    with zipfile.ZipFile(source) as file:
        members = {name: file.read(name) for name in file.namelist()}
    told = json.loads(members.pop(MANIFEST))
    members = change(members)
    told["members"] = {
        name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()} for name, content in members.items()
    }
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
        file.writestr(MANIFEST, json.dumps(told | (manifest or {})))


async def _refuses(
    machine: Machine, source: Path, match: str | None = None, kind: type[HoldfastError] = ArchiveRefused
) -> None:
    before = await machine.everything()
    outside = {path for path in machine.folder.parent.rglob("*") if "home" not in path.parts}
    with pytest.raises(kind, match=match):
        await machine.adopt(source)
    assert await machine.everything() == before
    assert {path for path in machine.folder.parent.rglob("*") if "home" not in path.parts} == outside


def test_a_file_that_is_cut_off_changed_linked_or_of_another_version_is_refused(
    sqlite_place: Place, tmp_path: Path
) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await busy_project(ours)
        good, bad = tmp_path / "good", tmp_path / "bad"
        await ours.handoff(good)
        content = good.read_bytes()
        for cut in (0, 1, len(content) // 2, len(content) - 1):
            bad.write_bytes(content[:cut])
            await _refuses(theirs, bad, "cut off|damaged")
        bad.write_text("no archive at all")
        await _refuses(theirs, bad, "no archive")
        _rewritten(good, bad, dict, {"version": 2, "holdfast": "9.9"})
        await _refuses(theirs, bad, "format 2, written by holdfast 9.9")
        _rewritten(good, bad, dict, {"members": {}})
        await _refuses(theirs, bad, "manifest")
        wrong = {name: {"size": 0, "sha256": "0"} for name in zipfile.ZipFile(good).namelist() if name != MANIFEST}
        _rewritten(good, bad, dict, {"members": wrong})
        await _refuses(theirs, bad, "manifest")
        _rewritten(good, bad, dict)
        with zipfile.ZipFile(bad, "a") as file:
            link = zipfile.ZipInfo(f"transcripts/{OTHER_TALK}.jsonl")
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            file.writestr(link, "/etc/passwd")
        await _refuses(theirs, bad, "no plain file")
        await _refuses(theirs, tmp_path / "missing", "There is no file", NotFound)

    play(sqlite_place, beside(tmp_path), scenario)


def test_a_bomb_is_refused_before_it_is_unpacked(sqlite_place: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await ours.handoff(tmp_path / "good")
        name = f"transcripts/{TALK}.jsonl"
        _rewritten(tmp_path / "good", tmp_path / "bad", lambda members: {**members, name: bytes(65 * 1024 * 1024)})
        await _refuses(theirs, tmp_path / "bad", "would unpack")

    play(sqlite_place, beside(tmp_path), scenario)


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
        odd.parent.mkdir(parents=True)
        odd.write_text(line("y"))
        odd.with_suffix(".meta.json").write_text("{")
        report = await ours.handoff(tmp_path / "a.handoff")
        assert any(OTHER_TALK in warning and "cannot be read" in warning for warning in report["warnings"])
        assert (await theirs.adopt(tmp_path / "a.handoff"))["transcripts"] == {"new": 1}

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
