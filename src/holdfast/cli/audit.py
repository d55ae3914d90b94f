"""`holdfast audit`: attempts to reconnect to a connection, and their outcome."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict

from holdfast.cli.common import add_home, settings_of
from holdfast.cli.control import ask_daemon
from holdfast.cli.table import show_table
from holdfast.client import AuditEntry, Client
from holdfast.config import Settings
from holdfast.errors import BadInput, NoDaemon
from holdfast.files.private import read_or_make
from holdfast.text.terminal import say
from holdfast.times import local

AT_ONCE = 200


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    audit = commands.add_parser(
        "audit",
        description="Show who asked for tokens and who tried to reconnect to which connection, newest first.",
    )
    audit.add_argument("--session", metavar="ID", help="only for this connection")
    audit.add_argument("--limit", metavar="N", type=int, default=50, help="the maximum number of entries (default 50)")
    audit.add_argument("--json", action="store_true", help="print it as JSON")
    add_home(audit)
    audit.set_defaults(run=show_audit)


def show_audit(options: argparse.Namespace) -> int:
    if options.limit < 1:
        raise BadInput("--limit", "must be 1 or more")
    entries = list(_entries(_client(settings_of(options)), options.session, options.limit))
    if options.json:
        shown = [{name: value for name, value in asdict(entry).items() if value is not None} for entry in entries]
        say(json.dumps(shown))
        return 0
    if not entries:
        say("No audit entries.")
        return 0
    rows: list[tuple[str, ...]] = [("TIME", "ACTION", "OUTCOME", "SESSION", "KEY", "ADDRESS", "CLIENT")]
    for one in entries:
        outcome = one.outcome if one.times == 1 else f"{one.outcome} x{one.times}"
        rest = (one.session_id, one.principal, one.address, one.client)
        rows.append((local(one.at), one.action, outcome, *(text or "-" for text in rest)))
    show_table(rows, whole=("TIME",))
    return 0


def _client(settings: Settings) -> Client:
    status = ask_daemon(settings, "status")
    if status["address"] is None:
        raise NoDaemon(
            f"The audit is read over HTTP, which the daemon does not serve: {status['http']}",
            recovery="Fix that, then restart the daemon with `holdfast serve`.",
        )
    return Client(status["address"], read_or_make(settings.key_file))


def _entries(client: Client, session_id: str | None, wanted: int) -> Iterator[AuditEntry]:
    cursor: str | None = None
    while wanted > 0:
        page = client.audit(limit=min(wanted, AT_ONCE), cursor=cursor, session_id=session_id)
        yield from page.entries
        wanted -= len(page.entries)
        cursor = page.next_cursor
        if cursor is None:
            return
