"""The SQL of reasoning, functions of a transaction; written once for both engines."""
# ruff: noqa: S608 - the SQL is built from constants only

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

from holdfast.identity.project import Root
from holdfast.lazy_dataclass import dataclass
from holdfast.reasoning.model import Branch, Session, Status, Thought
from holdfast.store import Row, Tx

if TYPE_CHECKING:
    from holdfast.reasoning.results import Step

SESSION = ", ".join(field.name for field in fields(Session))
_LINKED = "id IN (SELECT session_id FROM session_roots WHERE root_uri = :root)"
_ACTIVE = "status = 'active' AND updated_at >= :since ORDER BY updated_at DESC, id DESC LIMIT :limit"
WHOLE = ", ".join(field.name for field in fields(Thought))
_CUT = WHOLE.replace("content", "substr(content, 1, :cut) AS content")


@dataclass(frozen=True, slots=True)
class Position:
    """Where the next page of sessions begins: after this one, in the order of last use."""

    updated_at: int
    id: str


@dataclass(frozen=True, slots=True)
class Scope:
    """A filter of sessions: of a project (None: of all), in one of these states, with all of these tags."""

    root: Root | None
    statuses: tuple[Status, ...]
    tags: tuple[str, ...] = ()


# -- sessions ---------------------------------------------------------------------------------------------------


def session(tx: Tx, session_id: str) -> Session | None:
    return next(iter(_sessions(tx, "id = :id", id=session_id)), None)


def add_session(tx: Tx, new: Session) -> None:
    _insert(tx, "sessions", **asdict(new) | {"tags": _tags_text(new.tags), "status": new.status.value})


def newest_use(tx: Tx, root_uri: str) -> int:
    """Return when a session of this root was last used; 0 for never."""
    row = tx.one(
        "SELECT updated_at FROM sessions WHERE root_uri = :root AND status = 'active' ORDER BY updated_at DESC LIMIT 1",
        root=root_uri,
    )
    return int(row["updated_at"]) if row else 0


def pinned_in_root(tx: Tx, root_uri: str) -> list[Session]:
    """Return the session that is pinned in this root, if any; only active sessions are ever pinned."""
    # Naming the status or an order would make SQLite walk all sessions of the root instead of the pinned one's index.
    return _sessions(tx, "root_uri = :root AND pinned = 1", root=root_uri)


def pinned_elsewhere(tx: Tx, root_uri: str) -> list[Session]:
    """Return the sessions that are linked to this root and pinned in their own, the most recent first."""
    return _sessions(tx, f"pinned = 1 AND {_LINKED} ORDER BY updated_at DESC, id DESC", root=root_uri)


def pinned_in_project(tx: Tx, project_key: str) -> list[Session]:
    """Return the sessions that are pinned in a root of this project, the most recent first."""
    where = "project_key = :key AND status = 'active' AND pinned = 1 ORDER BY updated_at DESC, id DESC"
    return _sessions(tx, where, key=project_key)


def active_in_root(tx: Tx, root_uri: str, since: int, limit: int) -> list[Session]:
    """Return the root's active sessions used since then, including linked ones, the most recent first."""
    # By themselves, and not as an OR: the root's own ones are read in the order of their index.
    rows = [
        session
        for condition in ("root_uri = :root", _LINKED)
        for session in _sessions(tx, f"{condition} AND {_ACTIVE}", root=root_uri, since=since, limit=limit)
    ]
    rows.sort(key=lambda one: (one.updated_at, one.id), reverse=True)
    return rows[:limit]


def active_in_project(tx: Tx, project_key: str, since: int, limit: int) -> list[Session]:
    """Return the active sessions of a project on any path or machine, the most recent first."""
    return _sessions(tx, f"project_key = :key AND {_ACTIVE}", key=project_key, since=since, limit=limit)


def project_has_sessions(tx: Tx, project_key: str) -> bool:
    """Return whether any session of the project is active or archived, under any root."""
    sql = "SELECT 1 AS found FROM sessions WHERE project_key = :key AND status IN ('active', 'archived') LIMIT 1"
    return tx.one(sql, key=project_key) is not None


def root_has_sessions(tx: Tx, root_uri: str) -> bool:
    """Return whether any session of exactly this root is active or archived, linked ones included."""
    own = "SELECT 1 AS found FROM sessions WHERE root_uri = :root AND status IN ('active', 'archived') LIMIT 1"
    linked = (
        "SELECT 1 AS found FROM session_roots r JOIN sessions s ON s.id = r.session_id"
        " WHERE r.root_uri = :root AND s.status IN ('active', 'archived') LIMIT 1"
    )
    return any(tx.one(sql, root=root_uri) is not None for sql in (own, linked))


