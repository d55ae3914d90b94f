"""`holdfast sessions`: agents' reasoning sessions, for people."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from holdfast.cli.common import add_home, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.cli.table import show_table
from holdfast.text.terminal import quoted_block, say
from holdfast.times import local

DESCRIPTION = """\
Shows what agents thought: the sessions of the tools thought, init and session. An ID may be shortened to its first
characters; the default is the project's most recent session. Keys, tokens and passwords are masked.

examples:
  holdfast sessions list                     this project's sessions, newest first
  holdfast sessions show                     the newest one as a tree of thoughts and branches
  holdfast sessions show 3f2a --text         one session with every thought in full
  holdfast sessions search "cache is stale"  where that was thought
  holdfast sessions export 3f2a -o notes.md  a whole session as a document

exit status: 0 something was found; 1 nothing was found
"""
SHORT_ID = 8
MAX_DEPTH = 100
"""How deep nested branches are drawn."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "sessions",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(metavar="<action>", title="actions", required=True)

    listed = verbs.add_parser("list", help="list sessions, most recently used first")
    listed.add_argument(
        "--status", choices=["active", "archived", "deleted", "all"], help="in this state (default: active)"
    )
    listed.add_argument("--limit", metavar="N", type=int, default=20, help="how many, 1 to 10000 (default: 20)")
    _add_common(listed, run_list)

    show = verbs.add_parser("show", help="show one session as a tree, or with every thought in full")
    _add_id(show)
    show.add_argument("--text", action="store_true", help="every thought in full")
    _add_common(show, run_show)

    search = verbs.add_parser("search", help="search thoughts, titles and tags for all words")
    search.add_argument("words", metavar="TEXT", nargs="+", help='words that must all occur; "in quotes": a phrase')
    search.add_argument("--limit", metavar="N", type=int, default=10, help="hits shown, 1 to 50 (default: 10)")
    _add_common(search, run_search)

    export = verbs.add_parser("export", help="export a session as markdown, JSON or a Mermaid graph")
    _add_id(export)
    forms = ["markdown", "json", "mermaid"]
    export.add_argument("--format", choices=forms, default="markdown", help="(default: markdown)")
    export.add_argument("-o", "--output", metavar="FILE", help="write it to this new file (default: print it)")
    _add_common(export, run_export, as_json=False)


def _add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help="the session (default: this project's most recent one)")


def _add_common(parser: argparse.ArgumentParser, run: Any, *, as_json: bool = True) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--project", metavar="DIR", default=".", help="of this project (default: here)")
    where.add_argument("--all", action="store_true", help="of every project")
    if as_json:
        parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_home(parser)
    parser.set_defaults(run=run)


def _ask(options: argparse.Namespace, name: str, **args: Any) -> dict[str, Any]:
    project = options.project if "://" in options.project else str(Path(options.project).expanduser().resolve())
    place = {"project": None if options.all else project}
    return ask_or_do(settings_of(options), name, {**place, **args}, show_progress)


def run_list(options: argparse.Namespace) -> int:
    page = _ask(options, "sessions-list", status=options.status, limit=options.limit)
    sessions = page["sessions"]
    if options.json:
        say(json.dumps(sessions))
        return 0 if sessions else 1
    if not sessions:
        say("No sessions." if options.all else "No sessions of this project; --all lists those of every project.")
        return 1
    rows = [("ID", "UPDATED", "THOUGHTS", "STATE", "PROJECT", "TITLE")]
    rows += [
        (
            session["id"][:SHORT_ID],
            local(session["updatedAt"]),
            str(session["thoughtCount"]),
            "pinned" if session["pinned"] else session["status"],
            _place(session),
            session["title"],
        )
        for session in sessions
    ]
    show_table([row if options.all else (*row[:4], row[5]) for row in rows], whole=("ID", "UPDATED"))
    if page["more"]:
        say(f"These are the first {len(sessions)}; --limit shows more.")
    return 0


def _place(session: dict[str, Any]) -> str:
    return str(session.get("mcpRootUri", "")).removeprefix("file://") or "-"


def run_show(options: argparse.Namespace) -> int:
    reply = _ask(options, "sessions-show", session=options.id, text=options.text)
    if options.json:
        say(json.dumps(reply))
        return 0
    session = reply["session"]
    state = "pinned" if session["pinned"] else session["status"]
    tags = f", tags: {', '.join(session['tags'])}" if session["tags"] else ""
    say(f"{session['id']}  {state}, {session['thoughtCount']} thoughts, updated {session['updatedAt']}{tags}")
    if "damage" in session:
        say(f"Damaged: {session['damage']}")
    for line in _whole(reply) if options.text else _tree(reply):
        say(line)
    return 0


def _tree(reply: dict[str, Any]) -> list[str]:
    from holdfast.demo.tree import drawn

    start: dict[str, int] = {}
    depth: dict[str | None, int] = {None: 0}
    line_of: dict[int, str | None] = {}
    for thought in reply["thoughts"]:
        branch = line_of[thought["thoughtNumber"]] = thought.get("branchId")
        if branch is not None and branch not in start:
            start[branch] = thought["branchFromThought"]
            depth[branch] = depth.get(line_of.get(start[branch]), 0) + 1
    branches = [{"branchId": one, "fromThought": number} for one, number in start.items() if depth[one] <= MAX_DEPTH]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    return drawn({**reply, "branches": branches}, width)


def _whole(reply: dict[str, Any]) -> list[str]:
    lines = [reply["session"]["title"]]
    for thought in reply["thoughts"]:
        branch = f", branch {thought['branchId']} from {thought['branchFromThought']}" if "branchId" in thought else ""
        revises = f", revises {thought['revisesThought']}" if "revisesThought" in thought else ""
        lines += ["", f"Thought {thought['thoughtNumber']}{branch}{revises}, {thought['createdAt']}"]
        lines += quoted_block(thought["thought"]).split("\n")
    return lines


def run_search(options: argparse.Namespace) -> int:
    query = " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in options.words)
    hits = _ask(options, "sessions-search", query=query, limit=options.limit)
    results = hits["results"]
    if options.json:
        say(json.dumps(results))
        return 0 if results else 1
    for hit in results:
        where = f"thought {hit['thoughtNumber']}: {hit['snippet']}" if "thoughtNumber" in hit else "title or tags"
        say(f"{hit['sessionId'][:SHORT_ID]}  {hit['title']}")
        say(f"  {where}")
    if not results:
        say(hits["message"].replace('scope "all"', "--all").replace('status "all"', "`sessions list --status all`"))
    elif "nextCursor" in hits:
        say("There are more; --limit shows up to 50.")
    return 0 if results else 1


def run_export(options: argparse.Namespace) -> int:
    """Print a session as a document, or write it to a file."""
    text = _ask(options, "sessions-export", session=options.id, format=options.format)["text"]
    if options.output is None:
        print(text, end="" if text.endswith("\n") else "\n")
        return 0
    with Path(options.output).expanduser().open("x", encoding="utf-8") as file:  # never overwrites
        file.write(text if text.endswith("\n") else text + "\n")
    say(f"Written to {options.output}.")
    return 0
