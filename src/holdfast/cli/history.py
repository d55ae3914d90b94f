"""`holdfast import`, `find`, `saved` and `statusline`: earlier conversations, and what Holdfast recovered."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from holdfast.cli.common import add_home, described_parser, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.cli.handoff import config_directory
from holdfast.cli.table import show_table
from holdfast.text.terminal import say
from holdfast.times import local

IMPORT = """\
Indexes the transcripts that Claude Code keeps on this machine, so that `holdfast find` can search them. Local,
redacted, and only when you run it. Run again, it reads only what is new, and continues if it was interrupted.

examples:
  holdfast import claude            this project's conversations
  holdfast import claude --all      those of every project
  holdfast import claude --remove   drop what was imported of this project
"""
FIND = """\
Finds what was said in earlier conversations with Claude Code: all words must be in one message, command or tool result.
Prints the project, the date, the line, and the command that resumes the conversation.

examples:
  holdfast find "ECONNREFUSED 127.0.0.1:5432"
  holdfast find --project ~/work/shop drawer
  holdfast find --scan drawer       without an import: reads the transcripts themselves, newest first

exit status: 0 something was found; 1 nothing was found, or nothing is imported yet
"""
STATUSLINE = """\
Prints one short line about the session whose JSON is on standard input: phase, waiting messages, thoughts. For
Claude Code's settings.json:
  "statusLine": {"type": "command", "command": "holdfast statusline"}

example:
  echo '{"session_id":"…","cwd":"/home/me/shop"}' | holdfast statusline
"""
AFTER = {
    "startup": "a start",
    "crash": "a crash",
    "resume": "a resume",
    "compact": "a compaction",
    "clear": "/clear",
    "asked": "asking",
}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    imports = commands.add_parser("import")
    agents = imports.add_subparsers(metavar="<agent>", title="agents", required=True)
    claude = described_parser(agents, "claude", IMPORT, "the transcripts of Claude Code")
    which = claude.add_mutually_exclusive_group()
    which.add_argument("--project", metavar="DIR", default=".", help="of this project (default: here)")
    which.add_argument("--all", action="store_true", help="of every project")
    claude.add_argument("--remove", action="store_true", help="drop what was imported instead")
    claude.set_defaults(run=run_import)

    find = described_parser(commands, "find", FIND)
    find.add_argument("text", metavar="TEXT", nargs="+", help="words that must all occur")
    find.add_argument("--project", metavar="DIR", help="in this project's conversations (default: in all)")
    find.add_argument("--limit", metavar="N", type=int, default=10, help="conversations shown, 1 to 100 (default: 10)")
    find.add_argument("--scan", action="store_true", help="read the transcripts themselves; stores nothing")
    find.add_argument("--json", action="store_true", help="print the hits as JSON")
    find.set_defaults(run=run_find)

    saved = commands.add_parser("saved", description="Show what agents recovered from Holdfast, by project.")
    span = saved.add_mutually_exclusive_group()
    span.add_argument("--all", action="store_true", help="ever")
    span.add_argument("--week", action="store_false", dest="all", help="in the last seven days (the default)")
    saved.add_argument("--json", action="store_true", help="print it as JSON")
    add_home(saved)
    saved.set_defaults(run=run_saved)

    described_parser(commands, "statusline", STATUSLINE).set_defaults(run=run_statusline)


def run_import(options: argparse.Namespace) -> int:
    """Index transcripts, or drop what was indexed."""
    project = None if options.all else str(_directory(options.project))
    args = {"project": project, "config": config_directory()}
    if options.remove:
        removed = ask_or_do(settings_of(options), "history-remove", args, show_progress)
        say(f"Dropped what was imported of {removed['files']} transcripts. The transcripts themselves are untouched.")
        return 0
    report = ask_or_do(settings_of(options), "history-import", args, show_progress)
    if not report["found"]:
        where = f"of {project} " if project else ""
        say(f"There are no transcripts {where}under {args['config']}. `--all` searches every project.")
        return 0
    say(
        f"{report['found']} transcripts ({report['bytes'] / 1e6:.1f} MB): {report['files']} had something new,"
        f" {report['passages']} passages indexed. `holdfast find TEXT` finds them."
    )
    if report["unreadable"]:
        say(f"{report['unreadable']} could not be read and were skipped.", file=sys.stderr)
    return 0


def run_find(options: argparse.Namespace) -> int:
    """Find earlier conversations."""
    query = " ".join(options.text)
    project = None if options.project is None else _directory(options.project)
    if options.scan:
        return _shown(_scan(query, project, options.limit), query, as_json=options.json)
    args = {
        "query": query,
        "project": None if project is None else str(project),
        "limit": options.limit,
        "config": config_directory(),
    }
    answer = ask_or_do(settings_of(options), "history-find", args, show_progress)
    if answer["files"] or options.json:
        return _shown(answer, query, as_json=options.json)
    say("Nothing is imported yet: `holdfast import claude --all` indexes the transcripts on this machine.")
    if sys.stdin.isatty() and input("Search them directly this time? [y/N] ").strip().lower() == "y":
        return _shown(_scan(query, project, options.limit), query, as_json=False)
    say("`holdfast find --scan TEXT` searches them directly.")
    return 1


def _scan(query: str, project: Path | None, limit: int) -> dict[str, Any]:
    from holdfast.history.search import scan
    from holdfast.history.views import scanned_view

    config = Path(config_directory())
    return scanned_view(scan(query, config, project, limit, show_progress), config)


def _shown(answer: dict[str, Any], query: str, *, as_json: bool) -> int:
    results = answer["results"]
    if as_json:
        say(json.dumps(results))
        return 0 if results else 1
    for hit in results:
        more = f"  (+{hit['more']} more)" if hit["more"] else ""
        where = "  [another machine]" if hit["elsewhere"] else ""
        say(f"{hit['project'] or '(unknown project)'}  {hit['date']}{where}{more}")
        say(f"  {hit['role']}: {hit['line']}")
        say(f"  {hit['resume']}")
    if not results:
        say(f"Nothing found that contains all of: {query}")
    if answer.get("left_out"):
        say(f"{answer['left_out']} older transcripts were not searched; `holdfast import claude --all` indexes all.")
    return 0 if results else 1


def run_saved(options: argparse.Namespace) -> int:
    """Show what was recovered."""
    projects = ask_or_do(settings_of(options), "saved", {"all": options.all}, show_progress)["projects"]
    if options.json:
        say(json.dumps({"projects": projects}))
        return 0
    span = "ever" if options.all else "in the last seven days"
    if not projects:
        say(f"Nothing had to be recovered {span}.")
        return 0
    rows = [("LAST", "TIMES", "PROJECT", "AFTER", "WHAT")]
    for project in projects:
        after = ", ".join(f"{AFTER.get(name, name)} {times}x" for name, times in project["after"].items())
        what = ", ".join(project["what"])
        rows.append((local(project["last"]), str(project["times"]), project["project"], after, what))
    show_table(rows)
    say(f"{sum(project['times'] for project in projects)} times {span}.")
    return 0


def run_statusline(options: argparse.Namespace) -> int:
    """Print the status line."""
    from holdfast.relay.statusline import main

    return main(options.home)


def _directory(text: str) -> Path:
    return Path(text).expanduser().resolve()
