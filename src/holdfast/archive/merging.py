"""Rows of an archive put into a store: what is here stays, and gives way only to what goes on from it.

The rules, by what a row is:

- A reasoning session grows by the archive's thoughts where its chain of hashes goes on from the chain here. Where both
  went on differently, what is here stays and that is said. Title and tags come with the thoughts.
- A protocol run is the same one when project, start and objective are. The later touched one stays. An active one
  whose gates run commands that the project's own configuration here does not name goes into the history: a file from
  elsewhere never brings commands.
- A message, a notice and an ask are what their id says; one that is here stays as it is. A message that was not over, a
  notice that nobody saw and a later task than the one here wait for the owner's word: see holding.py.
- What agents reported there is history: updates of a kind of their own, which name the archive and go to no chat.
- A ledger and an agent's session: the later one stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from shlex import quote

from holdfast.archive import holding
from holdfast.archive.checking import commands_of, protocol_of, teams_of
from holdfast.archive.place import ProjectPlace
from holdfast.archive.staging import Staged
from holdfast.bridge.model import Status
from holdfast.briefing.ledger import forgotten
from holdfast.protocol.model import run_id
from holdfast.protocol.runs import RunStatus
from holdfast.reasoning import projects
from holdfast.store import Row, Tx, register

# ruff: noqa: S608 - table and column names are this program's own

AT_ONCE = 500
MOST_NOTES = 100
"""Beyond so many, what there is to say of an archive is not read anyway."""


@dataclass(slots=True)
class Taken:
    """What an adoption changed, and what a person should know of it."""

    added: Counter[str] = field(default_factory=Counter)
    """New rows, by table."""
    changed: Counter[str] = field(default_factory=Counter)
    """Rows that gave way to later ones, by table."""
    held: Counter[str] = field(default_factory=Counter)
    """Messages that wait for the owner's word, by team."""
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
    origin: str
    """The archive that they come from, as it is named to whoever gets a message out of it."""


def merge_rows(tx: Tx, rows: Staged, here: Here) -> Taken:
    """Put the rows into the store, for the project as it lies here."""
    place = here.place
    taken = Taken()
    projects.know(tx, place.root)
    forgotten.lift(tx, place.root)  # whoever adopts a project wants to be told of it
    _reasoning(tx, rows, here, taken)
    _protocol(tx, rows, here, taken)
    _teams(tx, rows, here, taken)
    _agents(tx, rows, here, taken)
    del taken.notes[MOST_NOTES:]
    if taken.added or taken.changed:
        tx.emit("archive.adopted", place.root.uri, {"added": dict(taken.added), "changed": dict(taken.changed)})
    return taken


# -- reasoning --------------------------------------------------------------------------------------------------------


def _reasoning(tx: Tx, rows: Staged, machine: Here, taken: Taken) -> None:
    place = machine.place
    for found in rows.rows("sessions"):
        after = 0
        session = {**found, "tags": holding.tags_with_origin(found["tags"], machine.origin)}
        here = tx.one("SELECT thought_count, head_hash, root_uri FROM sessions WHERE id = :id", id=session["id"])
        if here is None:
            _insert(tx, "sessions", {**session, "root_uri": place.root.uri, "project_key": place.root.key})
            register.enter(tx, session["id"], session["head_hash"])
            taken.added["sessions"] += 1
        elif here["head_hash"] == session["head_hash"]:
            continue
        elif rows.count("thoughts", session_id=session["id"], prev_hash=here["head_hash"]):
            after = here["thought_count"]
            _update(tx, "sessions", session, "id")
            register.move(tx, here["head_hash"], session["head_hash"])
            taken.changed["sessions"] += 1
        else:
            if not _holds(tx, session):
                taken.notes.append(f"Reasoning session {session['id']} went on here as well; what is here stays.")
            continue
        for row in rows.rows("branches", session_id=session["id"]):
            _upsert(tx, "branches", row, ("session_id", "branch_id"))
        for row in rows.rows("thoughts", session_id=session["id"]):
            if row["number"] > after:
                _insert(tx, "thoughts", row)
                taken.added["thoughts"] += 1
    for row in rows.rows("session_links"):
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


def _protocol(tx: Tx, rows: Staged, machine: Here, taken: Taken) -> None:
    project, root = machine.place.worktree.project, machine.place.worktree.root
    tx.lock(f"protocol:{project}")
    for run in rows.rows("protocol_runs"):
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
        for name in ("protocol_gates", "protocol_evidence", "protocol_violations"):
            tx.run(f"DELETE FROM {name} WHERE run = :run", run=row_id)
            for row in rows.rows(name, run=run["row_id"]):
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


