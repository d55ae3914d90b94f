"""Checks of the store: it opens, its schema is known, its pages are intact. Read-only."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import apsw

from holdfast.doctor.findings import Finding, fault, note, ok
from holdfast.doctor.surroundings import Surroundings
from holdfast.errors import StoreError
from holdfast.setup.extras import install_line
from holdfast.store.integrity import integrity_problems
from holdfast.store.loss_notices import LossNotices
from holdfast.store.migrations import load, pending
from holdfast.store.salvage.damage import CORRUPT, CREATED, check_at_start, open_for_inspection
from holdfast.store.sqlite import applied_migrations, to_store_error

PAGES_SECONDS = 3.0
STEPS = 10_000
"""Interval, in SQLite's virtual machine instructions, at which it asks whether to continue."""
CONNECT_SECONDS = 3
SALVAGE = (
    "`holdfast serve` moves it aside, salvages what is readable and reports what is lost; nothing is deleted."
    " Copy the data directory first if you want to examine it yourself."
)


def check_store(around: Surroundings) -> Iterator[Finding]:
    """Check the store of the engine that the settings name."""
    url = around.settings.database_url
    return _postgres(url) if url else _embedded(around)


def check_losses(around: Surroundings) -> Iterator[Finding]:
    """Check for losses that are not yet acknowledged."""
    waiting = LossNotices(around.home).open()
    for notice in waiting:
        more = f" and {len(notice.lost) - 1} more" if len(notice.lost) > 1 else ""
        offered = f" `holdfast restore {notice.backup}` restores the newest backup." if notice.backup else ""
        yield fault(
            f"{notice.at}: {notice.reason} Lost: {notice.lost[0]}{more}.",
            f"`holdfast status` shows all of it; `holdfast acknowledge-loss` dismisses this notice.{offered}",
        )
    if not waiting:
        yield ok("no unacknowledged losses")


def _embedded(around: Surroundings) -> Iterator[Finding]:
    path = around.settings.database
    if around.home.exists() and around.home.stat().st_uid != os.geteuid():
        yield note("not checked, because the data directory belongs to another user")
        return
    if not path.exists() and not (around.home / CREATED).exists():
        yield ok("none yet; created at the first start")
        return
    try:
        # A daemon that writes meanwhile would look like a damaged log; it checks the database itself.
        damage = check_at_start(path) if around.daemon is None and around.holder() is None else None
        if damage is not None:
            yield fault(damage.message, SALVAGE)
            return
        if (around.home / CORRUPT).exists():
            yield fault(f"The daemon found damage in {path.name}; its next start checks every page.", SALVAGE)
            return
        yield _whole(path)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        yield fault(f"The database {path.name} is damaged: {error}.", SALVAGE)
    except apsw.Error as error:
        raise to_store_error(error, path) from error


def _whole(path: Path) -> Finding:
    connection = open_for_inspection(path)
    try:
        applied = applied_migrations(connection)
        steps = pending(applied, load())
        deadline = time.monotonic() + PAGES_SECONDS
        connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)
        try:
            problems = integrity_problems(connection, quick=True)
        except apsw.InterruptError:
            return note(f"{_described(path)}: too large to check here", "`holdfast verify` checks all of it.")
    finally:
        connection.close()
    if problems:
        return fault(f"The database {path.name} is damaged: {problems[0]}.", SALVAGE)
    if steps:
        return note(
            f"{_described(path)}, intact; the next start migrates its schema from {_last(applied)} to {_known()}"
        )
    return ok(f"{_described(path)}, schema {_known()}, intact")


def _postgres(url: str) -> Iterator[Finding]:
    try:
        import psycopg

        from holdfast.store.postgres_server import Server, introduction, schema_of
        from holdfast.store.postgres_server import applied_migrations as applied_there
    except ImportError as error:
        raise StoreError(
            f"PostgreSQL needs packages that are not installed ({error.name}).",
            recovery=f"Install them: {install_line('postgres')}",
        ) from error
    server = Server(url)
    try:
        connection = psycopg.connect(url, **{**server.settings(), "connect_timeout": CONNECT_SECONDS})
    except psycopg.OperationalError as error:
        # `from None`: the text of the cause may contain the password.
        raise server.unreachable(server.without_password(error)) from None
    with connection:
        row = introduction(connection)
        applied = applied_there(connection, schema_of(connection, server))
    who = f"PostgreSQL {row['version']} at {server}, as {row['name']}" if row else f"PostgreSQL at {server}"
    steps = pending(applied, load())
    if not applied:
        yield ok(f"{who}, empty; the schema is created at the first start")
    elif steps:
        yield note(f"{who}; the next start migrates its schema from {_last(applied)} to {_known()}")
    else:
        yield ok(f"{who}, schema {_known()}")


def _described(path: Path) -> str:
    return f"{path} ({path.stat().st_size / 1e6:.1f} MB)"


def _last(applied: list[tuple[int, str, str]]) -> str:
    return f"{max((number for number, _, _ in applied), default=0):04}"


def _known() -> str:
    return f"{max(step.number for step in load()):04}"