def sessions_page(tx: Tx, scope: Scope, after: Position | None, limit: int) -> list[Session]:
    """Return a page of sessions, the most recently used first."""
    found: dict[str, Session] = {}
    # Each state and each way to belong to a project by itself, and not as an OR: so each is read in its index's order.
    for way, value in _ways(scope.root):
        for status in scope.statuses if scope.root is not None else (None,):
            where, params = conditions(replace(scope, root=None, statuses=(status,) if status else scope.statuses))
            if after is not None:
                where += " AND (updated_at < :at OR (updated_at = :at AND id < :after))"
                params |= {"at": after.updated_at, "after": after.id}
            where = f"{way} AND {where} ORDER BY updated_at DESC, id DESC LIMIT :limit"
            found |= {one.id: one for one in _sessions(tx, where, **params, value=value, limit=limit)}
    return sorted(found.values(), key=lambda one: (one.updated_at, one.id), reverse=True)[:limit]


def _ways(root: Root | None) -> list[tuple[str, str | None]]:
    """Return the conditions by which a session belongs to a project, each with its value."""
    if root is None:
        return [("1 = 1", None)]
    near = [root, *([root.top] if root.top is not None else [])]
    ways = [
        (condition, value)
        for one in near
        for condition, value in (
            ("root_uri = :value", one.uri),
            ("project_key = :value", one.key),
            ("id IN (SELECT session_id FROM session_roots WHERE root_uri = :value)", one.uri),
        )
        if value is not None
    ]
    return list(dict.fromkeys(ways))


def conditions(scope: Scope, prefix: str = "") -> tuple[str, dict[str, str | int | None]]:
    """Build the WHERE clause of a scope and its parameters; column names get `prefix`."""
    params: dict[str, str | int | None] = {}
    terms = []
    if scope.root is not None:
        linked = "SELECT session_id FROM session_roots WHERE root_uri IN (:root, :top)"
        condition = f"{prefix}root_uri IN (:root, :top) OR {prefix}project_key IN (:key, :top_key)"
        terms.append(f"({condition} OR {prefix}id IN ({linked}))")
        top = scope.root.top
        params |= {"root": scope.root.uri, "key": scope.root.key}
        params |= {"top": top.uri if top else None, "top_key": top.key if top else None}
    states = {f"status{place}": status.value for place, status in enumerate(scope.statuses)}
    terms.append(f"{prefix}status IN ({', '.join(':' + name for name in states)})")
    params |= states
    for place, tag in enumerate(scope.tags):
        # LIKE ignores case on one engine only; removing the tag's JSON text shows whether it is there, on both.
        terms.append(f"replace({prefix}tags, :tag{place}, '') <> {prefix}tags")
        params[f"tag{place}"] = json.dumps(tag, ensure_ascii=False)
    return " AND ".join(terms), params


def session_ids(tx: Tx, offset: int, limit: int) -> list[str]:
    # By offset, not after an id: a damaged id is read with U+FFFD in it, and the next page could begin with it again.
    rows = tx.all("SELECT id FROM sessions ORDER BY id LIMIT :limit OFFSET :offset", offset=offset, limit=limit)
    return [row["id"] for row in rows]


def ids_beginning(tx: Tx, beginning: str) -> list[str]:
    sql = "SELECT id FROM sessions WHERE substr(id, 1, :length) = :beginning ORDER BY length(id), id LIMIT 2"
    rows = tx.all(sql, length=len(beginning), beginning=beginning)
    return [row["id"] for row in rows]


def damaged_fields(tx: Tx, session_id: str) -> list[str]:
    """Return the fields of a session's row that cannot be read and are shown with default values."""
    row = tx.one("SELECT tags, status FROM sessions WHERE id = :id", id=session_id)
    if row is None:
        return []
    read = {"tags": _read_tags(row["tags"]), "status": _read_status(row["status"])}
    return [name for name, value in read.items() if value is None]


def set_title(tx: Tx, session_id: str, title: str) -> None:
    tx.run("UPDATE sessions SET title = :title WHERE id = :id", title=title, id=session_id)


def set_tags(tx: Tx, session_id: str, tags: Sequence[str]) -> None:
    tx.run("UPDATE sessions SET tags = :tags WHERE id = :id", tags=_tags_text(tags), id=session_id)


def set_pinned(tx: Tx, session_id: str, pinned: bool) -> None:
    tx.run("UPDATE sessions SET pinned = :pinned WHERE id = :id", pinned=int(pinned), id=session_id)


