"""Salvage keeps every row that SQLite can still read by its number or by an index, or names it as lost."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import uuid
from itertools import count
from pathlib import Path

import pytest
from tests.assembly import make_connections
from tests.contract.damages import Rows, damage, every_row, readable_rows, with_schema_of
from tests.contract.reasoning_world import ELSEWHERE, PROJECT, agent

from holdfast.errors import StoreCorrupt
from holdfast.reasoning.hash_chain_check import chain_check, register_check
from holdfast.reasoning.model import Draft
from holdfast.reasoning.service import Reasoning
from holdfast.store import Tx
from holdfast.store.opening import open_store
from holdfast.store.salvage.salvage import SalvageReport, salvage
from holdfast.store.sqlite import SqliteStore
from holdfast.store.verify import verify

SEEDS = 200
QUICK = 21
SIZES = (40, 40, 200, 800, 2_500, 6_000, 30_000)
MENDED: dict[str, tuple[int, ...]] = {
    "event_head": (),
    "session_register": (1,),
    "sessions": (1, 3, 5, 7, 9, 11, 13, 15),
}
"""Tables whose counts, sums and marks salvage puts right, which `verify` checks; and what of their rows must stay."""
EXPECTED = re.compile(
    r"was changed: it does not match its hash|does not follow the thought before it"
    r"|newest thought is not the one that was recorded last"
)
"""What damage inside a text or a hash looks like; a gap, a count or a sum would be a fault of the salvage."""


def _more(tx: Tx) -> None:
    """Rows of the other capabilities, of all sizes."""
    chance = random.Random(2)
    for number in range(1, 401):
        tx.run(
            "INSERT INTO bridge_messages (id, target, seq, text, fingerprint, sender, source, priority, status,"
            " attempts, created_at, expires_at)"
            " VALUES (:id, :target, :seq, :text, :print, 'a', 'tool', 1, 'pending', 0, 1, 9)",
            id=f"m{number}",
            target=f"target-{number % 7}",
            seq=number,
            text="message " * chance.choice((2, 20, 200, 900)),
            print=f"{chance.getrandbits(128):032x}",
        )
    for number in range(1, 41):
        tx.run(
            "INSERT INTO protocol_runs (id, day, number, root, project, protocol, definition, objective, phase, status,"
            " started_at, touched_at) VALUES (:id, 'day', :n, :root, 'p', 'p', :text, 'o', 'work', 'ended', 1, 1)",
            id=f"run-{number}",
            n=number,
            root=f"/home/dev/{number}",
            text="{}" + " " * chance.choice((10, 1_000, 5_000)),
        )
        for gate in ("plan", "test", "commit"):
            tx.run(
                "INSERT INTO protocol_gates (run, gate, status, evidence, checked_at)"
                " SELECT row_id, :gate, 'passed', '[]', 1 FROM protocol_runs WHERE number = :n",
                gate=gate,
                n=number,
            )


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of about 4 MB with reasoning, messages and runs, some of it removed again; the same bytes each time."""
    path = tmp_path_factory.mktemp("whole") / "holdfast.db"
    chance = random.Random(1)
    clock = count(1_800_000_000_000)
    store = SqliteStore.open(
        path, clock=lambda: next(clock), ids=lambda: str(uuid.UUID(int=chance.getrandbits(128), version=4))
    )

    async def scenario() -> None:
        connections = make_connections(store)
        await connections.start()
        reasoning = Reasoning(store, connections)
        sessions = []
        for number in range(110):
            caller = agent(f"agent {number}", PROJECT if number % 3 else ELSEWHERE)
            for _ in range(chance.randint(1, 9)):
                text = "".join(chance.choices("wörd ßtep näxt\n", k=chance.choice(SIZES) // 2))
                done = await reasoning.think(caller, Draft(f"{number} {text}", True), None, None)
            assert done is not None
            sessions.append(done.session.id)
        await store.write(_more)
        for session in sessions[20:40:4]:
            await reasoning.forget_session(session)
        await store.write(lambda tx: tx.run("UPDATE event_head SET epoch = :epoch", epoch="0" * 32))
        await store.close()

    asyncio.run(scenario())
    return path


@pytest.fixture(scope="session")
def existed(whole: Path) -> Rows:
    return every_row(whole)


def _named(report: SalvageReport, table: str) -> set[int]:
    """The row numbers that the report says something about."""
    found: set[int] = set()
    for loss in report.lost:
        if loss.table == table:
            for low, high in re.findall(r"(\d+)(?:-(\d+))?", loss.text.split(":")[0]):
                found |= set(range(int(low), min(int(high or low), int(low) + 100_000) + 1))
    return found


def _untold_losses(report: SalvageReport, existed: Rows, kept: Rows) -> list[str]:
    """Rows that are gone and that the report names neither by number nor by range nor by count."""
    untold = []
    for table, rows in existed.items():
        texts = [loss.text for loss in report.lost if loss.table == table]
        if table in ("schema_migrations", "event_head") or any("the whole table" in text for text in texts):
            continue
        named = _named(report, table)
        beyond = min((int(number) for text in texts for number in re.findall(r"from row (\d+) on", text)), default=None)
        counted = sum(int(n) for text in texts for n in re.findall(r"^(\d+) rows (?:whose|with)", text))
        gone = [n for n in rows if n not in kept[table] and n not in named and (beyond is None or n < beyond)]
        if len(gone) > counted:
            untold.append(f"{table} rows {gone}")
    return untold


def _unnamed_losses(report: SalvageReport, readable: Rows, kept: Rows) -> list[str]:
    wrong = []
    for table, rows in readable.items():
        if table == "schema_migrations":
            continue
        named = _named(report, table)
        for number, row in rows.items():
            got = kept[table].get(number)
            if got is not None and table in MENDED:
                same = all(got[place] == row[place] for place in MENDED[table])
            else:
                same = got == row
            if not same and number not in named:
                wrong.append(f"{table} row {number}: {'changed' if got else 'lost'}")
    return wrong


async def _problems(home: Path) -> list[str]:
    store, notices = await open_store(home)
    try:
        assert notices == [], "a salvaged store is whole"
        report = await verify(store, {"register": register_check, "thoughts": chain_check})
        return [f"{p.subject}: {p.text}" for p in report.problems if not p.known and not EXPECTED.search(p.text)]
    finally:
        await store.close()


def keeps_what_is_readable(whole: Path, existed: Rows, home: Path, seed: int) -> tuple[int, int, int]:
    """Damage a copy, salvage it, compare; returns how many thoughts there were, are readable, and were kept."""
    home.mkdir()
    path = home / "holdfast.db"
    shutil.copyfile(whole, path)
    how = damage(path, seed)
    with_schema_of(whole, path, home / "readable.db")
    readable = readable_rows(home / "readable.db", existed)
    report = salvage(path, StoreCorrupt("damaged"))
    kept = every_row(path)
    context = f"seed {seed} ({how})"
    assert _unnamed_losses(report, readable, kept) == [], context
    assert _untold_losses(report, existed, kept) == [], f"{context}: {[str(loss) for loss in report.lost]}"
    assert asyncio.run(_problems(home)) == [], context
    for row in existed["session_register"].values():
        if row[3] == b"forgotten":
            assert row[1] not in {session[1] for session in kept["sessions"].values()}, f"{context}: it was forgotten"
    shutil.rmtree(home)
    return len(existed["thoughts"]), len(readable["thoughts"]), len(kept["thoughts"])


@pytest.mark.early
def test_every_row_that_sqlite_can_read_is_kept_or_named(whole: Path, existed: Rows, tmp_path: Path) -> None:
    for seed in range(QUICK):
        keeps_what_is_readable(whole, existed, tmp_path / "home", seed)


@pytest.mark.long
def test_every_row_that_sqlite_can_read_is_kept_or_named_over_200_damages(
    whole: Path, existed: Rows, tmp_path: Path
) -> None:
    for seed in range(SEEDS):
        keeps_what_is_readable(whole, existed, tmp_path / "home", seed)
