"""`holdfast handoff` and `holdfast adopt`: a project's sessions, from one machine to another."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from holdfast.cli.common import add_home, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.terminal import say

HANDOFF = """\
Writes the reasoning sessions, protocol runs, queue, tasks, team conversations and ledgers of a project, and the
transcripts of its agent's conversations, into one file. It holds everything that was said, and no keys: keep it as you
keep the project itself. `holdfast adopt` takes it over on another machine.

example:
  holdfast handoff ~/work/shop -o shop.handoff
"""
ADOPT = """\
Takes over what `holdfast handoff` wrote, for the project directory as it lies here. What is here already stays;
adopting twice changes nothing. Afterwards `claude --resume` goes on here where it was left there.

example:
  cd ~/src/shop && holdfast adopt ~/shop.handoff

exit status: 0 all of it was taken over or was here; 1 something was refused, and said
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    handoff = commands.add_parser(
        "handoff",
        help="write a project's sessions and transcripts into one file, for another machine",
        description=HANDOFF,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    handoff.add_argument("project", metavar="PROJECT", nargs="?", default=".", help="its directory (default: here)")
    handoff.add_argument("-o", "--output", metavar="FILE", help="where to (default: ./<project>.handoff)")
    handoff.add_argument("--replace", action="store_true", help="overwrite FILE if it exists")
    add_home(handoff)
    handoff.set_defaults(run=run_handoff)

    adopt = commands.add_parser(
        "adopt",
        help="take over what `holdfast handoff` wrote on another machine",
        description=ADOPT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    adopt.add_argument("file", metavar="FILE", help="what `holdfast handoff` wrote")
    adopt.add_argument("--project", metavar="DIR", default=".", help="the project's directory here (default: here)")
    add_home(adopt)
    adopt.set_defaults(run=run_adopt)


def run_handoff(options: argparse.Namespace) -> int:
    """Write an archive."""
    project = _absolute(options.project)
    target = _absolute(options.output or f"{project.name or 'project'}.handoff")
    args = {"project": str(project), "file": str(target), "config": config_directory(), "replace": options.replace}
    report = ask_or_do(settings_of(options), "handoff", args, show_progress)
    counts = report["counts"]
    say(
        f"{report['file']}: {counts['sessions']} reasoning sessions with {counts['thoughts']} thoughts,"
        f" {counts['protocol_runs']} runs, {counts['bridge_messages']} messages, {counts['transcripts']} transcripts,"
        f" {report['bytes'] / 1e6:.1f} MB. Only you can read it."
    )
    for warning in report["warnings"]:
        say(f"warning: {warning}", file=sys.stderr)
    say(f"There: `holdfast adopt {shlex.quote(target.name)} --project DIR`")
    return 0


def run_adopt(options: argparse.Namespace) -> int:
    """Take over an archive."""
    project = _absolute(options.project)
    args = {"file": str(_absolute(options.file)), "project": str(project), "config": config_directory()}
    report = ask_or_do(settings_of(options), "adopt", args, show_progress)
    say(_summary(report))
    for note in report["notes"]:
        say(f"note: {note}")
    for refusal in report["refused"]:
        say(f"refused: {refusal}", file=sys.stderr)
    if report["resume"]:
        say(f"Go on: cd {shlex.quote(report['project'])} && claude --resume {report['resume']}")
    return 1 if report["refused"] else 0


def _summary(report: dict[str, Any]) -> str:
    added, changed, transcripts = report["added"], report["changed"], report["transcripts"]
    written = transcripts.get("new", 0) + transcripts.get("ahead", 0)
    if not added and not changed and not written:
        return f"Everything of it was in {report['project']} already; nothing was changed."
    parts = [
        f"{added.get(name, 0) + changed.get(name, 0)} {label}"
        for name, label in (
            ("sessions", "reasoning sessions"),
            ("thoughts", "thoughts"),
            ("protocol_runs", "runs"),
            ("bridge_messages", "messages"),
            ("conversations", "conversations"),
        )
    ]
    return f"Adopted into {report['project']}: {', '.join(parts)}, {written} transcripts."


def config_directory() -> str:
    """Where Claude Code keeps its transcripts, for whoever calls; the daemon's own environment may differ."""
    chosen = os.environ.get("CLAUDE_CONFIG_DIR")
    return str(_absolute(chosen) if chosen else Path.home() / ".claude")


def _absolute(text: str) -> Path:
    return Path(text).expanduser().resolve()
