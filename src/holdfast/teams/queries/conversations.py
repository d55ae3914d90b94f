"""The SQL of conversations and asks, functions of a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from holdfast.store import Row, Tx, leases
from holdfast.store.containing import containing
from holdfast.teams.model import LEASE_MS, Ask, AskState, AskStatus, Conversation, ConversationStatus, Exchange
from holdfast.teams.queries import permissions
from holdfast.text.quoting import read_signed

CONVERSATION = ", ".join(field.name for field in fields(Conversation))
ASK = ", ".join(field.name for field in fields(Ask))
ASKS = leases.Lease(
    "asks",
    "id",
    "lease_until",
    "lease_by",
    "lease_token",
    free="status = 'waiting'",
    held="status = 'running'",
    taken="status = 'running', attempts = attempts + 1, started_at = :now",
    released="status = 'waiting', note = :note",
)
CONVERSATIONS = leases.Lease("conversations", "id", taken="last_started_at = :now", released="agent_pid = NULL")
"""Leased with an ask that `next_waiting` chose, which skips conversations of other runners."""
CLAIMS = "teams:claim"
"""The lock under which asks and conversations are claimed, and waiting asks ended."""
SEARCHED = 20_000
"""How many of the newest asks a search covers."""
OF_A = ", ".join(f"a.{field.name}" for field in fields(Ask))

# ruff: noqa: S608 - the only texts put into SQL here are column names


def conversation(tx: Tx, conversation_id: int) -> Conversation | None:
    """The conversation with this id."""
    return _conversation(tx.one(f"SELECT {CONVERSATION} FROM conversations WHERE id = :id", id=conversation_id))


def between(tx: Tx, from_team: str, to_team: str, thread: str) -> Conversation | None:
    """The one conversation of this pair and thread."""
    return _conversation(
        tx.one(
            f"SELECT {CONVERSATION} FROM conversations"
            " WHERE from_team = :from_team AND to_team = :to_team AND thread = :thread",
            from_team=from_team,
            to_team=to_team,
            thread=thread,
        )
    )


def begin(tx: Tx, from_team: str, to_team: str, thread: str, fork_of: str | None = None) -> Conversation:
    """Return the one conversation of this pair and thread, creating it if needed, perhaps as a copy of a session."""
    tx.lock(f"conversation:{from_team}:{to_team}:{thread}")
    known = between(tx, from_team, to_team, thread)
    if known is not None:
        return known
    row = tx.one(
        "INSERT INTO conversations (from_team, to_team, thread, session_id, begun, status, message_count,"
        " compacted_count, created_at, last_used_at, last_started_at, fork_of)"
        " VALUES (:from_team, :to_team, :thread, :session, 0, 'active', 0, 0, :now, :now, 0, :fork_of)"
        f" RETURNING {CONVERSATION}",
        from_team=from_team,
        to_team=to_team,
        thread=thread,
        session=tx.new_id(),
        now=tx.now(),
        fork_of=fork_of,
    )
    made = _conversation(row)
    if made is None:
        raise RuntimeError("INSERT … RETURNING gave no row")
    tx.emit("teams.conversation_begun", str(made.id), {"from": from_team, "to": to_team, "thread": thread})
    return made


def conversations(tx: Tx, team: str | None, limit: int, only: Sequence[str] | None = None) -> list[Conversation]:
    """Return conversations, the last used first; `only` those of these teams."""
    where, bound = ["1 = 1"], dict[str, Any](limit=limit)
    if team is not None:
        where.append("(to_team = :team OR from_team = :team)")
        bound["team"] = team
    if only is not None:
        names = {f"own{number}": name for number, name in enumerate(only)}
        marks = ", ".join(f":{name}" for name in names)
        where.append(f"(to_team IN ({marks}) OR from_team IN ({marks}))" if names else "1 = 0")
        bound |= names
    rows = tx.all(
        f"SELECT {CONVERSATION} FROM conversations WHERE {' AND '.join(where)}"
        " ORDER BY last_used_at DESC, id DESC LIMIT :limit",
        **bound,
    )
    return [found for row in rows if (found := _conversation(row))]


def set_status(tx: Tx, conversation_id: int, status: ConversationStatus) -> None:
    """Change a conversation's state."""
    tx.run("UPDATE conversations SET status = :status WHERE id = :id", status=status.value, id=conversation_id)


