"""Rows of an archive put into a store: what is here stays, and gives way only to what goes on from it.

The rules, by what a row is:

- A reasoning session grows by the archive's thoughts where its chain of hashes goes on from the chain here. Where both
  went on differently, what is here stays and that is said. Title and tags come with the thoughts.
- A protocol run is the same one when project, start and objective are. The later touched one stays. An active one
  whose gates run commands that the project's own configuration here does not name goes into the history: a file from
  elsewhere never brings commands.
- A message, a notice and an ask are what their id says; one that is here stays as it is. One that somebody had taken
  there waits again here.
- A task, a ledger and an agent's session: the later one stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from shlex import quote

from holdfast.archive.checking import by, commands_of, protocol_of
from holdfast.archive.place import ProjectPlace
from holdfast.archive.tables import Rows
from holdfast.briefing.ledger import forgotten
from holdfast.protocol.model import run_id
from holdfast.protocol.runs import RunStatus
from holdfast.reasoning import projects
from holdfast.store import Row, Tx, register

# ruff: noqa: S608 - table and column names are this program's own


@dataclass(slots=True)
class Taken:
    """What an adoption changed, and what a person should know of it."""

    added: Counter[str] = field(default_factory=Counter)
    """New rows, by table."""
    changed: Counter[str] = field(default_factory=Counter)
    """Rows that gave way to later ones, by table."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Here:
    """Where the rows go."""

    place: ProjectPlace
    machine: str
    transcripts: Mapping[str, str]
    """The transcript files by session."""
    commands: Collection[tuple[str, ...]]
    """What the gates of the project's own configuration run."""


def merge_rows(tx: Tx, rows: Rows, here: Here) -> Taken:
    """Put the rows into the store, for the project as it lies here."""
    place = here.place
    taken = Taken()
    projects.know(tx, place.root)
    forgotten.lift(tx, place.root)  # whoever adopts a project wants to be told of it
    _reasoning(tx, rows, place, taken)
    _protocol(tx, rows, here, taken)
    _teams(tx, rows, place, taken)
    _agents(tx, rows, here, taken)
    if taken.added or taken.changed:
        tx.emit("archive.adopted", place.root.uri, {"added": dict(taken.added), "changed": dict(taken.changed)})
    return taken


# -- reasoning --------------------------------------------------------------------------------------------------------


def _reasoning(tx: Tx, rows: Rows, place: ProjectPlace, taken: Taken) -> None:
    thoughts, branches = by(rows["thoughts"], "session_id"), by(rows["branches"], "session_id")
    for session in rows["sessions"]:
        theirs = thoughts.get(session["id"], [])
        here = tx.one("SELECT thought_count, head_hash, root_uri FROM sessions WHERE id = :id", id=session["id"])
        if here is None:
            _insert(tx, "sessions", {**session, "root_uri": place.root.uri, "project_key": place.root.key})
            register.enter(tx, session["id"], session["head_hash"])
            taken.added["sessions"] += 1
        elif here["head_hash"] == session["head_hash"]:
            continue
        elif any(row["prev_hash"] == here["head_hash"] for row in theirs):
            theirs = [row for row in theirs if row["number"] > here["thought_count"]]
            _update(tx, "sessions", session, "id")
            register.move(tx, here["head_hash"], session["head_hash"])
            taken.changed["sessions"] += 1
        else:
            if not _holds(tx, session):
                taken.notes.append(f"Reasoning session {session['id']} went on here as well; what is here stays.")
            continue
        for row in branches.get(session["id"], []):
            _upsert(tx, "branches", row, ("session_id", "branch_id"))
        for row in theirs:
            _insert(tx, "thoughts", row)
        taken.added["thoughts"] += len(theirs)
    for row in rows["session_links"]:
        _insert(tx, "session_links", row, unless="session_id, linked_id")


def _holds(tx: Tx, session: Row) -> bool:
    """Whether the session here has gone on from where the archive's ends."""
    found = tx.one(
        "SELECT 1 AS known FROM thoughts WHERE session_id = :id AND hash = :hash",
        id=session["id"],
        hash=session["head_hash"],
    )
    return found is not None or session["thought_count"] == 0


# -- protocol ---------------------------------------------------------------------------------------------------------


