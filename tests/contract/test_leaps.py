"""What was in force before a leap of the clock has the time after it that it had left."""

from __future__ import annotations

import pytest
from tests.contract.conftest import Place

from holdfast.daemon.clock_leaps import DEADLINES, LONGEST_LEASE_MS, Leap, carry_over
from holdfast.protocol.queries import ORPHANED_AFTER_MS
from holdfast.store import Tx
from holdfast.store.calls import KEEP_MS

pytestmark = pytest.mark.anyio

HOUR = 3_600_000
BEFORE = 1_800_000_000_000
MINUTE = 60_000

CONVERSATION = (
    "INSERT INTO conversations (from_team, to_team, thread, session_id, begun, status, message_count, compacted_count,"
    " created_at, last_used_at, last_started_at, lease_until)"
    " VALUES (:key, 'b', '', :key, 0, 'open', 0, 0, 0, 0, 0, :at)"
)
ROWS = {
    "daemons": "INSERT INTO daemons (id, lease_until) VALUES (:key, :at)",
    "leases": "INSERT INTO leases (name, holder, until) VALUES (:key, '', :at)",
    "conversations": CONVERSATION,
    "asks": "INSERT INTO asks (id, conversation_id, to_team, text, chain, status, attempts, created_at, lease_until)"
    " VALUES (:key, (SELECT min(id) FROM conversations), 'b', '', '', 'running', 1, 0, :at)",
    "permissions": "INSERT INTO permissions (id, ask_id, team, tool, input, created_at, expires_at)"
    " VALUES (:key, '', '', '', '', 0, :at)",
    "bridge_messages": "INSERT INTO bridge_messages (id, target, seq, text, fingerprint, sender, source, priority,"
    " status, attempts, created_at, expires_at, lease_until)"
    " VALUES (:key, :key, 1, '', '', '', '', 0, 'leased', 1, 0, 0, :at)",
    "agent_sessions": "INSERT INTO agent_sessions (session_id, root, machine, source, started_at, seen_at, alive_until)"
    " VALUES (:key, '', '', '', 0, 0, :at)",
    "protocol_runs": "INSERT INTO protocol_runs (id, day, number, root, project, protocol, definition, objective,"
    " phase, status, started_at, touched_at) VALUES (:key, '', 1, :key, :key, '', '', '', '', 'active', 0, :at)",
    "calls": "INSERT INTO calls (caller, call_key, tool, arguments, result, at) VALUES ('', :key, '', '', '{}', :at)",
}
KEYS = {
    "leases": "name",
    "conversations": "session_id",
    "agent_sessions": "session_id",
    "calls": "call_key",
}


async def _after(place: Place, leap: Leap, times: dict[tuple[str, str], dict[str, int]]) -> dict[str, dict[str, int]]:
    """What became of rows, by table and key; `times` has them by table and column. The leap is carried over twice."""
    store = place.open()

    def write(tx: Tx) -> None:
        tx.run(CONVERSATION, key="the one that asks are in", at=0)
        for (table, _), rows in times.items():
            for key, at in rows.items():
                tx.run(ROWS[table], key=key, at=at)
        carry_over(tx, leap)

    def read(tx: Tx) -> dict[str, dict[str, int]]:
        return {
            table: {
                row["key"]: row["at"]
                for row in tx.all(f"SELECT {KEYS.get(table, 'id')} AS key, {column} AS at FROM {table}")
                if row["key"] in rows
            }
            for (table, column), rows in times.items()
        }

    try:
        await store.write(write)
        # Another daemon on the same PostgreSQL, which noticed it a moment later.
        again = Leap(leap.before + 900, leap.now + 900)
        await store.write(lambda tx: carry_over(tx, again))
        return await store.read(read)
    finally:
        await store.close()


@pytest.mark.parametrize("leap", [30 * HOUR, -30 * HOUR], ids=["forward", "back"])
async def test_every_lease_has_what_was_left_of_it(place: Place, leap: int) -> None:
    now = BEFORE + leap
    given = {"in force": BEFORE + 10 * MINUTE, "long": BEFORE + LONGEST_LEASE_MS, "over": BEFORE - 40 * HOUR}
    found = await _after(place, Leap(BEFORE, now), dict.fromkeys(DEADLINES, given))
    kept = {"in force": now + 10 * MINUTE, "long": now + LONGEST_LEASE_MS, "over": BEFORE - 40 * HOUR}
    assert found == {table: kept for table, _ in DEADLINES}


async def test_a_lease_that_was_about_to_end_is_not_prolonged_by_the_leap(place: Place) -> None:
    """Two daemons notice a leap at different moments, and both carry it over."""
    now = BEFORE + 30 * HOUR
    found = await _after(place, Leap(BEFORE, now), {("daemons", "lease_until"): {"ending": BEFORE + 100}})
    assert now <= found["daemons"]["ending"] <= now + 900 + LONGEST_LEASE_MS


@pytest.mark.parametrize("leap", [30 * HOUR, -30 * HOUR], ids=["forward", "back"])
async def test_a_run_at_work_has_a_new_day_and_an_older_one_has_not(place: Place, leap: int) -> None:
    now = BEFORE + leap
    rows = {"at work": BEFORE - HOUR, "left behind": BEFORE - ORPHANED_AFTER_MS - 40 * HOUR}
    found = await _after(place, Leap(BEFORE, now), {("protocol_runs", "touched_at"): rows})
    assert abs(found["protocol_runs"]["at work"] - now) < 1000
    assert found["protocol_runs"]["left behind"] == rows["left behind"]


async def test_the_answer_to_a_call_is_kept_for_its_repetition_over_a_leap(place: Place) -> None:
    rows = {"unanswered": BEFORE - MINUTE, "old": BEFORE - KEEP_MS - MINUTE}
    found = await _after(place, Leap(BEFORE, BEFORE + 30 * HOUR), {("calls", "at"): rows})
    assert abs(found["calls"]["unanswered"] - BEFORE - 30 * HOUR) < 1000
    assert found["calls"]["old"] == rows["old"]
