"""Checks of hooks: each installed one is really run, with a harmless payload.

A project's files are not trusted: of the commands there only one that Holdfast itself would write is run, and only
with programs from outside the project.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.agents import Agent
from holdfast.agents.registry import AGENTS, DEFAULT
from holdfast.agents.settings import HookFile, Scope, SettingsPart
from holdfast.doctor.findings import Finding, Fix, fault, note, ok
from holdfast.doctor.surroundings import Surroundings
from holdfast.errors import HoldfastError
from holdfast.setup.hook_command import HookCommand, command, portable_command
from holdfast.setup.json_file import SettingsUnusable
from holdfast.setup.launcher import is_private, launcher_path, refresh

HARMLESS_PAYLOAD = "[]"
"""Reaches the daemon, which does nothing with it."""
MAX_SHOWN = 300


def check_hooks(around: Surroundings) -> Iterator[Finding]:
    """Check all of Holdfast's hooks in the user's, the project's and the local settings of every agent that has any."""
    for agent in AGENTS.values():
        if agent.hooks is not None and agent.settings is not None:
            yield from _of_agent(around, agent, agent.settings())


def _of_agent(around: Surroundings, agent: Agent, settings: SettingsPart) -> Iterator[Finding]:
    installed = 0
    for file in settings.hook_files(around.env, around.project):
        try:
            entries = [HookCommand(event, text) for event, text in settings.hook_commands(file.path)]
        except SettingsUnusable as unusable:
            yield fault(
                f"{unusable.message} {agent.title} ignores the whole file, hooks included.",
                f"Repair {file.path}; Holdfast does not rewrite what it cannot read.",
            )
            continue
        installed += len(entries)
        if entries:
            yield from _of_file(around, agent.name, settings, file, entries)
    plugin = settings.plugin(around.env, around.project)
    if plugin and installed:
        yield fault(
            f"both the plugin {plugin} and {installed} hooks in settings are installed: each fires twice.",
            f"Keep one: `holdfast setup {agent.name} --remove`, or `{settings.plugin_uninstall} {plugin}`.",
        )
    elif not plugin and not installed and agent.name == DEFAULT:
        yield note("none are installed: agents get no automatic briefing", f"Run `holdfast setup {agent.name}`.")


def check_unhooked(around: Surroundings) -> Iterator[Finding]:
    """Check for agents that were at work without their hooks."""
    for line in unhooked_lines(around):
        yield note(line, "Look at the hooks above; start the agent again to see whether it is briefed.")


def unhooked_lines(around: Surroundings) -> list[str]:
    """Return what the daemon knows of agents that were at work without their hooks."""
    if around.daemon is None:
        return []
    try:
        return [str(line) for line in around.ask("unhooked", {}).get("lines", ())]
    except HoldfastError:  # an older daemon does not know of it
        return []


def may_run(scope: Scope, entry: HookCommand, project: Path, home: Path) -> bool:
    """Return whether a hook may be run: it is the user's own, or runs nothing that a project brings."""
    return scope is Scope.USER or entry.is_safe(project, home)


def _of_file(
    around: Surroundings, agent: str, settings: SettingsPart, file: HookFile, entries: Sequence[HookCommand]
) -> Iterator[Finding]:
    setup_again = f"Run `holdfast setup {agent}` (or `protocol init`, `bridge init`) again."
    rewrite = _rewritten(settings, file, entries)
    sound: list[HookCommand] = []
    for entry in entries:
        parts = entry.parts
        if parts is not None and parts.gone:
            yield fault(
                f"{file.path}: the {entry.event} hook does nothing, because {parts.gone[0]} no longer exists.",
                setup_again,
                rewrite,
            )
        elif parts is not None and not is_private(parts.launcher):
            yield fault(
                f"{file.path}: the {entry.event} hook was not run, because others can write {parts.launcher}.",
                f"chmod 600 {parts.launcher}, after a look at what is in it.",
                rewrite,
            )
        elif not may_run(file.scope, entry, around.project, around.home):
            yield note(f"{file.path}: the {entry.event} hook is not from this Holdfast, and was not run.")
        else:
            sound.append(entry)
    outdated = [entry.event for entry in sound if not entry.is_current]
    if outdated:
        yield note(f"{file.path}: {', '.join(outdated)} belong to another or older Holdfast.", setup_again, rewrite)
    if around.daemon is None:
        yield note(f"{file.path}: {len(sound)} hooks, not run because no daemon answers")
        return
    failed = [f"the {entry.event} hook {why}" for entry in sound if (why := _run(around, settings, entry)) is not None]
    for failure in failed:
        yield fault(
            f"{file.path}: {failure}",
            f"Run `holdfast setup {agent}` again; `holdfast status` shows whether the daemon works.",
        )
    if sound and not failed:
        yield ok(f"{file.path}: {', '.join(entry.event for entry in sound)} answered")


def _run(around: Surroundings, settings: SettingsPart, entry: HookCommand) -> str | None:
    """Run a hook as the agent would; return what is wrong with it."""
    limit = max(settings.hook_timeout_s, around.timeout)
    try:
        done = subprocess.run(  # noqa: S603 - the user's own, or one that Holdfast writes
            ["/bin/sh", "-c", entry.text],
            input=HARMLESS_PAYLOAD,
            env={**around.env, **settings.hook_environment(around.project)},
            cwd=around.project,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return f"did not finish within {limit:.0f} s."
    trouble = done.stderr.strip()[:MAX_SHOWN]
    if done.returncode == 0 and not trouble:
        return None
    return f"failed: {trouble or f'exit status {done.returncode}'}"


def _rewritten(settings: SettingsPart, file: HookFile, entries: Sequence[HookCommand]) -> Fix:
    """Return a fix that rewrites the file's hooks, and adds none."""
    home = next((entry.parts.home for entry in entries if entry.parts is not None), None)
    shared = file.scope is Scope.PROJECT

    def written(event: str) -> str:
        return portable_command(event) if shared else command(event, home=home)

    def rewrite() -> str:
        if not shared:
            refresh(launcher_path(None if home is None else Path(home)).parent, takes_over=True)
        change = settings.rewrite_hooks(file.path, written)
        change.write()
        return f"the hooks in {file.path} are {'rewritten' if change.needed else 'up to date'}"

    return rewrite
