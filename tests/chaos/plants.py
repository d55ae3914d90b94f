"""Planted defects: the product copied and changed in one place, to see whether the checker notices.

To add one: a name, what it breaks, the faults under which it must be found, and the edits. An edit that no longer fits
the product fails loudly, so that a plant never runs on a product without its defect.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src"


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in one file of the package."""

    file: str
    old: str
    new: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Plant:
    """One defect."""

    name: str
    breaks: str
    engine: str
    faults: tuple[str, ...]
    """Those that are run to find it; the first must be enough."""
    edits: tuple[Edit, ...]


class DoesNotApply(Exception):
    """The product has changed where a defect was to be planted."""


def product(folder: Path, sources: Path = SOURCES, plant: Plant | None = None) -> Path:
    """A copy of the product, perhaps with a defect in it: the directory to put on PYTHONPATH."""
    copy = folder / "src"
    shutil.copytree(sources, copy)
    for edit in plant.edits if plant else ():
        file = copy / "holdfast" / edit.file
        text = file.read_text()
        if text.count(edit.old) != edit.times:
            found = text.count(edit.old)
            raise DoesNotApply(
                f"{plant and plant.name}: {edit.file} has {found} times, not {edit.times} times: {edit.old!r}"
            )
        file.write_text(text.replace(edit.old, edit.new))
    return copy


