"""Leases: one holder at a time works on a row, until an expiry time that only it can extend.

A lease is a set of table columns, described once as a `Lease`; all times are `tx.now()`. The lease of a holder that is
gone simply expires. Where a holder's name may come back (a restarted daemon), a token distinguishes its incarnations
and must be given to write the result.
"""
# ruff: noqa: S608 - the only texts put into SQL here are the constants of a description, and `Lease` checks its names

from __future__ import annotations

from functools import cache
from typing import Any

from holdfast.lazy_dataclass import dataclass
from holdfast.store import Tx


@dataclass(frozen=True, slots=True)
class Lease:
    """Where a kind of lease is stored. Names and conditions are constants of the program, never text from outside."""

    table: str
    key: str
    """The column that identifies the row."""
    until: str = "lease_until"
    holder: str | None = "lease_by"
    """The column with the holder's name; None if the key implies it."""
    token: str | None = None
    own_row: bool = False
    """Whether the row exists only for the lease: created when it is taken, deleted when it is released."""
    free: str | None = None
    """The condition under which the row can be taken; by default while no other holder's lease is in force."""
    held: str | None = None
    """The condition under which it can be renewed and released; by default while it has a time."""
    taken: str = ""
    """Further SET clauses when it is taken; may use `:now` and further values."""
    released: str = ""
    """Further SET clauses when it is released."""

    def __post_init__(self) -> None:
        names = (self.table, self.key, self.until, self.holder or "id", self.token or "id")
        if not all(name.isidentifier() for name in names):
            raise ValueError(f"A lease's table and columns are plain names, not {names}.")

    def in_force(self, alias: str) -> str:
        """Return the SQL condition that a lease is in force at `:now`, in a query that calls the table `alias`."""
        return f"{alias}.{self.until} >= :now"

    def takeable(self, alias: str) -> str:
        """Return the SQL condition that `:holder` may take a lease at `:now`."""
        until = f"{alias}.{self.until}"
        mine = f" OR {alias}.{self.holder} = :holder" if self.holder else ""
        return f"({until} IS NULL OR {until} < :now{mine})"


NAMED = Lease("leases", "name", until="until", holder="holder", own_row=True)
"""Named leases, for things that have no row of their own."""


def expired(until: int | None, now: int) -> bool:
    """Return whether a lease has expired; without an expiry time it was never taken, or was released."""
    return until is None or until < now


def due(until: int | None, now: int, lease_ms: int) -> bool:
    """Return whether it is time to renew a lease: half of it is over."""
    return until is None or until - now <= lease_ms // 2


def take(
    tx: Tx, lease: Lease, key: object, holder: str, lease_ms: int, *, token: str | None = None, **values: Any
) -> bool:
    """Take a lease, or renew the holder's own; returns False while another holder has it."""
    parameters = {"key": key, "holder": holder, "until": tx.now() + lease_ms, "now": tx.now(), **values}
    if lease.token:
        parameters["token"] = token
    return bool(tx.run(_taking(lease), **parameters))


@cache
def _taking(lease: Lease) -> str:
    """Return the statement that takes a lease."""
    names = {lease.until: "until"} | ({lease.holder: "holder"} if lease.holder else {})
    if lease.own_row:
        return (
            f"INSERT INTO {lease.table} ({lease.key}, {', '.join(names)})"
            f" VALUES (:key, {', '.join(f':{name}' for name in names.values())}) ON CONFLICT ({lease.key})"
            f" DO UPDATE SET {', '.join(f'{column} = excluded.{column}' for column in names)}"
            + (f" WHERE {lease.takeable(lease.table)}" if lease.holder else "")
        )
    if lease.token:
        names[lease.token] = "token"
    changes = [*(f"{column} = :{name}" for column, name in names.items()), *filter(None, [lease.taken])]
    return (
        f"UPDATE {lease.table} SET {', '.join(changes)}"
        f" WHERE {lease.key} = :key AND {lease.free or lease.takeable(lease.table)}"
    )


def renew(tx: Tx, lease: Lease, lease_ms: int, *, key: object = None, holder: str | None = None) -> int:
    """Renew leases by key, by holder, or by both; returns how many were renewed."""
    if key is None and holder is None:
        raise ValueError("A lease is renewed by its key, by its holder, or by both.")
    return tx.run(
        f"UPDATE {lease.table} SET {lease.until} = :until WHERE {_which(lease, key, holder)}",
        key=key,
        holder=holder,
        until=tx.now() + lease_ms,
    )


def release(tx: Tx, lease: Lease, key: object, holder: str | None = None, **values: Any) -> bool:
    """Release a lease, so that the next holder need not wait; if `holder` is given, only its own."""
    which = _which(lease, key, holder)
    if lease.own_row:
        return bool(tx.run(f"DELETE FROM {lease.table} WHERE {which}", key=key, holder=holder))
    columns = filter(None, (lease.holder, lease.token, lease.until))
    changes = [*(f"{column} = NULL" for column in columns), *filter(None, [lease.released])]
    sql = f"UPDATE {lease.table} SET {', '.join(changes)} WHERE {which}"
    return bool(tx.run(sql, key=key, holder=holder, **values))


def holds(tx: Tx, lease: Lease, key: object, holder: str) -> bool:
    """Return whether a holder's lease is still in force."""
    sql = f"SELECT 1 AS held FROM {lease.table} WHERE {_which(lease, key, holder)} AND {lease.in_force(lease.table)}"
    return tx.one(sql, key=key, holder=holder, now=tx.now()) is not None


def carry_over(tx: Tx, table: str, column: str, before: int, now: int, longest_ms: int) -> None:
    """Give leases that were in force before a clock jump the time they had left; never more than `longest_ms`."""
    tx.run(
        f"UPDATE {table} SET {column} = :now + CASE WHEN {column} - :before < :longest"
        f" THEN {column} - :before ELSE :longest END WHERE {column} >= :before AND {column} < :end",
        now=now,
        before=before,
        longest=longest_ms,
        end=now if now > before else 1 << 62,
    )


def _which(lease: Lease, key: object, holder: str | None) -> str:
    conditions = [lease.held or f"{lease.until} IS NOT NULL"]
    if key is not None:
        conditions.append(f"{lease.key} = :key")
    if holder is not None:
        conditions.append(f"{lease.holder} = :holder")
    return " AND ".join(conditions)
