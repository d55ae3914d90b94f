"""`holdfast protocol init`: writes a project's protocol.toml and installs the hooks that enforce it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from holdfast.agents.registry import AGENTS, DEFAULT, settings_of
from holdfast.cli import hook_settings
from holdfast.cli.common import add_home
from holdfast.errors import BadInput, Conflict, HoldfastError
from holdfast.files.inside import UnreadableInside, read_inside, real_path
from holdfast.git import gate
from holdfast.identity.worktree import worktree_of
from holdfast.protocol.project.settings import MAX_BYTES, NAMES, SETTINGS, Enforcement, read_project
from holdfast.setup.json_file import SettingsUnusable
from holdfast.text.terminal import one_line, say

TEMPLATE = """\
# How agents work in this project. `holdfast protocol show` prints the result.

# agents: the protocol of a project with .agents/; simple: context read, checks pass, committed;
# document: the project's own SESSION-PROTOCOL.md.
protocol = "{protocol}"
{document}
# off, warn (say what is missing) or enforce (git refuses a commit that is too early).
enforcement = "{enforcement}"

# Who starts a session: the agent, or the hook with the first prompt as its objective.
start = "agent"

# What verifies a gate. Commands run without a shell, and only after `holdfast trust`.
# [gates.QUALITY_CHECKS]
# command = ["make", "check"]
# timeout = 300
"""
DOCUMENT_LINE = '# document = ".agents/SESSION-PROTOCOL.md"\n'


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    init = verbs.add_parser("init", help="write .holdfast/protocol.toml and install this project's hooks")
    init.add_argument("directory", metavar="DIR", nargs="?", default=".", help="in the project (default: here)")
    init.add_argument("--protocol", choices=NAMES, help="default: agents if .agents/ exists, otherwise simple")
    init.add_argument("--enforcement", choices=[one.value for one in Enforcement], help="default: warn")
    init.add_argument("--no-hooks", action="store_true", help="do not change the agent's settings")
    init.add_argument("--remove", action="store_true", help="remove the hooks; protocol.toml stays")
    init.add_argument("--dry-run", action="store_true", help="show what would be written, and write nothing")
    add_home(init)
    init.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Set up a project, or remove its hooks."""
    worktree = worktree_of(Path(options.directory).expanduser())
    if worktree is None:
        raise BadInput("DIR", f"{options.directory} is not a directory")
    if options.remove:
        return _remove(worktree.path, options)
    if not worktree.is_git:
        raise Conflict(
            f"{worktree.path} is not a git repository, and a session's gates ask git.",
            recovery="Run `git init` there first.",
        )
    written = _write_settings(worktree.path, options)
    if not options.no_hooks:
        hook_settings.install(worktree.path, "protocol", options)
    if missing := _missing_setup(worktree.path, hooks_too=options.no_hooks):
        say(missing)
    project = read_project(worktree.path)
    if project.enforcement is Enforcement.ENFORCE or options.enforcement == Enforcement.ENFORCE:
        say(gate_line(worktree.path))
    if written and not options.dry_run:
        say("`holdfast protocol show` prints the gates; after adding a command, `holdfast trust` lets it run.")
    faults = () if options.dry_run else project.faults
    for fault in faults:
        say(str(fault))
    return 1 if faults else 0


def _missing_setup(worktree: Path, *, hooks_too: bool) -> str | None:
    """Return what the agent lacks to follow a protocol here, and how to set it up; None if nothing."""
    agent, settings = AGENTS[DEFAULT], settings_of()
    set_up = f"`holdfast setup {agent.name}` adds it."
    try:
        if settings.plugin(os.environ, worktree):
            return None
        if not settings.servers(os.environ, worktree):
            return f"{agent.title} does not have Holdfast's tools yet: {set_up}"
        files = settings.hook_files(os.environ, worktree) if hooks_too else []
        if hooks_too and not any(settings.hook_commands(file.path) for file in files):
            return f"{agent.title} has none of Holdfast's hooks, so sessions get no evidence from it: {set_up}"
    except SettingsUnusable as unusable:
        return f"{unusable.message} `holdfast doctor` says more."
    return None


def _write_settings(worktree: Path, options: argparse.Namespace) -> bool:
    """Write protocol.toml if there is none; return whether it was written."""
    try:
        there = read_inside(worktree, SETTINGS, MAX_BYTES) is not None
        path = real_path(worktree, SETTINGS)
    except UnreadableInside as refused:
        raise Conflict(str(refused), recovery="Move it away and run the command again.") from refused
    if there:
        if options.protocol or options.enforcement:
            raise Conflict(
                f"{SETTINGS} already exists and was not changed.",
                recovery="Edit it, or leave out --protocol and --enforcement.",
            )
        say(f"{SETTINGS} already exists.")
        return False
    protocol = options.protocol or read_project(worktree).protocol.name
    text = TEMPLATE.format(
        protocol=protocol,
        document=DOCUMENT_LINE if protocol == "document" else "",
        enforcement=options.enforcement or Enforcement.WARN.value,
    )
    print(f"{'Would write' if options.dry_run else 'Writing'} {one_line(str(path))}:\n")
    print("\n".join(f"    {line}".rstrip() for line in text.splitlines()) + "\n")
    if not options.dry_run:
        _create(path, text)
    return True


def _create(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
        # Exclusively: a file created meanwhile is not overwritten, and a link is not followed.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "w") as file:
            file.write(text)
    except OSError as failure:
        raise HoldfastError(f"{path} cannot be written: {failure.strerror}.") from failure


def gate_line(worktree: Path) -> str:
    """Return whether git refuses commits that are too early; if not, why and what to do."""
    off = gate.why_off(worktree)
    return f"The gate is off: {off}" if off else "While a session is not ready for commits, git itself refuses them."


def _remove(worktree: Path, options: argparse.Namespace) -> int:
    hook_settings.remove(worktree, "protocol", options)
    if not options.dry_run and gate.open_again(worktree):
        say("The git hook is removed.")
    return 0
