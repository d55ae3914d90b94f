"""The store that the dashboard is measured with: one morning acted out by real processes, so that every page has
something to show, and around it what years of use leave. Built once and kept in `.bench`.

10,000 sessions of 50 thoughts, one of 100,000, two of that length that branch all the time, 10,000 messages, 10,000
asks of teams and 3,000 sessions of agents in 40 projects.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.browser.story import Story
from tests.contract.teams_pages_world import add_asks
from tests.transcripts import Transcript

from bench.bridge import CALLER, TEXT
from bench.prefill import FRESH_SECONDS, PROJECT, Place, add_sessions, fingerprint
from bench.report import Effort, Progress
from bench.workshop import WORKSHOP
from holdfast.agents.claude.transcripts.store import TranscriptStore
from holdfast.bridge.model import MAX_PENDING, Outcome
from holdfast.bridge.service import Bridge
from holdfast.dashboard.urls import conversation_url, project_url, session_url, survival_url
from holdfast.identity.project import Root, RootSource, canonical_uri, locate
from holdfast.reasoning.session_browser import SessionBrowser
from holdfast.store import Store, Tx
from holdfast.store.high_water import HighWater
from holdfast.store.sqlite import SqliteStore
from holdfast.teams.queries import conversations
from holdfast.teams.team import Team
from holdfast.times import iso

EXPORT, ASK_TEXT = "/sessions/{id}/export/{format}", "/teams/asks/{id}/text"
"""Files that the store has an address of: pages link to them only where a session is short, or an answer long."""
TARGET = "bench"
"""The team and target of the project that all large things belong to."""
THOUGHTS_PER_SESSION = 50
AT_ONCE = 500
"""Messages that wait at the same time while the queue is filled."""
DAY = 24 * 3_600_000
QUARTER = 90 * DAY
ANSWER = "Not yet: a repeated refund is booked twice. Send the order's id as a key, then the second is answered.\n" * 12


@dataclass(frozen=True, slots=True)
class Address:
    """A page to open, by the path that the site knows it by; `of` says which one it is."""

    pattern: str
    of: str
    path: str


@dataclass(frozen=True, slots=True)
class LargeStore:
    """A data directory to be copied, and the addresses of what is large in it."""

    home: Path
    addresses: Sequence[Address]


def large_store(effort: Effort, progress: Progress) -> LargeStore:
    """Return the store, built first if it is missing or old."""
    PROJECT.mkdir(parents=True, exist_ok=True)
    root = locate(str(PROJECT), RootSource.DIRECTORY)
    name = f"pages-{effort.sessions}-{effort.length}"
    folder = WORKSHOP / f"{name}-{fingerprint(root)}"
    ready = folder / "addresses.json"
    if not ready.exists() or time.time() - ready.stat().st_mtime > FRESH_SECONDS:
        for stale in WORKSHOP.glob(f"{name}-*"):
            shutil.rmtree(stale)
        addresses = _build(folder, root, effort, progress)
        ready.write_text(json.dumps([asdict(one) for one in addresses]))
    return LargeStore(folder / "holdfast", [Address(**one) for one in json.loads(ready.read_text())])


def _build(folder: Path, root: Root, effort: Effort, progress: Progress) -> list[Address]:
    folder.mkdir(parents=True)
    story = Story(folder)
    try:
        progress("acting out a morning", 0, 1)
        story.tell()
    finally:
        story.close()
    home = story.holdfast.home
    settings = json.loads((home / "teams.json").read_text())
    settings["teams"][TARGET] = {"project": str(PROJECT), "delivery": "hook"}
    (home / "teams.json").write_text(json.dumps(settings))
    addresses = asyncio.run(_grow(home / "holdfast.db", root, effort, progress))
    kiosk = canonical_uri(str(story.project("kiosk")))
    key = locate(str(story.project("kiosk")), RootSource.DIRECTORY).key or kiosk
    return [
        *addresses,
        Address("/projects/{id}", "the story", project_url(key)),
        Address("/projects/{id}/sessions/{session}", "a kill", survival_url(key, story.killed)),
        Address("/projects/{id}/sessions/{session}", "what went on", survival_url(key, story.went_on)),
    ]


async def _grow(path: Path, root: Root, effort: Effort, progress: Progress) -> list[Address]:
    store = SqliteStore.open(path)
    try:
        await add_sessions(store, root, effort.sessions, THOUGHTS_PER_SESSION, progress)
        addresses = await _sessions(store, root, effort.length, progress)
        await _messages(store, effort.sessions, progress)
        addresses += await _asks(store, effort.sessions)
        await store.write(partial(_agent_sessions, count=effort.sessions * 3 // 10))
        progress("indexing", 0, 1)
        await SessionBrowser(store).index()
        await HighWater(path.parent, store).note()  # as a daemon would have, once a second
    finally:
        await store.close()
    project = root.key or root.uri
    return [*addresses, Address("/projects/{id}", "the large one", project_url(project))]


async def _sessions(store: Store, root: Root, length: int, progress: Progress) -> list[Address]:
    """Add sessions that are hard to draw, and one that is easy."""

    def crossed(number: int) -> dict[str, Any]:
        """Two branches from the first thought that take turns."""
        return {"branch_id": ("even", "odd")[number % 2], "branch_from": 1} if number > 1 else {}

    def bushy(number: int) -> dict[str, Any]:
        """A new branch of two thoughts from every third."""
        start = number // 3 * 3
        return {"branch_id": f"branch-{start}", "branch_from": start} if start and number > start else {}

    def revising(number: int) -> dict[str, Any]:
        """Every thought revises the one before."""
        return {"revises": number - 1} if number > 1 else {}

    hard = {"on two branches in turn": crossed, "with a branch at every third": bushy, "each a revision": revising}
    kinds: list[tuple[str, int, Place]] = [
        ("5 thoughts", 5, lambda _: {}),
        (f"{length:,} thoughts", length, lambda _: {}),
        *((f"{one:,} {what}", one, place) for what, place in hard.items() for one in (length // 5, length)),
    ]
    addresses = []
    for what, count, place in kinds:
        session = await add_sessions(store, root, 1, count, progress, place)
        addresses.append(Address("/sessions/{id}", what, session_url(session)))
        if count == 5:
            addresses.append(Address(EXPORT, what, f"{session_url(session)}/export/markdown"))
        else:
            addresses.append(Address("/sessions/{id}", f"{what}, in its middle", session_url(session, count // 2)))
    return addresses


async def _messages(store: Store, count: int, progress: Progress) -> None:
    """Send messages, and answer all but as many as may wait."""
    bridge = Bridge(store, lambda: {TARGET: Team(TARGET, PROJECT)})
    left = min(MAX_PENDING, count // 10)
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        await asyncio.gather(*(bridge.send(TARGET, f"{one}: {TEXT}", message_id=f"m-{one}") for one in numbers))
        for _ in range(min(numbers.stop, count - left) - first):
            taken = await bridge.take(CALLER, TARGET)
            assert taken.message is not None
            await bridge.finish(CALLER, taken.message.id, Outcome.DONE, "The lock is taken once now.")
        progress("sending messages", numbers.stop, count)


async def _asks(store: Store, count: int) -> list[Address]:
    """Add asks over a quarter: many conversations, and one with a fifth of all and the transcript of its agent."""
    transcript, talks = Transcript(PROJECT), count // 40

    def write(tx: Tx) -> int:
        begin = tx.now() - QUARTER
        for number in range(talks):
            pair = (("storefront", "payments"), ("payments", "storefront"), ("", "storefront"))[number % 3]
            talk = conversations.begin(tx, *pair, f"thread-{number}")
            times = [begin + (number * 32 + place) * (QUARTER // (talks * 32)) for place in range(32)]
            _add(tx, talk.id, talk.to_team, times)
        talk = conversations.adopt(tx, "", TARGET, "main", transcript.session_id)
        times = [begin + place * (QUARTER // (count // 5)) for place in range(count // 5)]
        _add(tx, talk.id, TARGET, times)
        for at in times:
            _turn(transcript, at)
        return talk.id

    number = await store.write(write)
    key = {"project_key": "bench", "session_id": transcript.session_id, "subpath": ""}
    await TranscriptStore(store).append(key, transcript.entries)
    url = conversation_url(number)
    return [
        Address("/teams/conversations/{id}", f"{count // 5:,} turns", url),
        Address(ASK_TEXT, "one turn", f"/teams/asks/a{number}-0/text"),
    ]


def _add(tx: Tx, conversation: int, team: str, times: Sequence[int]) -> None:
    asks = [
        {"at": at, "finished": at + 60_000, "text": f"Is refund {at} safe to repeat?", "answer": ANSWER, "cost": 1_200}
        for at in times
    ]
    add_asks(tx, conversation, team, asks)
    conversations.used(tx, conversation, 2 * len(asks))


def _turn(transcript: Transcript, at: int) -> None:
    def time_of(second: int) -> str:
        return iso(at + second * 1_000)

    transcript.ask(f"Is refund {at} safe to repeat?", timestamp=time_of(0))
    for step in range(3):
        call = transcript.call("Bash", {"command": f"pytest -x tests/test_{step}.py"}, timestamp=time_of(2 * step + 1))
        transcript.answer(call, "1 passed in 0.03 s\n" * 20, timestamp=time_of(2 * step + 2))
    transcript.say(ANSWER, timestamp=time_of(20))


def _agent_sessions(tx: Tx, count: int) -> None:
    """Add what hooks and ledgers keep of agents' sessions: those of the story again, in other projects and earlier."""
    known = {table: tx.all(f"SELECT * FROM {table}") for table in ("agent_sessions", "ledgers", "recoveries")}
    names = [row["session_id"] for row in known["agent_sessions"]]
    newest = tx.now()
    for number in range(count):
        at, name = newest - (number + 1) * (QUARTER // count), names[number % len(names)]
        again = {one: str(uuid.uuid5(uuid.NAMESPACE_OID, f"{one}-{number}")) for one in names}
        changed = {
            "root": f"file:///home/me/projects/project-{number % 40}",
            "project_key": None,
            "ended_at": None if number % 20 == 0 else at,  # one in twenty was cut off
            **dict.fromkeys(("started_at", "seen_at", "last_at", "at"), at),
        }
        for table, rows in known.items():
            for row in rows:
                if row["session_id"] == name:
                    values = {**row, **{column: value for column, value in changed.items() if column in row}}
                    values.pop("row_id", None)
                    texts = {column: value for column, value in values.items() if isinstance(value, str)}
                    for column, text in texts.items():
                        values[column] = re.sub("|".join(names), partial(_renamed, again), text)
                    columns, marks = ", ".join(values), ", ".join(f":{column}" for column in values)
                    tx.run(f"INSERT INTO {table} ({columns}) VALUES ({marks})", **values)


def _renamed(again: dict[str, str], found: re.Match[str]) -> str:
    return again[found[0]]
