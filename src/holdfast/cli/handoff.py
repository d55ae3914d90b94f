"""`holdfast handoff` and `holdfast adopt`: a project's sessions, from one machine to another."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from holdfast.cli.common import add_home, agreed, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.errors import HoldfastError, NotFound
from holdfast.teams.fields import shown
from holdfast.terminal import quoted_block, say

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

The archive is signed. A signer that this machine does not know is shown, and remembered once you say yes: compare the
fingerprint with the one that `holdfast handoff` printed. Messages and tasks that it brings reach no agent before
`holdfast release`.

example:
  cd ~/src/shop && holdfast adopt ~/shop.handoff

exit status: 0 all of it was taken over or was here; 1 something was refused, and said
"""

RELEASE = """\
Messages, notices and tasks that came with an archive wait here for your word. Without a TARGET they are listed; with
one, they are shown whole, and once you say yes they wait for its agent like any other message.

example:
  holdfast release shop
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
    adopt.add_argument("--trust-signer", metavar="FINGERPRINT", help="as `holdfast handoff` printed it; do not ask")
    adopt.add_argument(
        "--unsigned", action="store_true", help="take one that nobody signed: anybody may have changed it"
    )
    add_home(adopt)
    adopt.set_defaults(run=run_adopt)

    release = commands.add_parser(
        "release",
        help="let messages that came with an archive go to their agent",
        description=RELEASE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    release.add_argument("target", metavar="TARGET", nargs="?", help="whose messages (default: list those of all)")
    release.add_argument("ids", metavar="ID", nargs="*", help="these alone")
    release.add_argument("--drop", action="store_true", help="remove them instead")
    release.add_argument("--yes", action="store_true", help="with --drop: do not ask")
    add_home(release)
    release.set_defaults(run=run_release)


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
    say(f"Signed by this machine: {report['signer']}")
    say(f"There: `holdfast adopt {shlex.quote(target.name)} --project DIR`")
    return 0


def run_adopt(options: argparse.Namespace) -> int:
    """Take over an archive."""
    project = _absolute(options.project)
    file, settings = _absolute(options.file), settings_of(options)
    signer = options.trust_signer or _confirmed_signer(file, settings.home)
    args = {"file": str(file), "project": str(project), "config": config_directory()}
    report = ask_or_do(settings, "adopt", {**args, "signer": signer, "unsigned": options.unsigned}, show_progress)
    say(_summary(report))
    for target, number in report["held"].items():
        say(f"{number} messages for {target} wait for your word: `holdfast release {target}` shows them.")
    for note in report["notes"]:
        say(f"note: {note}")
    for refusal in report["refused"]:
        say(f"refused: {refusal}", file=sys.stderr)
    if report["resume"]:
        say(f"Go on: cd {shlex.quote(report['project'])} && claude --resume {report['resume']}")
    return 1 if report["refused"] else 0


def _confirmed_signer(file: Path, home: Path) -> str | None:
    """The fingerprint of a signer that this machine does not know, once its owner said yes; nobody else is asked."""
    if not sys.stdin.isatty():
        return None
    from holdfast.archive import signing
    from holdfast.archive.container import opened

    with opened(file) as archive:
        signer, machine = archive.signer, archive.machine
    if signer is None or signing.is_known(home, signer):
        return None
    print(f"{file} says it is from {machine}, and is signed by a key that this machine does not know:")
    print(f"\n  {signer.fingerprint}\n\n`holdfast handoff` printed the same there, if it is from you.")
    if input("Take it over, and know this signer from now on? Type yes: ").strip().lower() != "yes":
        raise HoldfastError(f"{file} was not adopted. Nothing was written.")
    return signer.fingerprint


def run_release(options: argparse.Namespace) -> int:
    """Let what came with archives go to its agents, or remove it."""
    settings = settings_of(options)
    found = ask_or_do(settings, "held", {"target": options.target}, show_progress)
    messages = [one for one in found["messages"] if not options.ids or one["id"] in options.ids]
    if missing := set(options.ids) - {one["id"] for one in messages}:
        raise NotFound(f"Not held for {shown(options.target)}: {', '.join(map(shown, sorted(missing)))}.")
    if not messages:
        print("Nothing waits for your word.")
        return 0
    for one in messages:
        print(f"{shown(one['id'])} for {shown(one['target'])}, {one['priority']}, from {shown(one['sender'], 400)}")
        print(quoted_block(one["text"]))
    if found["more"]:
        print(f"The first {len(found['messages'])} of them; the rest come next time.")
    if options.target is None:
        print("`holdfast release TARGET [ID…]` lets them go, `--drop` removes them.")
        return 0
    question = "Remove them?" if options.drop else f"Let the agent of {options.target} have them?"
    if not (options.drop and options.yes) and not agreed(settings.home, "release messages", question):
        print("They wait on.")
        return 1
    # What was shown is what is released: the ids of these, and of no other.
    args = {"target": options.target, "ids": [one["id"] for one in messages], "drop": options.drop}
    ask_or_do(settings, "release", args, show_progress)
    print(f"{len(messages)} messages {'were removed' if options.drop else f'wait for {options.target} now'}.")
    return 0


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
