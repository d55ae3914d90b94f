"""`holdfast backup`, `restore`, `verify`, `acknowledge-loss`, `forget`, `pause`, `resume-recording`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.common import add_home, described_parser, require_person, settings_of, show_progress
from holdfast.cli.control import ask_daemon, ask_or_do
from holdfast.config import Settings
from holdfast.errors import DaemonRunning, HoldfastError, NoDaemon
from holdfast.process.home_lock import HomeLock
from holdfast.text.terminal import say

if TYPE_CHECKING:
    from holdfast.store import Tx

MAX_NAMED_TEXTS = 20
BACKUP = """\
Writes everything into one file while work goes on. The file is verified before it gets its name, and can be restored
into either engine with `holdfast admin restore`.

example:
  holdfast backup ~/holdfast.backup
"""
FORGET = """\
Permanently removes a session, or everything of a project: from the database, its log and index, from the daemon's log,
and with every copy of the store that Holdfast made by itself. Shows what would go and asks. Backups that you made
still contain it.

examples:
  holdfast forget ~/work/shop      everything of a project
  holdfast forget 3f2a91c0-5d1e-4a6b-9c77-0f1e2d3c4b5a --yes    one session, without asking
"""
PAUSE = """\
Records nothing for a project until `holdfast resume-recording`: no thoughts, no ledger, no briefing. What is stored
already stays.

examples:
  holdfast pause               the project here
  holdfast pause ~/private
"""
RESUME_RECORDING = """\
Records again for a project that was paused.

example:
  holdfast resume-recording ~/private
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    backup = described_parser(commands, "backup", BACKUP)
    backup.add_argument("file", metavar="FILE", help="the file to write; it can be restored into either engine")
    backup.add_argument("--replace", action="store_true", help="overwrite FILE if it exists")
    backup.add_argument("--anyway", action="store_true", help="even if verification of the store fails")
    backup.set_defaults(run=run_backup)

    restore = commands.add_parser(
        "restore",
        description="Restore a backup into the embedded store, or into PostgreSQL when HOLDFAST_DATABASE_URL is set."
        " From a backup that this installation did not make, keys and trust are left out and waiting work is held,"
        " unless you say that it is yours.",
    )
    restore.add_argument("file", metavar="FILE", help="a file that `holdfast backup` wrote")
    restore.add_argument("--replace", action="store_true", help="PostgreSQL only: replace what is stored there")
    restore.add_argument(
        "--mine",
        action="store_true",
        help="the backup is yours, though another installation made it: restore keys, trust and waiting work too",
    )
    add_home(restore)
    restore.set_defaults(run=run_restore)

    verify = commands.add_parser(
        "verify",
        description="Check the database, the log of events, the register of sessions and every hash chain, and name"
        " what is lost or changed. It does not change the store. Exit status 1 if anything is lost that was not"
        " acknowledged with `holdfast acknowledge-loss`.",
    )
    verify.add_argument("--json", action="store_true", help="print the findings as JSON")
    add_home(verify)
    verify.set_defaults(run=run_verify)

    acknowledge = commands.add_parser(
        "acknowledge-loss",
        description="Show the losses that were noticed, and end their notices in status, serve, doctor and briefings."
        " It does not change the store.",
    )
    add_home(acknowledge)
    acknowledge.set_defaults(run=run_acknowledge)

    forget = described_parser(commands, "forget", FORGET)
    forget.add_argument("what", metavar="PROJECT|SESSION", help="a project's directory or URI, or a session id")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    forget.add_argument("--json", action="store_true", help="print what was removed as JSON (with --yes)")
    forget.set_defaults(run=run_forget)

    for name, command, text in (("pause", "pause", PAUSE), ("resume-recording", "unpause", RESUME_RECORDING)):
        parser = described_parser(commands, name, text)
        parser.add_argument("project", metavar="PROJECT", nargs="?", default=".", help="its directory (default: here)")
        parser.set_defaults(run=run_recording, command=command)