def _teams(tx: Tx, rows: Staged, here: Here, taken: Taken) -> None:
    place = here.place
    for team in sorted(teams_of(rows)):
        if team in place.elsewhere:
            taken.notes.append(f"Team {team} works in another project here; its messages were left out.")
            continue
        if team not in place.teams:
            command = f"holdfast teams add {team} --project {quote(str(place.path))}"
            taken.notes.append(f"Team {team} is not in teams.json here: `{command}`.")
        tx.lock(f"bridge:{team}")
        _messages(tx, rows, team, here.origin, taken)
        for row in rows.rows("notices", to_team=team):
            if row["shown_at"] is not None and _insert(tx, "notices", row, unless="id"):
                taken.added["notices"] += 1
        _updates(tx, rows, team, here.origin, taken)
        _conversations(tx, rows, team, taken)
        if taken.held[team]:
            holding.tell_chat(tx, team, taken.held[team], here.origin)


def _messages(tx: Tx, rows: Staged, team: str, origin: str, taken: Taken) -> None:
    """Messages, and what else would reach an agent: in the queue, but held."""
    seq = _last_seq(tx, "bridge_messages", team)
    task = tx.one(
        "SELECT target, current_task, last_completed_step, updated_at FROM bridge_tasks WHERE target = :team", team=team
    )
    own = {holding.task_id(task)} if task else set()
    own |= {
        holding.notice_id(row) for row in tx.all("SELECT id, to_team FROM notices WHERE to_team = :team", team=team)
    }
    for row in _addressed(rows, team, task, origin):
        known = tx.one(
            "SELECT 1 AS known FROM bridge_messages WHERE id = :id AND target = :team", id=row["id"], team=team
        )
        if known is not None or row["id"] in own:  # what went from here comes back
            continue
        seq += 1
        _insert(tx, "bridge_messages", {**row, "seq": seq})
        taken.added["bridge_messages"] += 1
        if row["status"] == Status.HELD:
            taken.held[team] += 1


def _addressed(rows: Staged, team: str, task: Row | None, origin: str) -> Iterator[Row]:
    for row in rows.rows("bridge_messages", target=team):
        yield holding.adopted_message(row, origin)
    for row in rows.rows("notices", to_team=team):
        if row["shown_at"] is None:
            yield holding.from_notice(row, origin)
    for row in rows.rows("bridge_tasks", target=team):
        if task is None or task["updated_at"] < row["updated_at"]:
            yield holding.from_task(row, origin)


def _updates(tx: Tx, rows: Staged, team: str, origin: str, taken: Taken) -> None:
    """What agents there reported, as history; what only a chat there was shown stays there."""
    known: Counter[int] = Counter()
    seq = 0
    # By their hash and a few at a time: all that was ever told may be more than fits into memory.
    while some := tx.all(
        "SELECT seq, kind, message_id, content, data, created_at FROM bridge_updates"
        " WHERE target = :team AND seq > :seq ORDER BY seq LIMIT :some",
        team=team,
        seq=seq,
        some=AT_ONCE,
    ):
        seq = some[-1]["seq"]
        known.update(map(_told, some))
    for row in rows.rows("bridge_updates", target=team):
        if row["chat_only"]:
            continue
        if known[_told(row)]:
            known[_told(row)] -= 1
            continue
        seq += 1
        _insert(tx, "bridge_updates", {**holding.adopted_update(row, origin), "seq": seq})
        taken.added["bridge_updates"] += 1


def _told(row: Row) -> int:
    """What an update is known again by, here and there."""
    return hash((holding.kind_there(row), row["message_id"], row["content"], row["created_at"]))


def _last_seq(tx: Tx, table: str, team: str) -> int:
    row = tx.one(f"SELECT coalesce(max(seq), 0) AS seq FROM {table} WHERE target = :team", team=team)
    return int(row["seq"]) if row else 0


def _conversations(tx: Tx, rows: Staged, team: str, taken: Taken) -> None:
    for conversation in rows.rows("conversations", to_team=team):
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
        for ask in rows.rows("asks", conversation_id=conversation["id"]):
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


def _agents(tx: Tx, rows: Staged, here: Here, taken: Taken) -> None:
    root = here.place.root
    where = {"root": root.uri, "project_key": root.key, "machine": here.machine}
    for row in rows.rows("ledgers"):
        # Nothing of the file here was read yet: the next reading begins at its beginning.
        read = {"transcript": here.transcripts.get(row["session_id"], ""), "file_mark": "", "read_to": 0}
        _later(tx, "ledgers", {**row, **where, **read}, "session_id", "last_at", taken)
    for row in rows.rows("agent_sessions"):
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