def set_status(tx: Tx, session_id: str, status: Status) -> None:
    """Archive, delete or restore a session; only an active one stays pinned, and restoring counts as use."""
    changes = {
        Status.ACTIVE: "archived_at = NULL, deleted_at = NULL, updated_at = :now",
        Status.ARCHIVED: "pinned = 0, archived_at = :now",
        Status.DELETED: "pinned = 0, deleted_at = :now",
    }
    sql = f"UPDATE sessions SET status = :status, {changes[status]} WHERE id = :id"
    tx.run(sql, status=status.value, now=tx.now(), id=session_id)


def link(tx: Tx, session_id: str, linked_id: str) -> bool:
    """Link two sessions, both ways; says whether the link is new."""
    new = 0
    for one, other in ((session_id, linked_id), (linked_id, session_id)):
        new += tx.run(
            "INSERT INTO session_links (session_id, linked_id, at) VALUES (:one, :other, :at)"
            " ON CONFLICT (session_id, linked_id) DO NOTHING",
            one=one,
            other=other,
            at=tx.now(),
        )
    return new > 0


def link_root(tx: Tx, session_id: str, root: Root) -> bool:
    """Link a session to another root; says whether the link is new."""
    sql = (
        "INSERT INTO session_roots (session_id, root_uri, project_key, at) VALUES (:id, :root, :key, :at)"
        " ON CONFLICT (session_id, root_uri) DO NOTHING"
    )
    return tx.run(sql, id=session_id, root=root.uri, key=root.key, at=tx.now()) > 0


def linked_roots(tx: Tx, session_id: str, limit: int) -> list[str]:
    """Return the roots that a session was linked to, the oldest link first."""
    sql = "SELECT root_uri FROM session_roots WHERE session_id = :id ORDER BY at, root_uri LIMIT :limit"
    rows = tx.all(sql, id=session_id, limit=limit)
    return [row["root_uri"] for row in rows]


def is_linked(tx: Tx, session_id: str, root_uri: str) -> bool:
    sql = "SELECT 1 AS found FROM session_roots WHERE session_id = :id AND root_uri = :root"
    return tx.one(sql, id=session_id, root=root_uri) is not None


def links(tx: Tx, session_id: str, limit: int) -> list[Session]:
    """Return the sessions linked with this one that are not deleted, the oldest link first."""
    rows = tx.all(
        f"SELECT {SESSION} FROM session_links l JOIN sessions s ON s.id = l.linked_id"
        " WHERE l.session_id = :id AND s.status <> 'deleted' ORDER BY l.at, s.id LIMIT :limit",
        id=session_id,
        limit=limit,
    )
    return [_to_session(row) for row in rows]


# -- thoughts ---------------------------------------------------------------------------------------------------


def is_repetition(
    tx: Tx, session_id: str, number: int, content: str, requested: int | None, branch: str | None
) -> bool:
    """Return whether the thought with this number has the same text, sent number and branch."""
    sql = (
        "SELECT requested_number, branch_id FROM thoughts WHERE session_id = :id AND number = :number"
        " AND content = :content"
    )
    row = tx.one(sql, id=session_id, number=number, content=content)
    return row is not None and (row["requested_number"], row["branch_id"]) == (requested, branch)


def highest_number(tx: Tx, session_id: str) -> int:
    """Return the number of the newest thought; 0 for none."""
    row = tx.one("SELECT number FROM thoughts WHERE session_id = :id ORDER BY number DESC LIMIT 1", id=session_id)
    return int(row["number"]) if row else 0


def add_thought(tx: Tx, thought: Thought, prev_hash: str, own_hash: str) -> None:
    _insert(tx, "thoughts", **vars(thought), prev_hash=prev_hash, hash=own_hash)


def advance(tx: Tx, session_id: str, head_hash: str, new_branches: int) -> None:
    """Count one more thought in a session."""
    sql = (
        "UPDATE sessions SET thought_count = thought_count + 1, branch_count = branch_count + :branches,"
        " head_hash = :head, updated_at = :now WHERE id = :id"
    )
    tx.run(sql, branches=new_branches, head=head_hash, now=tx.now(), id=session_id)


def thoughts(tx: Tx, session_id: str, first: int, last: int, limit: int, cut: int | None = None) -> list[Thought]:
    """Return up to `limit` thoughts numbered `first` to `last`, each cut to `cut` characters if that is given."""
    sql = (
        f"SELECT {WHOLE if cut is None else _CUT} FROM thoughts"
        " WHERE session_id = :id AND number >= :first AND number <= :last ORDER BY number LIMIT :limit"
    )
    rows = tx.all(sql, id=session_id, first=first, last=last, limit=limit, **{} if cut is None else {"cut": cut})
    return [to_thought(row) for row in rows]