def run_backup(options: argparse.Namespace) -> int:
    """Write a backup."""
    file = str(Path(options.file).expanduser().absolute())
    args = {"file": file, "replace": options.replace, "anyway": options.anyway}
    report = ask_or_do(settings_of(options), "backup", args, show_progress)
    for problem in report["problems"]:
        say(f"PROBLEM {problem}")
    for line in report["losses"]:
        say(f"LOSS    {line}")
    verdict = "verification failed" if report["problems"] else "verified"
    say(f"{report['file']}: {report['rows']} rows, {report['bytes'] / 1e6:.1f} MB, {verdict}.")
    _name_damaged_texts(report.get("damaged_texts", []), "The backup contains it byte for byte.")
    return 0


def run_restore(options: argparse.Namespace) -> int:
    """Restore a backup."""
    from holdfast.store.backup import own_backups
    from holdfast.store.backup.restore import restore_postgres, restore_sqlite

    settings = settings_of(options)
    source = Path(options.file).expanduser().absolute()
    lock = HomeLock.take(settings.home, by_hand=True, purpose="restore")
    try:
        amend = None if own_backups.is_known(settings.home, source) else partial(_amend_foreign, source, options.mine)
        if settings.database_url:
            url = settings.database_url
            report = restore_postgres(source, url, show_progress, replace=options.replace, amend=amend)
        else:
            report = restore_sqlite(source, settings.database, show_progress, amend=amend)
        if report.previous is not None:
            own_backups.note(settings.home, report.previous)
    finally:
        lock.release()
    say(f"Restored {sum(report.rows.values())} rows from {source}.")
    if report.previous is not None:
        say(f"The previous store is kept as {report.previous}.")
    _name_damaged_texts(report.damaged_texts, "Unreadable bytes are shown as U+FFFD.")
    return 0


def _amend_foreign(source: Path, mine: bool, tx: Tx) -> None:
    """Hold what a backup of another installation contains, unless a person says that it is theirs."""
    from holdfast.handoff.queries.foreign_backup import brought, hold_back

    contents = brought(tx)
    if contents and not mine:
        say(f"{source} was not made by this installation. It contains:")
        for line in contents:
            say(f"  {line}")
        mine = _is_theirs()
    if not mine:
        hold_back(tx)
        if contents:
            say("`holdfast release` shows what is held. If the backup is yours, restore it again with --mine.")


def _is_theirs() -> bool:
    """Ask a person at the terminal whether a backup is theirs; a managed agent is not asked."""
    if not sys.stdin.isatty() or "HOLDFAST_MANAGED" in os.environ:
        return False
    return input("If it is yours, and all of this should take effect here, type mine: ").strip().lower() == "mine"


def _name_damaged_texts(places: list[str], then: str) -> None:
    """Print which texts were already damaged."""
    for place in places[:MAX_NAMED_TEXTS]:
        say(f"Damaged text, not UTF-8: {place}. {then}")
    if len(places) > MAX_NAMED_TEXTS:
        say(f"And {len(places) - MAX_NAMED_TEXTS} more damaged texts.")


def run_verify(options: argparse.Namespace) -> int:
    """Check the store and every hash chain, and print what is lost."""
    report = _verified(settings_of(options))
    if options.json:
        say(json.dumps(report))
        return 0 if report["ok"] else 1
    known = 0
    for problem in report["problems"]:
        known += problem["known"]
        say(f"{'known' if problem['known'] else 'PROBLEM':8}{problem['subject']}: {problem['text']}")
    for line in report["losses"]:
        say(f"LOST    {line}")
    if not report["complete"]:
        say("There are more problems.")
    if report.get("salvage"):
        say("The next start of the daemon moves the damaged database aside and keeps whatever is still readable.")
    checked = ", ".join(report["checked"]) or "nothing: there is no store yet"
    if not report["ok"]:
        say(f"Something was lost or changed (checked: {checked}).")
        return 1
    summary = f"Nothing was lost or changed beyond the {known} known" if known else "Nothing was lost or changed"
    say(f"{summary} (checked: {checked}).")
    return 0