PLANTS = {
    plant.name: plant
    for plant in (
        Plant(
            "no-fsync",
            "a commit waits for no disk",
            "sqlite",
            ("power-cut",),
            (Edit("store/sqlite.py", "PRAGMA synchronous = FULL", "PRAGMA synchronous = OFF"),),
        ),
        Plant(
            "answer-before-commit",
            "callers are told before their transaction is committed",
            "sqlite",
            ("power-cut",),
            (
                Edit(
                    "store/sqlite.py",
                    "            self._release_waiters()\n            if len(group) > 1 or group[0].error is None:\n",
                    "            self._release_waiters()\n            deliver(group)\n"
                    "            if len(group) > 1 or group[0].error is None:\n",
                ),
                Edit("store/sqlite_job.py", "        if job.done.cancelled():", "        if job.done.done():"),
            ),
        ),
        Plant(
            "send-forgets-key",
            "a repeated send_message is a second message",
            "sqlite",
            ("lost-answer",),
            (
                Edit(
                    "bridge/service.py",
                    "Sent(target, made)\n\n        return await self._store.write(first_time(key, write))",
                    "Sent(target, made)\n\n        if key is not None:\n            key.settled = True\n"
                    "        return await self._store.write(write)",
                ),
            ),
        ),
        Plant(
            "ask-forgets-key",
            "a repeated teams_ask is a second ask",
            "sqlite",
            ("lost-answer",),
            (
                Edit(
                    "teams/service.py",
                    "if (known := locked_answer(tx, key)) is not None:",
                    "if (known := None) is not None:",
                ),
            ),
        ),
        Plant(
            "finish-without-lease",
            "whoever knows a message's id can end it",
            "sqlite",
            ("none",),
            (
                Edit(
                    "bridge/service.py",
                    "        if message.status != Status.LEASED or message.lease_by != by:",
                    "        if message.status not in (Status.LEASED, Status.PENDING):",
                ),
            ),
        ),
        Plant(
            "take-without-lease",
            "the next message is handed out while one is out",
            "sqlite",
            ("none",),
            (Edit("bridge/queries/queue.py", "(Priority.STOP if queue.out else least)", "least"),),
        ),
        Plant(
            "two-takers",
            "a message that is out is handed out to another taker as well",
            "sqlite",
            ("none",),
            (
                Edit(
                    "bridge/service.py",
                    "(message for message in queue.out if message.lease_by == by)",
                    "(message for message in queue.out)",
                ),
            ),
        ),
        Plant(
            "newest-first",
            "the newest message is handed out first",
            "sqlite",
            ("none",),
            (
                Edit(
                    "bridge/queries/queue.py",
                    "ORDER BY priority DESC, seq LIMIT 1)",
                    "ORDER BY priority DESC, seq DESC LIMIT 1)",
                ),
            ),
        ),
        Plant(
            "salvage-drops-messages",
            "salvage leaves out the table of messages",
            "sqlite",
            ("overwrite-pages",),
            (
                Edit(
                    "store/salvage/salvage.py",
                    "if table != LEDGER_TABLE:\n",
                    'if table not in (LEDGER_TABLE, "bridge_messages"):\n',
                ),
            ),
        ),
        Plant(
            "events-without-lock",
            "event numbers are taken without a lock",
            "postgres",
            ("none",),
            (
                Edit(
                    "store/events.py",
                    "    pending = outbox.pending\n",
                    "    pending = outbox.pending\n"
                    '    newest = tx.one("SELECT coalesce(max(seq), 0) AS seq FROM events")\n',
                ),
                Edit(
                    "store/events.py",
                    '" ((SELECT seq FROM event_head WHERE id = 1) + :place, :at, :kind, :subject, :data)",\n'
                    "            place=place,",
                    '" (:place, :at, :kind, :subject, :data) ON CONFLICT (seq) DO NOTHING",\n'
                    "            place=(newest or {})['seq'] + place + len(pending),",
                ),
            ),
        ),
        Plant(
            "group-rolls-back",
            "of several thoughts in one commit some are undone, and all acknowledged",
            "sqlite",
            ("none",),
            (
                Edit(
                    "store/sqlite.py",
                    "                emitted |= self._run_job(connection, job)\n"
                    "            except BaseException as error:\n                if connection.get_autocommit():",
                    '                connection.execute("SAVEPOINT planted")\n'
                    "                emitted |= self._run_job(connection, job)\n"
                    "                if len(group) > 1 and job is group[-1]:\n"
                    '                    connection.execute("ROLLBACK TO planted")\n'
                    "            except BaseException as error:\n"
                    "                if connection.get_autocommit():",
                ),
            ),
        ),
        Plant(
            "relay-forgets",
            "a relay does not repeat what a dead daemon left unanswered",
            "sqlite",
            ("kill",),
            (
                Edit(
                    "relay/session.py",
                    "            if request is not opening:\n                self._to_daemon(request.line)",
                    "            if request is not opening and not request.lives:\n"
                    "                self._to_daemon(request.line)",
                ),
            ),
        ),
        Plant(
            "relay-new-key",
            "a relay repeats a call under another key",
            "sqlite",
            ("lost-answer",),
            (
                Edit(
                    "relay/session.py",
                    "            if request is not opening:\n                self._to_daemon(request.line)",
                    "            if request is not opening:\n"
                    "                changed = f'{self.relay}:{self._life}.'.encode()\n"
                    "                self._to_daemon(request.line.replace(f'{self.relay}:'.encode(), changed))",
                ),
            ),
        ),
        Plant(
            "verify-skips-chain",
            "verify does not recompute hashes",
            "sqlite",
            ("flip-text",),
            (
                Edit(
                    "reasoning/hash_chain_check.py",
                    "if chain.seal(prev_hash, thought) != own_hash:",
                    "if own_hash is None:",
                ),
            ),
        ),
        Plant(
            "verify-skips-events",
            "verify does not look at the numbers of events",
            "sqlite",
            ("delete-event",),
            (
                Edit(
                    "store/verify.py",
                    'if span["n"] == span["last"] - span["first"] + 1:',
                    'if span["n"] <= span["last"]:',
                ),
            ),
        ),
        Plant(
            "thoughts-misplaced",
            "whoever begins a session is not put on it",
            "sqlite",
            ("none",),
            (
                Edit(
                    "reasoning/service.py",
                    "            if connection is not None:\n"
                    "                self._connections.attach_session(tx, connection, session.id)\n"
                    "            return StartedSession(",
                    "            return StartedSession(",
                ),
            ),
        ),
        Plant(
            "answers-crossed",
            "an ask is answered with the answer of the one before",
            "sqlite",
            ("none",),
            (
                Edit("teams/runner.py", "answer=turn.text,", "answer=_crossed(turn.text),"),
                Edit(
                    "teams/runner.py",
                    "logger = logging.getLogger(__name__)\n",
                    "logger = logging.getLogger(__name__)\n"
                    "_said = []\n\n\n"
                    "def _crossed(text):\n"
                    "    _said.append(text)\n"
                    "    return _said[-2] if len(_said) % 5 == 2 else text\n",
                ),
            ),
        ),
    )
}
"""Every defect that can be planted."""