def set_session(tx: Tx, conversation_id: int, session_id: str, *, begun: bool, note: str | None) -> None:
    """Continue the conversation in another session of its agent."""
    tx.run(
        "UPDATE conversations SET session_id = :session, begun = :begun, note = :note WHERE id = :id",
        session=session_id,
        begun=int(begun),
        note=note,
        id=conversation_id,
    )


def adopt(tx: Tx, from_team: str, to_team: str, thread: str, session_id: str) -> Conversation:
    """Make a session on disk the conversation of this pair and thread."""
    made = begin(tx, from_team, to_team, thread)
    tx.run(
        "UPDATE conversations SET session_id = :session, begun = 1, fork_of = NULL, summary = NULL WHERE id = :id",
        session=session_id,
        id=made.id,
    )
    tx.emit("teams.adopted", str(made.id), {"session": session_id})
    return conversation(tx, made.id) or made


def known_sessions(tx: Tx) -> set[str]:
    """Return the sessions of conversations; several teams may share one project."""
    return {row["session_id"] for row in tx.all("SELECT session_id FROM conversations")}


def begin_afresh(tx: Tx, conversation_id: int, session_id: str, summary: str) -> None:
    """Continue the conversation in a new session that is told what the old one was about."""
    tx.run(
        "UPDATE conversations SET session_id = :session, begun = 0, summary = :summary, status = 'active',"
        " compacted_count = message_count, fork_of = NULL WHERE id = :id",
        session=session_id,
        summary=summary,
        id=conversation_id,
    )


def busiest(tx: Tx, runner: str, teams: Sequence[str], limit: int) -> list[Conversation]:
    """Return the conversations of these teams with the most messages, except those of other runners."""
    return _free(tx, runner, teams, "status = 'active' ORDER BY message_count DESC, id LIMIT :limit", limit=limit)


def mark_begun(tx: Tx, conversation_id: int, pid: int | None) -> None:
    """Record that the agent has this conversation's session, in this process."""
    tx.run("UPDATE conversations SET begun = 1, agent_pid = :pid WHERE id = :id", pid=pid, id=conversation_id)


def used(tx: Tx, conversation_id: int, messages: int) -> None:
    """Record that messages were exchanged."""
    tx.run(
        "UPDATE conversations SET message_count = message_count + :messages, last_used_at = :now, note = NULL"
        " WHERE id = :id",
        messages=messages,
        now=tx.now(),
        id=conversation_id,
    )


def compacted(tx: Tx, conversation_id: int) -> None:
    """Record a compaction, successful or not, at this message count; the next one waits until it has grown."""
    tx.run(
        "UPDATE conversations SET compacted_count = message_count, status = 'active' WHERE id = :id",
        id=conversation_id,
    )


def add_ask(tx: Tx, conversation_id: int, to_team: str, text: str, chain: str, parent: str | None) -> Ask:
    """Store an ask before it is run."""
    row = tx.one(
        "INSERT INTO asks (id, conversation_id, to_team, text, chain, parent, status, attempts, created_at)"
        f" VALUES (:id, :conversation, :to_team, :text, :chain, :parent, 'waiting', 0, :now) RETURNING {ASK}",
        id=tx.new_id(),
        conversation=conversation_id,
        to_team=to_team,
        text=text,
        chain=chain,
        parent=parent,
        now=tx.now(),
    )
    made = _ask(row)
    if made is None:
        raise RuntimeError("INSERT … RETURNING gave no row")
    tx.emit("teams.asked", made.id, {"to": to_team})
    return made


def ask(tx: Tx, ask_id: str) -> Ask | None:
    """The ask with this id."""
    return _ask(tx.one(f"SELECT {ASK} FROM asks WHERE id = :id", id=ask_id))


def is_claimed(tx: Tx, ask_id: str, token: str) -> bool:
    """Return whether the lease with this token still holds the ask."""
    found = ask(tx, ask_id)
    return found is not None and found.status == AskStatus.RUNNING.value and found.lease_token == token


def ask_state(tx: Tx, ask_id: str) -> AskState | None:
    """Return the ask with this id, its conversation, and its place in the queue while it waits."""
    found = ask(tx, ask_id)
    if found is None:
        return None
    waiting = found.status == AskStatus.WAITING.value
    return AskState(
        found,
        conversation(tx, found.conversation_id),
        place(tx, found.row_id) if waiting else None,
        approval=permissions.waiting_of(tx, ask_id) if found.status == AskStatus.RUNNING.value else None,
    )