def _protocol(tx: Tx, rows: Rows, machine: Here, taken: Taken) -> None:
    project, root = machine.place.worktree.project, machine.place.worktree.root
    tx.lock(f"protocol:{project}")
    parts = {name: by(rows[name], "run") for name in ("protocol_gates", "protocol_evidence", "protocol_violations")}
    for run in rows["protocol_runs"]:
        here = tx.one(
            "SELECT row_id, touched_at, status FROM protocol_runs"
            " WHERE project = :project AND started_at = :started_at AND objective = :objective",
            project=project,
            started_at=run["started_at"],
            objective=run["objective"],
        )
        if here is not None and here["touched_at"] >= run["touched_at"]:
            continue
        if run["status"] == "active" and _other_active(tx, root, here):
            taken.notes.append(
                f"Run {run['id']} was active there, and another one is active here: it was left out."
                " End the one here and adopt again."
            )
            continue
        values = {name: value for name, value in run.items() if name not in ("row_id", "id", "day", "number")}
        if run["status"] == "active" and not commands_of(protocol_of(run)) <= set(machine.commands):
            values |= {"status": RunStatus.ORPHANED.value, "ended_at": run["touched_at"]}
            taken.notes.append(
                f"Run {run['id']} was active there, and its gates run other commands than the project's"
                " configuration here: it is kept in the history, and a new one can be begun."
            )
        if here is None:
            number = _free_number(tx, project, run["day"], run["number"])
            named = {"id": run_id(run["day"], number), "day": run["day"], "number": number}
            _insert(tx, "protocol_runs", {**values, **named, "root": root, "project": project})
            taken.added["protocol_runs"] += 1
        else:
            _update(tx, "protocol_runs", {**values, "row_id": here["row_id"]}, "row_id")
            taken.changed["protocol_runs"] += 1
        row_id = _row_of(tx, project, run)
        for name, kept in parts.items():
            tx.run(f"DELETE FROM {name} WHERE run = :run", run=row_id)
            for row in kept.get(run["row_id"], []):
                _insert(tx, name, {**row, "run": row_id})


def _other_active(tx: Tx, root: str, here: Row | None) -> bool:
    found = tx.one("SELECT row_id FROM protocol_runs WHERE root = :root AND status = 'active'", root=root)
    return found is not None and (here is None or found["row_id"] != here["row_id"])


def _free_number(tx: Tx, project: str, day: str, wanted: int) -> int:
    """The run's own number, else the next after all of that day."""
    rows = tx.all("SELECT number FROM protocol_runs WHERE project = :project AND day = :day", project=project, day=day)
    numbers = {row["number"] for row in rows}
    return wanted if wanted not in numbers else max(numbers) + 1


def _row_of(tx: Tx, project: str, run: Row) -> int:
    row = tx.one(
        "SELECT row_id FROM protocol_runs"
        " WHERE project = :project AND started_at = :started_at AND objective = :objective",
        project=project,
        started_at=run["started_at"],
        objective=run["objective"],
    )
    if row is None:
        raise RuntimeError("a run that was just written is not there")
    return int(row["row_id"])


# -- teams and bridge -------------------------------------------------------------------------------------------------


def _teams(tx: Tx, rows: Rows, place: ProjectPlace, taken: Taken) -> None:
    for team in sorted(_named(rows)):
        if team in place.elsewhere:
            taken.notes.append(f"Team {team} works in another project here; its messages were left out.")
            continue
        if team not in place.teams:
            command = f"holdfast teams add {team} --project {quote(str(place.path))}"
            taken.notes.append(f"Team {team} is not in teams.json here: `{command}`.")
        tx.lock(f"bridge:{team}")
        _messages(tx, [row for row in rows["bridge_messages"] if row["target"] == team], team, taken)
        _updates(tx, [row for row in rows["bridge_updates"] if row["target"] == team], team, taken)
        for row in rows["bridge_tasks"]:
            if row["target"] == team:
                _later(tx, "bridge_tasks", row, "target", "updated_at", taken)
        for row in rows["notices"]:
            if row["to_team"] == team and _insert(tx, "notices", row, unless="id"):
                taken.added["notices"] += 1
        _conversations(tx, rows, team, taken)


def _named(rows: Rows) -> set[str]:
    targets = {row["target"] for name in ("bridge_messages", "bridge_updates", "bridge_tasks") for row in rows[name]}
    return targets | {row["to_team"] for name in ("notices", "conversations") for row in rows[name]}


def _messages(tx: Tx, messages: list[Row], team: str, taken: Taken) -> None:
    known = {row["id"] for row in tx.all("SELECT id FROM bridge_messages WHERE target = :team", team=team)}
    seq = _last_seq(tx, "bridge_messages", team)
    for row in messages:
        if row["id"] in known:
            continue
        seq += 1
        waits = {"status": "pending", "way": None} if row["status"] == "leased" else {}
        _insert(tx, "bridge_messages", {**row, **waits, "seq": seq})
        taken.added["bridge_messages"] += 1


