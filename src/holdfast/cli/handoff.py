"""`holdfast handoff`, `adopt` and `release`: take a project's sessions from one machine to another."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from holdfast.agents import registry
from holdfast.cli.common import agreed, described_parser, settings_of, show_progress
from holdfast.cli.control import ask_or_do
from holdfast.errors import HoldfastError, NotFound
from holdfast.teams.config_fields import shown
from holdfast.text.terminal import quoted_block, say

HANDOFF = """\
Writes the reasoning sessions, protocol runs, queue, tasks, team conversations and ledgers of a project, and the
transcripts of its agent sessions, into one file. It contains everything that was said, but no keys: protect it as you
protect the project itself. `holdfast adopt` imports it on another machine.

example:
  holdfast handoff ~/work/shop -o shop.handoff
"""
ADOPT = """\
Imports what `holdfast handoff` wrote into the project directory here. What is already here stays; adopting twice
changes nothing. The command that continues the last conversation here is printed.

The archive is signed. A signer that this machine does not know is shown, and remembered once you say yes: compare the
fingerprint with the one that `holdfast handoff` printed. Messages and tasks in the archive are held until
`holdfast release`.

example:
  cd ~/src/shop && holdfast adopt ~/shop.handoff

exit status: 0 everything was imported or already here; 1 something was refused, as printed
"""

RELEASE = """\
Messages, notices and tasks that came with an archive are held until you release them. Without a TARGET they are listed;
with one, they are shown in full, and once you say yes they are queued for its agent like any other message.

example:
  holdfast release shop
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    handoff = described_parser(commands, "handoff", HANDOFF)
    handoff.add_argument("project", metavar="PROJECT", nargs="?", default=".", help="its directory (default: here)")
    handoff.add_argument("-o", "--output", metavar="FILE", help="the file to write (default: ./<project>.handoff)")
    handoff.add_argument("--replace", action="store_true", help="overwrite FILE if it exists")
    handoff.set_defaults(run=run_handoff)

    adopt = described_parser(commands, "adopt", ADOPT)
    adopt.add_argument("file", metavar="FILE", help="what `holdfast handoff` wrote")
    adopt.add_argument("--project", metavar="DIR", default=".", help="the project's directory here (default: here)")
    adopt.add_argument("--trust-signer", metavar="FINGERPRINT", help="as `holdfast handoff` printed it; do not ask")
    adopt.add_argument(
        "--unsigned", action="store_true", help="accept an unsigned archive, which anybody may have changed"
    )
    adopt.set_defaults(run=run_adopt)

    release = described_parser(commands, "release", RELEASE)
    release.add_argument("target", metavar="TARGET", nargs="?", help="whose messages (default: list those of all)")
    release.add_argument("ids", metavar="ID", nargs="*", help="only these")
    release.add_argument("--drop", action="store_true", help="remove them instead")
    release.add_argument("--yes", action="store_true", help="with --drop: do not ask")
    release.add_argument("--json", action="store_true", help="list them as JSON, and release nothing")
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
    say(f"On the other machine: `holdfast adopt {shlex.quote(target.name)} --project DIR`")
    return 0


def run_adopt(options: argparse.Namespace) -> int:
    """Import an archive."""
    project = _absolute(options.project)
    file, settings = _absolute(options.file), settings_of(options)
    signer = options.trust_signer or _confirmed_signer(file, settings.home)
    args = {"file": str(file), "project": str(project), "config": config_directory()}
    report = ask_or_do(settings, "adopt", {**args, "signer": signer, "unsigned": options.unsigned}, show_progress)
    say(_summary(report))
    for target, number in report["held"].items():
        say(f"{number} messages for {target} are held: `holdfast release {target}` shows them.")
    for note in report["notes"]:
        say(f"note: {note}")
    for refusal in report["refused"]:
        say(f"refused: {refusal}", file=sys.stderr)
    if report["resume"]:
        say(f"To continue: cd {shlex.quote(report['project'])} && {registry.resume_command_of()(report['resume'])}")
    return 1 if report["refused"] else 0


def _confirmed_signer(file: Path, home: Path) -> str | None:
    """Ask the owner to accept an unknown signer; return its fingerprint. Only a person at a terminal is asked."""
    if not sys.stdin.isatty():
        return None
    from holdfast.handoff import signing
    from holdfast.handoff.container import open_archive

    with open_archive(file) as archive:
        signer, machine = archive.signer, archive.machine
    if signer is None or signing.is_known(home, signer):
        return None
    print(f"{file} says it is from {machine}, and is signed by a key that this machine does not know:")
    print(f"\n  {signer.fingerprint}\n\nIf the archive is yours, `holdfast handoff` printed the same there.")
    if input("Import it, and remember this signer? Type yes: ").strip().lower() != "yes":
        raise HoldfastError(f"{file} was not adopted. Nothing was written.")
    return signer.fingerprint


def run_release(options: argparse.Namespace) -> int:
    """Release held messages to their agents, or remove them."""
    settings = settings_of(options)
    held = ask_or_do(settings, "held", {"target": options.target}, show_progress)
    messages = [one for one in held["messages"] if not options.ids or one["id"] in options.ids]
    if missing := set(options.ids) - {one["id"] for one in messages}:
        raise NotFound(f"Not held for {shown(options.target)}: {', '.join(map(shown, sorted(missing)))}.")
    if options.json:
        say(json.dumps({"messages": messages, "more": held["more"]}))
        return 0
    if not messages:
        print("No messages are held.")
        return 0
    for one in messages:
        print(f"{shown(one['id'])} for {shown(one['target'])}, {one['priority']}, from {shown(one['sender'], 400)}")
        print(quoted_block(one["text"]))
    if held["more"]:
        print(f"These are the first {len(held['messages'])}; run the command again for the rest.")
    if options.target is None:
        print("`holdfast release TARGET [ID…]` releases them, `--drop` removes them.")
        return 0
    question = "Remove them?" if options.drop else f"Release them to the agent of {options.target}?"
    if not (options.drop and options.yes) and not agreed(settings.home, "release messages", question):
        print("They are still held.")
        return 1
    # Release exactly what was shown: these ids and no others.
    args = {"target": options.target, "ids": [one["id"] for one in messages], "drop": options.drop}
    ask_or_do(settings, "release", args, show_progress)
    print(f"{len(messages)} messages {'were removed' if options.drop else f'were released to {options.target}'}.")
    return 0


def _summary(report: dict[str, Any]) -> str:
    added, changed, transcripts = report["added"], report["changed"], report["transcripts"]
    written = transcripts.get("new", 0) + transcripts.get("ahead", 0)
    if not added and not changed and not written:
        return f"{report['project']} already has everything in the archive; nothing was changed."
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
    """Return the caller's agent configuration directory; the daemon's environment may name another."""
    directory = registry.settings_of().config_directory(os.environ)
    # The usual one stays as it is spelled: imported transcripts are known by their paths.
    return str(directory if directory.parent == Path.home() else directory.resolve())


def _absolute(text: str) -> Path:
    return Path(text).expanduser().resolve()
