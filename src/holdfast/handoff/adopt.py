"""Merges the rows of an archive into the store: existing rows stay, unless the archive continues them.

Rules by kind of row:

- Reasoning session: gets the archive's thoughts if their hash chain continues the one here. If both continued, the
  session here stays, and a note says so. Title and tags come with the thoughts.
- Protocol run: the same if project, start and objective are; the one touched last stays. An active run goes into the
  history if its gates run commands that the project's own configuration here does not name: an archive brings none.
- Message, notice, ask: identified by id; an existing one stays. Open messages, unseen notices and tasks later than the
  one here are held: see holding.py.
- Update: becomes history, of a kind of its own that names the archive and is not sent to a chat.
- Ledger, agent session: the later one stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from shlex import quote

from holdfast.bridge.model import Status
from holdfast.bridge.queries.queue import is_known
from holdfast.handoff import holding
from holdfast.handoff.local_project import LocalProject
from holdfast.handoff.model import KnownTask, Taken
from holdfast.handoff.queries import adopt
from holdfast.handoff.staging import Staged
from holdfast.handoff.validation import commands_of, protocol_of, teams_of
from holdfast.identity import forgotten_queries
from holdfast.lazy_dataclass import dataclass
from holdfast.protocol.model import run_id
from holdfast.protocol.runs import RunStatus
from holdfast.reasoning.queries import projects as project_queries
from holdfast.store import Row, Tx, register

MAX_NOTES = 100
"""The most notes that are worth reading."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the rows of an archive go."""

    project: LocalProject
    machine: str
    transcript_of: Callable[[str], str | None]
    """Returns the path of a session's transcript."""
    commands: Collection[tuple[str, ...]]
    """The commands that gates of the project's own configuration run."""
    origin: str
    """The name of the archive, as it is shown with each message that comes from it."""


def merge_rows(tx: Tx, rows: Staged, here: Destination) -> Taken:
    """Merge the rows into the store, for the project in its directory here."""
    project = here.project
    taken = Taken()
    project_queries.know(tx, project.root)
    forgotten_queries.lift(tx, project.root)  # an adopted project is no longer forgotten
    _reasoning(tx, rows, here, taken)
    _protocol(tx, rows, here, taken)
    _teams(tx, rows, here, taken)
    _agents(tx, rows, here, taken)
    del taken.notes[MAX_NOTES:]
    if taken.added or taken.changed:
        tx.emit("archive.adopted", project.root.uri, {"added": dict(taken.added), "changed": dict(taken.changed)})
    return taken


# -- reasoning --------------------------------------------------------------------------------------------------------


def _reasoning(tx: Tx, rows: Staged, into: Destination, taken: Taken) -> None:
    root = into.project.root
    for found in rows.rows("sessions"):
        after = 0
        session = {**found, "tags": holding.tags_with_origin(found["tags"], into.origin)}
        here = adopt.session(tx, session["id"])
        if here is None:
            adopt.insert(tx, "sessions", {**session, "root_uri": root.uri, "project_key": root.key})
            register.enter(tx, session["id"], session["head_hash"])
            taken.added["sessions"] += 1
        elif here.head_hash == session["head_hash"]:
            continue
        elif rows.count("thoughts", session_id=session["id"], prev_hash=here.head_hash):
            after = here.thought_count
            adopt.update(tx, "sessions", session, "id")
            register.move(tx, here.head_hash, session["head_hash"])
            taken.changed["sessions"] += 1
        else:
            # What is here may continue from where the archive's ends; that needs no note.
            if session["thought_count"] and not adopt.has_thought(tx, session["id"], session["head_hash"]):
                taken.notes.append(f"Reasoning session {session['id']} was continued here as well; the one here stays.")
            continue
        for row in rows.rows("branches", session_id=session["id"]):
            adopt.upsert(tx, "branches", row, ("session_id", "branch_id"))
        for row in rows.rows("thoughts", session_id=session["id"]):
            if row["number"] > after:
                adopt.insert(tx, "thoughts", row)
                taken.added["thoughts"] += 1
    for row in rows.rows("session_links"):
        adopt.insert(tx, "session_links", row, unless="session_id, linked_id")


# -- protocol ---------------------------------------------------------------------------------------------------------


def _protocol(tx: Tx, rows: Staged, into: Destination, taken: Taken) -> None:
    project, root = into.project.worktree.project, into.project.worktree.root
    tx.lock(f"protocol:{project}")
    for run in rows.rows("protocol_runs"):
        same = (project, run["started_at"], run["objective"])
        here = adopt.same_run(tx, *same)
        if here is not None and here.touched_at >= run["touched_at"]:
            continue
        active = adopt.active_run(tx, root) if run["status"] == "active" else None
        if active is not None and (here is None or active != here.row_id):
            taken.notes.append(
                f"Run {run['id']} was active there, and another one is active here: it was left out."
                " End the one here and adopt again."
            )
            continue
        values = {name: value for name, value in run.items() if name not in ("row_id", "id", "day", "number")}
        if run["status"] == "active" and not commands_of(protocol_of(run)) <= set(into.commands):
            values |= {"status": RunStatus.ORPHANED.value, "ended_at": run["touched_at"]}
            taken.notes.append(
                f"Run {run['id']} was active there, and its gates run other commands than the project's"
                " configuration here: it is kept in the history, and a new one can be begun."
            )
        if here is None:
            number = adopt.free_number(tx, project, run["day"], run["number"])
            named = {"id": run_id(run["day"], number), "day": run["day"], "number": number}
            adopt.insert(tx, "protocol_runs", {**values, **named, "root": root, "project": project})
            taken.added["protocol_runs"] += 1
        else:
            adopt.update(tx, "protocol_runs", {**values, "row_id": here.row_id}, "row_id")
            taken.changed["protocol_runs"] += 1
        written = adopt.same_run(tx, *same)
        if written is None:
            raise RuntimeError("a run that was just written is not there")
        row_id = written.row_id
        for name in ("protocol_gates", "protocol_evidence", "protocol_violations"):
            adopt.empty_part_of_run(tx, name, row_id)
            for row in rows.rows(name, run=run["row_id"]):
                adopt.insert(tx, name, {**row, "run": row_id})