def _verified(settings: Settings) -> dict[str, Any]:
    """Have the daemon verify its store; without one, verify a copy of the embedded store here."""
    if settings.database_url is not None:
        return ask_or_do(settings, "verify", {}, show_progress)
    try:
        return ask_daemon(settings, "verify", {}, progress=show_progress, timeout=None)
    except NoDaemon:
        try:
            lock = HomeLock.take(settings.home, by_hand=True, purpose="verify") if _writable(settings.home) else None
        except DaemonRunning:
            return ask_daemon(settings, "verify", {}, progress=show_progress, timeout=None)
    import asyncio

    from holdfast.records.service import verify_unopened
    from holdfast.records.views import verification_view
    from holdfast.store.from_settings import clock_of

    try:
        return verification_view(asyncio.run(verify_unopened(settings.home, clock_of(settings), show_progress)))
    finally:
        if lock is not None:
            lock.release()


def _writable(home: Path) -> bool:
    """Return whether a daemon could start here meanwhile, which it cannot on a read-only disk."""
    return not home.exists() or os.access(home, os.W_OK)


def run_acknowledge(options: argparse.Namespace) -> int:
    """Show what was lost and dismiss its notices."""
    from holdfast.store.loss_notices import LossNotices
    from holdfast.store.sqlite import system_clock

    home = settings_of(options).home
    losses = LossNotices(home)
    waiting = losses.open()
    if not waiting:
        say("No loss is waiting to be acknowledged.")
        return 0
    for notice in waiting:
        for line in notice.lines():
            say(line)
    require_person(home, "acknowledge a loss")
    losses.acknowledge(waiting, system_clock())
    say("Acknowledged. `holdfast verify` still names what is missing, as known.")
    return 0


def run_forget(options: argparse.Namespace) -> int:
    """Remove a session or project permanently."""
    what, settings = options.what, settings_of(options)
    if "/" in what or Path(what).is_dir():
        what = what if "://" in what else str(Path(what).expanduser().resolve())
    if not options.yes:
        _show_what_would_go(ask_or_do(settings, "forget", {"what": what, "look": True}, show_progress))
        if options.json or not sys.stdin.isatty():
            raise HoldfastError("Nothing was removed.", recovery="Confirm with --yes that all of this should go.")
        if input("Remove all of this permanently? Type yes: ").strip().lower() != "yes":
            say("Nothing was removed.")
            return 1
    report = ask_or_do(settings, "forget", {"what": what}, show_progress)
    if options.json:
        say(json.dumps(report))
        return 0 if report["success"] else 1
    say(f"Forgotten: {_counted(report)}.")
    for file in report["files"]:
        say(f"Removed: {file}, a copy of the store.")
    for file in report["named_in"]:
        say(f"Still named in {file}, which only you should change.")
    for trouble in report["left"]:
        say(f"NOT ERASED YET: {trouble} The daemon retries every hour and when it starts; so does this command.")
    say("Backups that you made yourself still contain it.")
    return 0 if report["success"] else 1


def _show_what_would_go(scope: dict[str, Any]) -> None:
    places = [place for place in scope["roots"] if place != scope["what"]]
    also = f" (also {', '.join(places)})" if places else ""
    say(f"Of {scope['what']}{also}: {_counted(scope)}.", file=sys.stderr)
    for team in scope["teams"]:
        say(f"With all conversations and messages of the team {team}.", file=sys.stderr)
    for file in scope["files"]:
        say(f"With {file}, a copy of the whole store.", file=sys.stderr)


def _counted(report: dict[str, Any]) -> str:
    """Format the counts of what was found."""
    named = {
        "runs": "protocol runs",
        "messages": "messages",
        "asks": "asks",
        "agent_sessions": "agents' sessions",
        "history_files": "imported conversations",
    }
    counts = [f"{report.get('sessions', 0)} sessions", f"{report.get('thoughts', 0)} thoughts"]
    return ", ".join(counts + [f"{report[name]} {words}" for name, words in named.items() if report.get(name)])


def run_recording(options: argparse.Namespace) -> int:
    """Pause or resume recording."""
    project = options.project if "://" in options.project else str(Path(options.project).expanduser().resolve())
    report = ask_or_do(settings_of(options), options.command, {"project": project}, show_progress)
    say(f"Recording is {'paused' if report['paused'] else 'on'} for {report['project'].removeprefix('file://')}.")
    if report["paused"]:
        say("`holdfast resume-recording` records again.")
    return 0