def open_asks(tx: Tx) -> list[AskState]:
    """Asks that are not done, the oldest first."""
    rows = tx.all("SELECT id FROM asks WHERE status IN ('waiting', 'running') ORDER BY row_id LIMIT 1000")
    return [state for row in rows if (state := ask_state(tx, row["id"]))]


def beginning_with(tx: Tx, beginning: str, *, done: bool) -> list[str]:
    """Return the ids of at most two asks that begin with this."""
    rows = tx.all(
        "SELECT id FROM asks WHERE substr(id, 1, :length) = :beginning"
        f" AND status {'NOT' if done else ''} IN ('waiting', 'running') LIMIT 2",
        length=len(beginning),
        beginning=beginning,
    )
    return [row["id"] for row in rows]


def asks_of(tx: Tx, conversation_id: int, before: int | None, limit: int) -> list[Ask]:
    """A conversation's asks, the newest first."""
    rows = tx.all(
        f"SELECT {ASK} FROM asks WHERE conversation_id = :id AND row_id < :before ORDER BY row_id DESC LIMIT :limit",
        id=conversation_id,
        before=before or 1 << 62,
        limit=limit,
    )
    return [found for row in rows if (found := _ask(row))]


def exchanges(tx: Tx, team: str, since: int, limit: int) -> list[Exchange]:
    """Return what a team was asked and what it asked others, the latest first."""
    rows: list[Row] = []
    for side in ("a.to_team", "c.from_team"):
        rows += tx.all(
            "SELECT a.row_id, c.from_team, a.to_team, substr(a.text, 1, 500) AS text, a.status,"
            " substr(a.answer, 1, 500) AS answer, a.created_at FROM asks a"
            f" JOIN conversations c ON c.id = a.conversation_id WHERE {side} = :team AND a.created_at >= :since"
            " ORDER BY a.row_id DESC LIMIT :limit",
            team=team,
            since=since,
            limit=limit,
        )
    return [
        Exchange(
            incoming=row["to_team"] == team,
            other=row["from_team"] if row["to_team"] == team else row["to_team"],
            text=read_signed(row["text"]) or row["text"],
            status=row["status"],
            answer=row["answer"],
            at=row["created_at"],
        )
        for row in sorted(rows, key=lambda row: int(row["row_id"]), reverse=True)[:limit]
    ]


def search(tx: Tx, words: Sequence[str], limit: int) -> list[AskState]:
    """Return the newest asks with all of these words in their question or answer."""
    where, params = containing(tx.engine, ("text", "answer"), words)
    rows = tx.all(
        f"SELECT {ASK} FROM asks WHERE row_id > (SELECT coalesce(max(row_id), 0) - :searched FROM asks) AND {where}"
        " ORDER BY row_id DESC LIMIT :limit",
        searched=SEARCHED,
        limit=limit,
        **params,
    )
    return [AskState(one, conversation(tx, one.conversation_id), None) for one in (Ask(**row) for row in rows)]


def running_in(tx: Tx, conversation_id: int) -> Ask | None:
    """Return the ask that a conversation's agent works on."""
    return _ask(
        tx.one(f"SELECT {ASK} FROM asks WHERE conversation_id = :id AND status = 'running'", id=conversation_id)
    )


def place(tx: Tx, row_id: int) -> int:
    """Return this ask's place in the queue, from 1."""
    row = tx.one("SELECT count(*) AS n FROM asks WHERE status = 'waiting' AND row_id < :row", row=row_id)
    return int(row["n"]) + 1 if row else 1


def next_waiting(tx: Tx, runner: str, teams: list[str], but: list[int]) -> Ask | None:
    """Return the ask to run next: the first of the conversation that was served longest ago."""
    if not teams:
        return None
    names = {f"team{index}": name for index, name in enumerate(teams)}
    busy = {f"busy{index}": number for index, number in enumerate(but)}
    skipped = f" AND a.conversation_id NOT IN ({', '.join(':' + name for name in busy)})" if busy else ""
    return _ask(
        tx.one(
            f"SELECT {OF_A} FROM asks a JOIN conversations c ON c.id = a.conversation_id"
            " WHERE a.status = 'waiting' AND c.status <> 'archived'"
            f" AND a.to_team IN ({', '.join(':' + name for name in names)}){skipped}"
            f" AND {CONVERSATIONS.takeable('c')}"
            " AND NOT EXISTS (SELECT 1 FROM asks b WHERE b.conversation_id = a.conversation_id"
            " AND b.status IN ('waiting', 'running') AND b.row_id < a.row_id)"
            " ORDER BY c.last_started_at, a.row_id LIMIT 1",
            now=tx.now(),
            holder=runner,
            **names,
            **busy,
        )
    )