def _updates(tx: Tx, updates: list[Row], team: str, taken: Taken) -> None:
    columns = ("kind", "message_id", "content", "data", "created_at")
    known = Counter(
        tuple(row[column] for column in columns)
        for row in tx.all(f"SELECT {', '.join(columns)} FROM bridge_updates WHERE target = :team", team=team)
    )
    seq = _last_seq(tx, "bridge_updates", team)
    for row in updates:
        told = tuple(row[column] for column in columns)
        if known[told]:
            known[told] -= 1
            continue
        seq += 1
        _insert(tx, "bridge_updates", {**row, "seq": seq})
        taken.added["bridge_updates"] += 1


def _last_seq(tx: Tx, table: str, team: str) -> int:
    row = tx.one(f"SELECT coalesce(max(seq), 0) AS seq FROM {table} WHERE target = :team", team=team)
    return int(row["seq"]) if row else 0


def _conversations(tx: Tx, rows: Rows, team: str, taken: Taken) -> None:
    asks = by(rows["asks"], "conversation_id")
    for conversation in rows["conversations"]:
        if conversation["to_team"] != team:
            continue
        values = {name: value for name, value in conversation.items() if name != "id"}
        found = _conversation(tx, values)
        if found is None:
            _insert(tx, "conversations", values)
            taken.added["conversations"] += 1
            found = _conversation(tx, values)
        if found is None or found["session_id"] != conversation["session_id"]:
            taken.notes.append(
                f"The conversation {conversation['from_team'] or 'outside'} → {team}"
                f" ({conversation['thread']}) is another one here; the archive's was left out."
            )
            continue
        for ask in asks.get(conversation["id"], []):
            if _insert(tx, "asks", {**ask, "conversation_id": found["id"]}, unless="id"):
                taken.added["asks"] += 1


def _conversation(tx: Tx, values: Row) -> Row | None:
    return tx.one(
        "SELECT id, session_id FROM conversations WHERE session_id = :session_id"
        " OR (from_team = :from_team AND to_team = :to_team AND thread = :thread)"
        " ORDER BY session_id = :session_id DESC LIMIT 1",
        **{name: values[name] for name in ("session_id", "from_team", "to_team", "thread")},
    )


# -- what agents did --------------------------------------------------------------------------------------------------


def _agents(tx: Tx, rows: Rows, here: Here, taken: Taken) -> None:
    root = here.place.root
    where = {"root": root.uri, "project_key": root.key, "machine": here.machine}
    for row in rows["ledgers"]:
        # Nothing of the file here was read yet: the next reading begins at its beginning.
        read = {"transcript": here.transcripts.get(row["session_id"], ""), "file_mark": "", "read_to": 0}
        _later(tx, "ledgers", {**row, **where, **read}, "session_id", "last_at", taken)
    for row in rows["agent_sessions"]:
        file = {"transcript": here.transcripts.get(row["session_id"])}
        nobody = {"pid": None, "pid_mark": None, "alive_until": None}
        _later(tx, "agent_sessions", {**row, **where, **file, **nobody}, "session_id", "seen_at", taken)


def _later(tx: Tx, table: str, row: Row, key: str, time: str, taken: Taken) -> None:
    """A row that is new, or later than the one here."""
    here = tx.one(f"SELECT {time} AS at FROM {table} WHERE {key} = :key", key=row[key])
    if here is None:
        _insert(tx, table, row)
        taken.added[table] += 1
    elif here["at"] < row[time]:
        _update(tx, table, row, key)
        taken.changed[table] += 1


# -- SQL --------------------------------------------------------------------------------------------------------------


def _insert(tx: Tx, table: str, row: Row, *, unless: str | None = None) -> int:
    conflict = f" ON CONFLICT ({unless}) DO NOTHING" if unless else ""
    marks = ", ".join(f":{name}" for name in row)
    return tx.run(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}){conflict}", **row)


def _update(tx: Tx, table: str, row: Row, key: str) -> None:
    changes = ", ".join(f"{name} = :{name}" for name in row if name != key)
    tx.run(f"UPDATE {table} SET {changes} WHERE {key} = :{key}", **row)


def _upsert(tx: Tx, table: str, row: Row, key: tuple[str, ...]) -> None:
    changes = ", ".join(f"{name} = excluded.{name}" for name in row if name not in key)
    marks = ", ".join(f":{name}" for name in row)
    conflict = f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"
    tx.run(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) {conflict}", **row)
