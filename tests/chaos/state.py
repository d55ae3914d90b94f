"""What is there at the end: read through the doors that users have, and from the store itself."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row
from tests.chaos.plan import TARGETS
from tests.chaos.world import World
from tests.process.agent import Agent

from holdfast.store import high_water

Rows = list[dict[str, Any]]
ASK_SECONDS = 45
"""How long an ask may take at the end: longer than the lease of a runner that was ended."""

TABLES: dict[str, tuple[str, ...]] = {
    "sessions": ("id", "title", "status", "thought_count"),
    "thoughts": ("session_id", "number", "content", "branch_id"),
    "bridge_messages": (
        "id",
        "target",
        "seq",
        "text",
        "priority",
        "status",
        "attempts",
        "lease_by",
        "outcome",
        "reply",
    ),
    "bridge_updates": ("target", "seq", "kind", "message_id", "content"),
    "bridge_tasks": ("target", "current_task", "session_id"),
    "conversations": ("id", "from_team", "to_team", "thread", "session_id"),
    "asks": ("id", "conversation_id", "text", "status", "attempts", "answer", "error"),
    "notices": ("id", "from_team", "to_team", "text"),
    "protocol_runs": ("id", "root", "objective", "phase", "status", "summary"),
    "protocol_evidence": ("row_id", "kind", "subject"),
    "branches": ("session_id", "branch_id"),
    "projects": ("root_uri",),
    "connections": ("id",),
    "events": ("seq", "kind", "subject", "data"),
    "event_head": ("id", "seq"),
}
"""The tables that hold what users did, with the columns that the checker looks at."""


@dataclass(slots=True)
class State:
    """The end of an episode."""

    tables: dict[str, Rows] = field(default_factory=lambda: {name: [] for name in TABLES})
    transcripts: dict[str, list[str]] = field(default_factory=dict)
    """The texts that each session of the echo agent was told."""
    door_thoughts: dict[str, Rows] | None = None
    """Thoughts of each session as MCP tells them; None where nobody asked."""
    door_messages: dict[tuple[str, str], str] | None = None
    """The status of each message as REST tells it."""
    door_updates: dict[str, Rows] | None = None
    """The updates of each target as MCP tells them."""
    door_asks: dict[str, dict[str, Any]] | None = None
    """What a client is told of each ask."""

    def __getitem__(self, table: str) -> Rows:
        return self.tables[table]


# -- the store ------------------------------------------------------------------------------------------------------

Query = Callable[[str], Rows]


@contextmanager
def opened(world: World) -> Iterator[Query]:
    """A way to ask the store directly; SQLite is read from a copy, so that looking changes nothing."""
    if world.database_url is not None:
        with psycopg.connect(world.database_url, row_factory=dict_row, autocommit=True) as connection:
            yield lambda sql: connection.execute(sql.encode()).fetchall()
        return
    copy = world.folder / "looked-at.db"
    copy_database(world.database, copy)
    with open_copy(copy) as ask:
        yield ask


def copy_database(source: Path, copy: Path) -> None:
    """Copy a database with its log."""
    for ending in ("", "-wal", "-shm"):
        Path(f"{copy}{ending}").unlink(missing_ok=True)
    for ending in ("", "-wal"):
        if Path(f"{source}{ending}").exists():
            shutil.copyfile(f"{source}{ending}", f"{copy}{ending}")


@contextmanager
def open_copy(copy: Path) -> Iterator[Query]:
    """A way to ask a SQLite file."""
    reader = sqlite3.connect(copy)
    reader.text_factory = lambda data: data.decode("utf-8", "replace")
    reader.row_factory = lambda cursor, row: dict(zip([name for name, *_ in cursor.description], row, strict=True))
    try:
        yield lambda sql: reader.execute(sql).fetchall()
    finally:
        reader.close()


def read_store(world: World) -> State:
    """Every row that the checker looks at."""
    with opened(world) as ask:
        tables = {name: ask(f"SELECT {', '.join(columns)} FROM {name}") for name, columns in TABLES.items()}
    return State(tables=tables, transcripts=_transcripts(world))


def _transcripts(world: World) -> dict[str, list[str]]:
    """What each session of the echo agent was told; other files of lines are none of its.

    A full disk may cut a line of the high-water mark off, which is written again."""
    found: dict[str, list[str]] = {}
    for path in set(world.home.rglob("*.jsonl")) - set(world.home.glob(f"{high_water.NAME}*")):
        turns = [json.loads(line) for line in path.read_text().split("\n")[:-1]]  # a line that was cut off is no turn
        if turns and all(isinstance(turn, dict) and turn.keys() >= {"text", "answer"} for turn in turns):
            found[path.stem] = [turn["text"] for turn in turns]
    return found


# -- the doors ------------------------------------------------------------------------------------------------------


def read_doors(world: World, state: State, asks: Sequence[str]) -> None:
    """Ask for all of it again as a user would; `asks` are waited for."""
    with Agent(world, world.project("alpha"), session="chaos-reader") as reader:
        state.door_asks = {
            ask: reader.call("teams_session", operation="wait", askId=ask, timeout=ASK_SECONDS * 1000) for ask in asks
        }
        sessions = [row["id"] for row in state["sessions"]]
        state.door_thoughts = {session: _thoughts(reader, session) for session in sessions}
        state.door_updates = {target: _updates(reader, target) for target in TARGETS}
    state.door_messages = {}
    for target in TARGETS:
        for status in ("pending", "leased", "done", "failed", "dead", "expired"):
            listed = world.rest("GET", f"/api/bridge/messages?target={target}&status={status}&limit=200")
            for message in listed["messages"]:
                state.door_messages[target, message["id"]] = status


def _thoughts(reader: Agent, session: str) -> Rows:
    """Every thought of a session: a long one may go on with the next page."""
    found: dict[int, str] = {}
    cursor: dict[str, Any] = {}
    while True:
        page = reader.call("session", operation="export", sessionId=session, format="json", **cursor)
        for one in json.loads(page["text"])["thoughts"]:
            found[one["thoughtNumber"]] = found.get(one["thoughtNumber"], "") + one["thought"]
        if "nextCursor" not in page:
            return [{"number": number, "content": text} for number, text in found.items()]
        cursor = {"cursor": page["nextCursor"]}


def _updates(reader: Agent, target: str) -> Rows:
    found: Rows = []
    since: dict[str, Any] = {}
    while True:
        page = reader.call("pull_updates", target=target, **since)
        if not page["updates"]:
            return found
        found += page["updates"]
        since = {"since": page["cursor"]}