def unclaimed(tx: Tx) -> list[tuple[str, str]]:
    """Return the id and the team of each ask that waits."""
    rows = tx.all("SELECT id, to_team FROM asks WHERE status = 'waiting' ORDER BY row_id LIMIT 1000")
    return [(row["id"], row["to_team"]) for row in rows]


def others_at_work(tx: Tx, runner: str) -> set[str]:
    """Return the other runners that have a conversation's agent."""
    rows = tx.all(
        "SELECT DISTINCT c.lease_by FROM conversations c"
        f" WHERE {CONVERSATIONS.in_force('c')} AND c.lease_by <> :runner",
        now=tx.now(),
        runner=runner,
    )
    return {row["lease_by"] for row in rows}


def fail_waiting(tx: Tx, ask_id: str, code: str, error: str) -> None:
    """End an ask if it still waits."""
    tx.lock(CLAIMS)
    found = ask(tx, ask_id)
    if found is not None and found.status == AskStatus.WAITING.value:
        finish(tx, found, None, AskStatus.FAILED, error_code=code, error=error)


def claim(tx: Tx, found: Ask, runner: str, token: str) -> bool:
    """Lease the ask and its conversation's agent session to a runner; False if the ask no longer waits."""
    if not leases.take(tx, ASKS, found.id, runner, LEASE_MS, token=token):
        return False  # cancelled since it was chosen: on PostgreSQL others write concurrently
    leases.take(tx, CONVERSATIONS, found.conversation_id, runner, LEASE_MS)
    return True


def hold(tx: Tx, conversation_id: int, runner: str) -> bool:
    """Lease a conversation's agent session to a runner without an ask; False while another has it."""
    tx.lock(CLAIMS)
    return leases.take(tx, CONVERSATIONS, conversation_id, runner, LEASE_MS)


def renew(tx: Tx, runner: str, running: Iterable[str], held: Iterable[int]) -> tuple[set[str], set[int]]:
    """Renew the leases of the asks that a runner works on and of the conversations whose processes it has.

    Returns those asks and conversations that it has lost."""
    lost = {ask_id for ask_id in running if not leases.renew(tx, ASKS, LEASE_MS, key=ask_id, holder=runner)}
    gone = {one for one in held if not leases.renew(tx, CONVERSATIONS, LEASE_MS, key=one, holder=runner)}
    return lost, gone


def let_go(tx: Tx, conversation_id: int, runner: str) -> None:
    """Release a conversation for which the runner no longer has a process."""
    leases.release(tx, CONVERSATIONS, conversation_id, runner)


def abandoned(tx: Tx, runner: str | None) -> list[Ask]:
    """Return running asks whose runner is dead, or, when `runner` restarts, its own."""
    rows = tx.all(
        f"SELECT {ASK} FROM asks WHERE status = 'running' AND (lease_until < :now OR lease_by = :runner)",
        now=tx.now(),
        runner=runner or "",
    )
    return [found for row in rows if (found := _ask(row))]


def finish(
    tx: Tx,
    found: Ask,
    token: str | None,
    status: AskStatus,
    *,
    answer: str | None = None,
    error_code: str | None = None,
    error: str | None = None,
    note: str | None = None,
) -> bool:
    """Store how an ask ended; only its lease holder may, and only once."""
    changed = tx.run(
        "UPDATE asks SET status = :status, finished_at = :now, lease_until = NULL, answer = :answer,"
        " error_code = :error_code, error = :error, note = :note"
        " WHERE id = :id AND status IN ('waiting', 'running')"
        + (" AND lease_token = :token" if token is not None else ""),
        status=status.value,
        now=tx.now(),
        id=found.id,
        token=token,
        answer=answer,
        error_code=error_code,
        error=error,
        note=note,
    )
    if changed:
        permissions.end(tx, found.id)
        tx.emit(f"teams.{status.value}", found.id, {"to": found.to_team})
    return bool(changed)


