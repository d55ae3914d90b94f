"""Two machines for the tests of archives: each with a store, an agent's files and a copy of the project."""

from __future__ import annotations

import asyncio
import contextlib
import json
import zipfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.contract.conftest import Place
from tests.contract.reasoning_world import World, agent, living

from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.handoff.commands import commands
from holdfast.handoff.container import open_archive
from holdfast.handoff.errors import ArchiveRefused
from holdfast.handoff.service import Handoff
from holdfast.handoff.tables import TABLES
from holdfast.identity.project import RootSource, locate
from holdfast.protocol import definition
from holdfast.protocol import queries as protocol_queries
from holdfast.protocol.protocols import SIMPLE
from holdfast.protocol.runs import Run
from holdfast.store import Row, Tx
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

    async def command(self, name: str, **args: Any) -> dict[str, Any]:
        async def teams() -> list[Team]:
            return [Team(TEAM, self.project)]

        handoff = Handoff(self.world.store, self.folder / "home", f"machine-{self.folder.name}", teams)
        run = {one.name: one.run for one in commands(handoff)}[name]
        return await run(args, quiet)

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
        return await self.command("handoff", **args)

    async def adopt(self, source: Path, **more: Any) -> dict[str, Any]:
        """As its owner does who knows the other machine."""
        args = {"project": str(self.project), "file": str(source), "config": str(self.config), **more}
        if not more and zipfile.is_zipfile(source):
            with contextlib.suppress(ArchiveRefused), open_archive(source) as archive:
                args |= {"signer": archive.signer.fingerprint} if archive.signer else {"unsigned": True}
        return await self.command("adopt", **args)

    async def everything(self) -> dict[str, list[Row]]:
        """Every row of every table that the archive touches, the events included."""

        def read(tx: Tx) -> dict[str, list[Row]]:
            names = [*TABLES, "events", "projects"]
            return {name: sorted(tx.all(f"SELECT * FROM {name}"), key=str) for name in names}

        return await self.world.store.read(read)


Scenario = Callable[[Machine, Machine], Awaitable[None]]


def play(place: Place, there: Place, scenario: Scenario) -> None:
    async def run() -> None:
        folder = place.home / "here"
        (folder / "project").mkdir(parents=True)
        (folder / "home").mkdir()
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
    new = Run(0, "", root.uri, root.uri, SIMPLE.name, definition.dumps(SIMPLE), "Fix the till", "main")
    run = protocol_queries.begin(tx, new, ())
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
