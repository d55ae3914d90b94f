"""Checks of hooks: each installed one is really run, with a harmless payload."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence

from holdfast.agents.claude.settings import TIMEOUT_S, command, hooks_in, portable_command, putting_in
from holdfast.doctor.findings import Finding, Fix, fault, note, ok
from holdfast.doctor.hook_entries import Entry, SettingsFile, entries_in, plugin_enabled, settings_files
from holdfast.doctor.surroundings import Surroundings
from holdfast.setup.json_file import SettingsUnusable, edited

HARMLESS_PAYLOAD = "[]"
"""Reaches the daemon, which does nothing with it."""
MAX_SHOWN = 300


def check_hooks(around: Surroundings) -> Iterator[Finding]:
    """Check all of Holdfast's hooks in the user's, the project's and the local settings."""
    installed = 0
    for file in settings_files(around):
        try:
            entries = entries_in(file)
        except SettingsUnusable as unusable:
            yield fault(
                f"{unusable.message} Claude Code ignores the whole file, hooks included.",
                f"Repair {file.path}; Holdfast does not rewrite what it cannot read.",
            )
            continue
        installed += len(entries)
        yield from _of_file(around, file, entries)
    plugin = plugin_enabled(around)
    if plugin and installed:
        yield fault(
            f"both the plugin {plugin} and {installed} hooks in settings are installed: each fires twice.",
            f"Keep one: `holdfast setup claude --remove`, or `claude plugin uninstall {plugin}`.",
        )
    elif not plugin and not installed:
        yield note("none are installed: agents get no automatic briefing", "Run `holdfast setup claude`.")


def _of_file(around: Surroundings, file: SettingsFile, entries: Sequence[Entry]) -> Iterator[Finding]:
    if not entries:
        return
    again = _rewritten(file, entries)
    sound: list[Entry] = []
    for entry in entries:
        parts = entry.parts
        if parts is not None and parts.gone:
            yield fault(
                f"{file.path}: the {entry.event} hook does nothing, because {parts.gone[0]} no longer exists.",
                "Run `holdfast setup claude` (or `protocol init`, `bridge init`) again.",
                again,
            )
        elif not entry.may_run(around.project, around.home):
            yield note(f"{file.path}: the {entry.event} hook is not from this Holdfast, and was not run.")
        else:
            sound.append(entry)
    outdated = [entry.event for entry in sound if not entry.is_current]
    if outdated:
        yield note(
            f"{file.path}: {', '.join(outdated)} belong to another or older Holdfast.",
            "Run `holdfast setup claude` (or `protocol init`, `bridge init`) again.",
            again,
        )
    if around.daemon is None:
        yield note(f"{file.path}: {len(sound)} hooks, not run because no daemon answers")
        return
    silent = [finding for entry in sound if (finding := _run(around, entry)) is not None]
    yield from silent
    answered = [entry.event for entry in sound]
    if answered and not silent:
        yield ok(f"{file.path}: {', '.join(answered)} answered")


def _run(around: Surroundings, entry: Entry) -> Finding | None:
    """Run a hook as Claude Code would; return what is wrong with it."""
    env = {**around.env, "CLAUDE_PROJECT_DIR": str(around.project)}
    limit = max(TIMEOUT_S, around.timeout)
    repair = "Run `holdfast setup claude` again; `holdfast status` shows whether the daemon works."
    try:
        done = subprocess.run(  # noqa: S603 - `may_run` said so
            ["/bin/sh", "-c", entry.command],
            input=HARMLESS_PAYLOAD,
            env=env,
            cwd=around.project,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return fault(f"{entry.file.path}: the {entry.event} hook did not finish within {limit:.0f} s.", repair)
    trouble = done.stderr.strip()[:MAX_SHOWN]
    if done.returncode == 0 and not trouble:
        return None
    said = trouble or f"exit status {done.returncode}"
    return fault(f"{entry.file.path}: the {entry.event} hook failed: {said}", repair)


def _rewritten(file: SettingsFile, entries: Sequence[Entry]) -> Fix:
    """Return a fix that rewrites the file's hooks, and adds none."""
    homes = [entry.parts.home for entry in entries if entry.parts is not None]

    def written(event: str) -> str:
        return portable_command(event) if file.is_shared else command(event, home=homes[0] if homes else None)

    def rewrite() -> str:
        change = edited(file.path, putting_in(hooks_in(file.path), written))
        change.write()
        return f"the hooks in {file.path} are {'rewritten' if change.needed else 'up to date'}"

    return rewrite