def failed_last(tx: Tx, teams: Sequence[str], since: int) -> list[Ask]:
    """Return asks that failed since a time and were the last of their conversation, the newest first."""
    names = {f"team{index}": name for index, name in enumerate(teams)}
    if not names:
        return []
    rows = tx.all(
        f"SELECT {ASK} FROM asks a WHERE to_team IN ({', '.join(f':{name}' for name in names)})"
        " AND finished_at >= :since AND status = 'failed' AND NOT EXISTS (SELECT 1 FROM asks l"
        " WHERE l.conversation_id = a.conversation_id AND l.row_id > a.row_id) ORDER BY row_id DESC LIMIT 50",
        since=since,
        **names,
    )
    return [Ask(**row) for row in rows]


def cancel(tx: Tx, ask_id: str) -> list[str]:
    """Cancel an ask that is not done, and the asks of its agent; returns the ids of all that were cancelled."""
    _lock_children(tx, ask_id)
    found = ask(tx, ask_id)
    if found is None or not finish(tx, found, None, AskStatus.CANCELLED):
        return []
    children = tx.all(
        "SELECT id FROM asks WHERE parent = :id AND status IN ('waiting', 'running') ORDER BY row_id", id=ask_id
    )
    return [ask_id, *(one for child in children for one in cancel(tx, child["id"]))]


def parent_in(tx: Tx, conversation_id: int) -> Ask | None:
    """Return the ask on whose behalf a conversation's agent asks, locked against cancelling until the commit."""
    found = running_in(tx, conversation_id)
    if found is None:
        return None
    _lock_children(tx, found.id)
    return running_in(tx, conversation_id)


def _lock_children(tx: Tx, ask_id: str) -> None:
    tx.lock(f"asks of:{ask_id}")


def add_usage(
    tx: Tx, ask_id: str, *, duration_ms: int, cost_microusd: int | None, input_tokens: int, output_tokens: int
) -> None:
    """Add what a turn took to its ask, however the turn ended; a cost of None is not known."""
    tx.run(
        "UPDATE asks SET duration_ms = coalesce(duration_ms, 0) + :duration,"
        " cost_microusd = coalesce(coalesce(cost_microusd, 0) + :cost, cost_microusd),"
        " input_tokens = coalesce(input_tokens, 0) + :input, output_tokens = coalesce(output_tokens, 0) + :output"
        " WHERE id = :id",
        duration=duration_ms,
        cost=cost_microusd,
        input=input_tokens,
        output=output_tokens,
        id=ask_id,
    )


def requeue(tx: Tx, found: Ask, runner: str, note: str) -> None:
    """Requeue an ask at its old place, unless it is no longer this runner's."""
    if leases.release(tx, ASKS, found.id, runner, note=note):
        permissions.end(tx, found.id)
        tx.emit("teams.requeued", found.id, {"to": found.to_team})


def grown(tx: Tx, runner: str, teams: Sequence[str], threshold: int, limit: int = 10) -> list[Conversation]:
    """Return conversations of these teams to compact: idle, and not leased to another runner."""
    return _free(
        tx,
        runner,
        teams,
        "status <> 'archived' AND (status = 'compact_pending' OR message_count - compacted_count >= :threshold)"
        " AND NOT EXISTS (SELECT 1 FROM asks a WHERE a.conversation_id = c.id"
        " AND a.status IN ('waiting', 'running')) ORDER BY id LIMIT :limit",
        threshold=threshold,
        limit=limit,
    )


def _free(tx: Tx, runner: str, teams: Sequence[str], which: str, **values: Any) -> list[Conversation]:
    names = {f"team{index}": name for index, name in enumerate(teams)}
    if not names:
        return []
    rows = tx.all(
        f"SELECT {CONVERSATION} FROM conversations c WHERE begun = 1 AND {CONVERSATIONS.takeable('c')}"
        f" AND to_team IN ({', '.join(':' + name for name in names)}) AND {which}",
        now=tx.now(),
        holder=runner,
        **names,
        **values,
    )
    return [found for row in rows if (found := _conversation(row))]


def archive_unused(tx: Tx, before: int) -> int:
    """Archive conversations that have not been used for long."""
    return tx.run(
        "UPDATE conversations SET status = 'archived' WHERE status = 'active' AND last_used_at < :before", before=before
    )


def spent_since(tx: Tx, team: str, since: int) -> int:
    """Return the cost that a team's agent reported, in millionths of a dollar."""
    row = tx.one(
        "SELECT coalesce(sum(cost_microusd), 0) AS total FROM asks WHERE to_team = :team AND finished_at >= :since",
        team=team,
        since=since,
    )
    return int(row["total"]) if row else 0