# -- teams and bridge -------------------------------------------------------------------------------------------------


def _teams(tx: Tx, rows: Staged, here: Destination, taken: Taken) -> None:
    project = here.project
    for team in sorted(teams_of(rows)):
        if team in project.elsewhere:
            taken.notes.append(f"Team {team} works in another project here; its messages were left out.")
            continue
        if team not in project.teams:
            command = f"holdfast teams add {team} --project {quote(str(project.path))}"
            taken.notes.append(f"Team {team} is not in teams.json here: `{command}`.")
        tx.lock(f"bridge:{team}")
        _messages(tx, rows, team, here.origin, taken)
        for row in rows.rows("notices", to_team=team):
            if row["shown_at"] is not None and adopt.insert(tx, "notices", row, unless="id"):
                taken.added["notices"] += 1
        _updates(tx, rows, team, here.origin, taken)
        _conversations(tx, rows, team, taken)
        if taken.held[team]:
            holding.tell_chat(tx, team, taken.held[team], here.origin)


def _messages(tx: Tx, rows: Staged, team: str, origin: str, taken: Taken) -> None:
    """Queue messages, and whatever else would reach an agent, as held messages."""
    seq = adopt.last_seq(tx, "bridge_messages", team)
    task = adopt.task(tx, team)
    own = adopt.notice_ids(tx, team) | ({task.id} if task else set())
    for row in _addressed(rows, team, task, origin):
        if row["id"] in own or is_known(tx, row["id"], team):  # what went from here comes back
            continue
        seq += 1
        adopt.insert(tx, "bridge_messages", {**row, "seq": seq})
        taken.added["bridge_messages"] += 1
        if row["status"] == Status.HELD:
            taken.held[team] += 1


def _addressed(rows: Staged, team: str, task: KnownTask | None, origin: str) -> Iterator[Row]:
    for row in rows.rows("bridge_messages", target=team):
        yield holding.adopted_message(row, origin)
    for row in rows.rows("notices", to_team=team):
        if row["shown_at"] is None:
            yield holding.from_notice(row, origin)
    for row in rows.rows("bridge_tasks", target=team):
        if task is None or task.updated_at < row["updated_at"]:
            yield holding.from_task(row, origin)


def _updates(tx: Tx, rows: Staged, team: str, origin: str, taken: Taken) -> None:
    """Add what agents on the other machine reported, as history; updates meant only for a chat are left out."""
    known = Counter(adopt.updates(tx, team))
    seq = adopt.last_seq(tx, "bridge_updates", team)
    for row in rows.rows("bridge_updates", target=team):
        if row["chat_only"]:
            continue
        if known[holding.update_hash(row)]:
            known[holding.update_hash(row)] -= 1
            continue
        seq += 1
        adopt.insert(tx, "bridge_updates", {**holding.adopted_update(row, origin), "seq": seq})
        taken.added["bridge_updates"] += 1


def _conversations(tx: Tx, rows: Staged, team: str, taken: Taken) -> None:
    for conversation in rows.rows("conversations", to_team=team):
        values = {name: value for name, value in conversation.items() if name != "id"}
        same = (values["session_id"], values["from_team"], values["to_team"], values["thread"])
        found = adopt.conversation(tx, *same)
        if found is None:
            adopt.insert(tx, "conversations", values)
            taken.added["conversations"] += 1
            found = adopt.conversation(tx, *same)
        if found is None or found.session_id != conversation["session_id"]:
            taken.notes.append(
                f"The conversation {conversation['from_team'] or 'outside'} → {team}"
                f" ({conversation['thread']}) is another one here; the archive's was left out."
            )
            continue
        for ask in rows.rows("asks", conversation_id=conversation["id"]):
            if adopt.insert(tx, "asks", {**ask, "conversation_id": found.id}, unless="id"):
                taken.added["asks"] += 1


# -- what agents did --------------------------------------------------------------------------------------------------


def _agents(tx: Tx, rows: Staged, here: Destination, taken: Taken) -> None:
    root = here.project.root
    where = {"root": root.uri, "project_key": root.key, "machine": here.machine}
    for row in rows.rows("ledgers"):
        # Nothing of the file here was read yet: the next reading begins at its beginning.
        read = {"transcript": here.transcript_of(row["session_id"]) or "", "file_mark": "", "read_to": 0}
        _put_later(tx, "ledgers", {**row, **where, **read}, "session_id", "last_at", taken)
    for row in rows.rows("agent_sessions"):
        file = {"transcript": here.transcript_of(row["session_id"])}
        no_process = {"pid": None, "pid_mark": None, "alive_until": None}
        _put_later(tx, "agent_sessions", {**row, **where, **file, **no_process}, "session_id", "seen_at", taken)


def _put_later(tx: Tx, table: str, row: Row, key: str, time: str, taken: Taken) -> None:
    """Add a row that is new, or replace an earlier one."""
    here = adopt.time_of(tx, table, key, row[key], time)
    if here is None:
        adopt.insert(tx, table, row)
        taken.added[table] += 1
    elif here < row[time]:
        adopt.update(tx, table, row, key)
        taken.changed[table] += 1
