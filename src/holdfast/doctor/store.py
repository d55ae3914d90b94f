"""The store: it opens, its schema is known, its pages are whole. Looks, and changes nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import apsw

from holdfast.doctor.findings import Finding, fault, note, ok
from holdfast.doctor.surroundings import Surroundings
from holdfast.errors import StoreError
from holdfast.store.damage import CORRUPT, CREATED, check_at_start, look_into
from holdfast.store.integrity import problem_lines
from holdfast.store.loss_notices import LossNotices
from holdfast.store.migrations import load, pending
from holdfast.store.sqlite import applied_migrations, in_our_words

PAGES_SECONDS = 3.0
STEPS = 10_000
"""How often SQLite asks whether it is to go on, in its own instructions."""
CONNECT_SECONDS = 3
SALVAGE = (
    "`holdfast serve` moves it aside, salvages what can be read and names what is lost; nothing is deleted."
    " Copy the data directory first if you want to look into it yourself."
)


def check_store(around: Surroundings) -> Iterator[Finding]:
    """Whichever engine the settings name."""
    url = around.settings.database_url
    return _postgres(url) if url else _embedded(around)


def check_losses(around: Surroundings) -> Iterator[Finding]:
    """Losses that nobody has acknowledged yet."""
    waiting = LossNotices(around.home).open()
    for notice in waiting:
        more = f" and {len(notice.lost) - 1} more" if len(notice.lost) > 1 else ""
        offered = f" `holdfast restore {notice.backup}` puts the newest backup back." if notice.backup else ""
        yield fault(
            f"{notice.at}: {notice.reason} Lost: {notice.lost[0]}{more}.",
            f"`holdfast status` shows all of it; `holdfast acknowledge-loss` ends this notice.{offered}",
        )
    if not waiting:
        yield ok("none that is not acknowledged")


def _embedded(around: Surroundings) -> Iterator[Finding]:
    path = around.settings.database
    if around.home.exists() and around.home.stat().st_uid != os.geteuid():
        yield note("not looked at, because the data directory belongs to another user")
        return
    if not path.exists() and not (around.home / CREATED).exists():
        yield ok("none yet; the first start makes it")
        return
    try:
        # A daemon that writes meanwhile would look like a damaged log; it has checked for itself, and checks on.
        damage = check_at_start(path) if around.daemon is None and around.holder() is None else None
        if damage is not None:
            yield fault(damage.message, SALVAGE)
            return
        if (around.home / CORRUPT).exists():
            yield fault(f"The daemon met damage in {path.name}; the next start looks at every page.", SALVAGE)
            return
        yield _whole(path)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        yield fault(f"The database {path.name} is damaged: {error}.", SALVAGE)
    except apsw.Error as error:
        raise in_our_words(error, path) from error


def _whole(path: Path) -> Finding:
    connection = look_into(path)
    try:
        applied = applied_migrations(connection)
        steps = pending(applied, load())
        deadline = time.monotonic() + PAGES_SECONDS
        connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)
        try:
            answers = connection.execute("PRAGMA quick_check(1)").fetchall()
        except apsw.InterruptError:
            return note(f"{_told(path)}: too large to be read through here", "`holdfast verify` checks all of it.")
    finally:
        connection.close()
    problems = problem_lines(answer for (answer,) in answers)
    if problems:
        return fault(f"The database {path.name} is damaged: {problems[0]}.", SALVAGE)
    if steps:
        return note(f"{_told(path)}, whole; the next start brings its schema from {_last(applied)} to {_known()}")
    return ok(f"{_told(path)}, schema {_known()}, whole")


def _postgres(url: str) -> Iterator[Finding]:
    try:
        import psycopg

        from holdfast.store.postgres_server import Server, schema_of
        from holdfast.store.postgres_server import applied_migrations as applied_there
    except ImportError as error:
        raise StoreError(
            f"PostgreSQL needs packages that are not installed ({error.name}).",
            recovery="Install them: pip install 'holdfast[postgres]'",
        ) from error
    server = Server(url)
    try:
        connection = psycopg.connect(url, **{**server.settings(), "connect_timeout": CONNECT_SECONDS})
    except psycopg.OperationalError as error:
        # `from None`: the cause's text may hold the password.
        raise server.unreachable(server.without_password(error)) from None
    with connection:
        row = connection.execute("SELECT current_user AS name, current_setting('server_version') AS version").fetchone()
        applied = applied_there(connection, schema_of(connection, server))
    who = f"PostgreSQL {row['version']} at {server}, as {row['name']}" if row else f"PostgreSQL at {server}"
    steps = pending(applied, load())
    if not applied:
        yield ok(f"{who}, empty; the first start fills it")
    elif steps:
        yield note(f"{who}; the next start brings its schema from {_last(applied)} to {_known()}")
    else:
        yield ok(f"{who}, schema {_known()}")


def _told(path: Path) -> str:
    return f"{path} ({path.stat().st_size / 1e6:.1f} MB)"


def _last(applied: list[tuple[int, str, str]]) -> str:
    return f"{max((number for number, _, _ in applied), default=0):04}"


def _known() -> str:
    return f"{max(step.number for step in load()):04}"