def counts(tx: Tx) -> list[tuple[str, AskStatus, int]]:
    """How many asks of each team wait and run."""
    rows = tx.all(
        "SELECT to_team, status, count(*) AS n FROM asks WHERE status IN ('waiting', 'running')"
        " GROUP BY to_team, status"
    )
    return [(row["to_team"], AskStatus(row["status"]), int(row["n"])) for row in rows]


def add_notice(tx: Tx, from_team: str, to_team: str, text: str, ttl_ms: int) -> str:
    """Store a notice for a team's next turn."""
    notice_id = tx.new_id()
    tx.run(
        "INSERT INTO notices (id, from_team, to_team, text, created_at, expires_at)"
        " VALUES (:id, :from_team, :to_team, :text, :now, :expires)",
        id=notice_id,
        from_team=from_team,
        to_team=to_team,
        text=text,
        now=tx.now(),
        expires=tx.now() + ttl_ms,
    )
    tx.emit("teams.notified", notice_id, {"to": to_team})
    return notice_id


def unseen_notices(tx: Tx, team: str, limit: int = 20) -> dict[str, tuple[str, str]]:
    """The sender and the text of each notice that a team was not shown yet, by id."""
    rows = tx.all(
        "SELECT id, from_team, text FROM notices WHERE to_team = :team AND shown_at IS NULL AND expires_at > :now"
        " ORDER BY row_id LIMIT :limit",
        team=team,
        now=tx.now(),
        limit=limit,
    )
    return {row["id"]: (row["from_team"], row["text"]) for row in rows}


def mark_shown(tx: Tx, notice_ids: Iterable[str]) -> None:
    """Mark notices as shown: they were part of a turn that was answered."""
    for notice_id in notice_ids:
        tx.run("UPDATE notices SET shown_at = :now WHERE id = :id", now=tx.now(), id=notice_id)


def working(tx: Tx, team: str) -> Ask | None:
    """Return an ask to or from a team that an agent works on now."""
    return _ask(
        tx.one(
            f"SELECT {OF_A} FROM asks a JOIN conversations c ON c.id = a.conversation_id"
            " WHERE (c.to_team = :team OR c.from_team = :team) AND a.status = 'running'"
            f" AND {ASKS.in_force('a')}",
            team=team,
            now=tx.now(),
        )
    )


def forget(tx: Tx, team: str) -> int:
    """Remove every conversation to or from a team with all its content; return how many asks there were."""
    removed = 0
    for row in tx.all("SELECT id, session_id FROM conversations WHERE to_team = :team OR from_team = :team", team=team):
        tx.run("DELETE FROM transcript_lines WHERE session_id = :id", id=row["session_id"])
        tx.run(
            "DELETE FROM permissions WHERE ask_id IN (SELECT id FROM asks WHERE conversation_id = :id)", id=row["id"]
        )
        removed += tx.run("DELETE FROM asks WHERE conversation_id = :id", id=row["id"])
        tx.run("DELETE FROM conversations WHERE id = :id", id=row["id"])
    tx.run("DELETE FROM notices WHERE to_team = :team OR from_team = :team", team=team)
    tx.run("DELETE FROM permissions WHERE team = :team", team=team)
    tx.emit("teams.forgotten", "team", {"asks": removed})
    return removed


def _conversation(row: Row | None) -> Conversation | None:
    return Conversation(**row) if row else None


def _ask(row: Row | None) -> Ask | None:
    return Ask(**row) if row else None


def leave_session(tx: Tx, conversation_id: int, session_id: str, note: str | None) -> None:
    """Restart the conversation in another session, which is told nothing about the old one."""
    set_session(tx, conversation_id, session_id, begun=False, note=note)
    tx.run(
        "UPDATE conversations SET fork_of = NULL, summary = NULL, compacted_count = message_count,"
        " status = CASE status WHEN 'compact_pending' THEN 'active' ELSE status END WHERE id = :id",
        id=conversation_id,
    )


def fork(tx: Tx, original: Conversation, thread: str, session_id: str) -> Conversation:
    """Create a thread in a session that is a copy of another conversation's."""
    made = adopt(tx, original.from_team, original.to_team, thread, session_id)
    tx.run(
        "UPDATE conversations SET message_count = :messages, compacted_count = :compacted WHERE id = :id",
        messages=original.message_count,
        compacted=original.compacted_count,
        id=made.id,
    )
    return conversation(tx, made.id) or made