def thoughts_before(tx: Tx, session_id: str, before: int, limit: int, cut: int) -> list[Thought]:
    """Return the last `limit` thoughts numbered below `before`, the newest first, each cut to `cut` characters."""
    sql = f"SELECT {_CUT} FROM thoughts WHERE session_id = :id AND number < :before ORDER BY number DESC LIMIT :limit"
    rows = tx.all(sql, id=session_id, before=before, limit=limit, cut=cut)
    return [to_thought(row) for row in rows]


def thought_steps(tx: Tx, session_id: str) -> list[Step]:
    """Return every thought of a session without its text: number, branch, what it revises, its length and its time."""
    from holdfast.reasoning.results import Step

    rows = tx.all(
        "SELECT number, branch_id, branch_from, revises, length(content) AS length, created_at"
        " FROM thoughts WHERE session_id = :id ORDER BY number",
        id=session_id,
    )
    return [Step(**row) for row in rows]


def line_ends(tx: Tx, session_id: str, before: int) -> list[tuple[str | None, int]]:
    """Return the last thought below `before` of the main line (None) and of each branch."""
    rows = tx.all(
        "SELECT branch_id, max(number) AS number FROM thoughts WHERE session_id = :id AND number < :before"
        " GROUP BY branch_id",
        id=session_id,
        before=before,
    )
    return [(row["branch_id"], row["number"]) for row in rows]


# -- branches ---------------------------------------------------------------------------------------------------


def branch(tx: Tx, session_id: str, branch_id: str) -> Branch | None:
    sql = "SELECT branch_id, from_number, thought_count FROM branches WHERE session_id = :id AND branch_id = :branch"
    row = tx.one(sql, id=session_id, branch=branch_id)
    return _branch(row) if row else None


def extend_branch(tx: Tx, session_id: str, branch_id: str, from_number: int) -> None:
    """Count one more thought on a branch, which its first thought creates."""
    sql = (
        "INSERT INTO branches (session_id, branch_id, from_number, thought_count, created_at)"
        " VALUES (:id, :branch, :from_number, 1, :now)"
        " ON CONFLICT (session_id, branch_id) DO UPDATE SET thought_count = branches.thought_count + 1"
    )
    tx.run(sql, id=session_id, branch=branch_id, from_number=from_number, now=tx.now())


def branches(tx: Tx, session_id: str, limit: int) -> list[Branch]:
    rows = tx.all(
        "SELECT branch_id, from_number, thought_count FROM branches WHERE session_id = :id"
        " ORDER BY created_at, branch_id LIMIT :limit",
        id=session_id,
        limit=limit,
    )
    return [_branch(row) for row in rows]


# -- rows -------------------------------------------------------------------------------------------------------


def _sessions(tx: Tx, where: str, **params: Any) -> list[Session]:
    rows = tx.all(f"SELECT {SESSION} FROM sessions WHERE {where}", **params)
    return [_to_session(row) for row in rows]


def _insert(tx: Tx, table: str, **values: Any) -> None:
    columns, names = ", ".join(values), ", ".join(f":{name}" for name in values)
    tx.run(f"INSERT INTO {table} ({columns}) VALUES ({names})", **values)


def _to_session(row: Row) -> Session:
    tags, status = _read_tags(row["tags"]), _read_status(row["status"])
    # A damaged one must not keep the session's thoughts from being read; `holdfast verify` names it.
    usual = {"tags": tags or (), "status": status or Status.ACTIVE, "pinned": bool(row["pinned"])}
    return Session(**row | usual)


def _read_tags(stored: str) -> tuple[str, ...] | None:
    try:
        tags = json.loads(stored)
    except ValueError:
        return None
    return tuple(tags) if isinstance(tags, list) else None


def _read_status(stored: str) -> Status | None:
    try:
        return Status(stored)
    except ValueError:
        return None


def to_thought(row: Row) -> Thought:
    flags = {name: bool(row[name]) for name in ("next_needed", "is_revision", "needs_more")}
    return Thought(**row | flags)


def _branch(row: Row) -> Branch:
    return Branch(row["branch_id"], row["from_number"], row["thought_count"])


def _tags_text(tags: Sequence[str]) -> str:
    return json.dumps(list(tags), ensure_ascii=False, separators=(",", ":"))
