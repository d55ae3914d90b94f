"""The briefing: what an agent pays for it when it starts, and how long it takes in a store that has grown."""

from __future__ import annotations

import json
import statistics
import time
import uuid
from dataclasses import replace
from functools import partial
from pathlib import Path

import uvloop

from bench.hooks import EMPTY, Unexpected, hook, timed
from bench.prefill import PROJECT, copy_into, store_with
from bench.report import Effort, Progress, Row, compare, milliseconds
from bench.served import Served
from bench.workshop import scratch
from holdfast import app as application
from holdfast.bridge.model import MAX_PENDING, TTL_MS, Priority
from holdfast.bridge.queries import queue as bridge_queries
from holdfast.config import Settings
from holdfast.hooks.dispatch import HookContext
from holdfast.protocol import definition
from holdfast.protocol import queries as protocol_queries
from holdfast.protocol.protocols import PROTOCOLS
from holdfast.protocol.runs import Run, RunStatus
from holdfast.store import Store, Tx
from holdfast.store.sqlite import SqliteStore, system_clock
from holdfast.teams.service import Teams
from holdfast.times import iso

START_TARGET = 1.5
ROUNDS_PER_START = 5
GROWN_TARGET_MS = 20.0
MESSAGES, RUNS, TARGETS = 10_000, 1_000, 10
ENTRIES = 2_000
"""Entries of the transcript that the last session left."""


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """The session-start hook beside an empty python, and the briefing in the server with a grown store."""
    prefilled = store_with(effort.length // 50, 50, progress)
    return [_start(effort, progress), uvloop.run(_grown(prefilled, effort, progress))]


def _start(effort: Effort, progress: Progress) -> Row:
    """The hook as it is registered, with a warm daemon, a small store and something to tell."""
    rounds = effort.starts * ROUNDS_PER_START
    ours: list[float] = []
    empty: list[float] = []
    with scratch() as place, Served(place / "home") as daemon:
        project = place / "project"
        project.mkdir()
        left = _left_behind(place / "transcripts", project, 50)
        hook("SessionStart", project, daemon.env, source="startup", session_id=left.stem, transcript_path=str(left))
        for done in range(rounds):
            path = left.with_name(f"{uuid.uuid4()}.jsonl")
            seconds, told = hook(
                "SessionStart", project, daemon.env, source="startup", session_id=path.stem, transcript_path=str(path)
            )
            if b"Mend the fence" not in told:
                raise Unexpected(told.decode(errors="replace"))
            ours.append(seconds)
            hook("SessionEnd", project, daemon.env, reason="other", session_id=path.stem, transcript_path=str(path))
            empty.append(timed(EMPTY, b"", daemon.env, project)[0])
            progress("session start", done + 1, rounds)
    what = f"session-start hook with a briefing, median of {rounds}"
    return compare(what, ours, empty, theirs_is="empty python", target=START_TARGET)


async def _grown(prefilled: Path, effort: Effort, progress: Progress) -> Row:
    """100,000 thoughts, 10,000 messages and 1,000 runs; each start is a new agent's."""
    with scratch() as place:
        home = place / "home"
        copy_into(home, prefilled)
        names = ["bench", *(f"other-{number}" for number in range(1, TARGETS))]
        teams = {name: {"project": str(PROJECT if name == "bench" else place / name)} for name in names}
        (home / "teams.json").write_text(json.dumps({"teams": teams}))
        store = SqliteStore.open(home / "holdfast.db")
        try:
            await _fill(store, names)
            app = application.build(store, Settings(home=home), "bench")
            await app.service(Teams).refresh()
            left = _left_behind(place / "transcripts", PROJECT, ENTRIES)
            taken = [await _told(app, left)]  # the first one reads the transcript, and is what a crash costs
            for done in range(effort.loads):
                taken.append(await _told(app, left.with_name(f"{uuid.uuid4()}.jsonl")))
                progress("grown store", done + 1, effort.loads)
        finally:
            await store.close()
    slow = statistics.quantiles(taken[1:], n=20)[-1]
    return Row(
        f"briefing in the server: {effort.length:,} thoughts, {MESSAGES:,} messages, {RUNS:,} runs, 19 of 20 within",
        f"{milliseconds(slow)} (median {milliseconds(statistics.median(taken[1:]))})",
        value=slow * 1000,
        target=GROWN_TARGET_MS,
        unit="ms",
        samples={"holdfast": taken},
    )


async def _told(app: application.App, transcript: Path) -> float:
    payload = {
        "session_id": transcript.stem,
        "cwd": str(PROJECT),
        "transcript_path": str(transcript),
        "source": "startup",
    }
    began = time.perf_counter()
    reply = await app.hooks.handle("SessionStart", HookContext(), json.dumps(payload).encode())
    seconds = time.perf_counter() - began
    if b"Messages waiting" not in reply.stdout:
        raise Unexpected(reply.stdout.decode(errors="replace"))
    return seconds


async def _fill(store: Store, names: list[str]) -> None:
    def messages(tx: Tx, name: str) -> None:
        for number in range(min(MESSAGES // TARGETS, MAX_PENDING)):
            bridge_queries.enqueue(
                tx,
                name,
                f"Work number {number}. " * 10,
                message_id=str(number),
                priority=Priority.NORMAL,
                sender=f"sender-{number % 50}",
                source="bench",
                ttl_ms=TTL_MS,
                reply_to=None,
            )

    def runs(tx: Tx) -> None:
        protocol = PROTOCOLS["simple"]
        for number in range(RUNS):
            root = PROJECT.resolve().as_uri()
            new = Run(0, "", root, root, protocol.name, definition.dumps(protocol), f"Objective {number}")
            run = protocol_queries.begin(tx, new, ())
            if number < RUNS - 1:
                protocol_queries.end(tx, replace(run, status=RunStatus.COMPLETE, summary="done"))

    for name in names:
        await store.write(partial(messages, name=name))
    await store.write(runs)


def _left_behind(folder: Path, project: Path, entries: int) -> Path:
    """The transcript of a session that was cut off."""
    folder.mkdir(parents=True)
    path = folder / f"{uuid.uuid4()}.jsonl"
    common = {"sessionId": path.stem, "cwd": str(project), "timestamp": iso(system_clock())}
    lines = [{"type": "user", "message": {"role": "user", "content": "Mend the fence, north side first."}}]
    for number in range(entries):
        use = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "Read",
            "input": {"file_path": f"{project}/{number}.txt"},
        }
        lines.append({"type": "assistant", "message": {"role": "assistant", "content": [use]}})
        done = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "a line of text\n" * 20}
        lines.append({"type": "user", "message": {"role": "user", "content": [done]}})
    path.write_text("".join(json.dumps(common | {"uuid": str(uuid.uuid4())} | line) + "\n" for line in lines))
    return path
