"""Checks of the agent: Claude Code, its transcripts, and Serena."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.doctor.findings import Finding, fault, note, ok
from holdfast.doctor.installation import allowed
from holdfast.doctor.surroundings import Surroundings
from holdfast.errors import HoldfastError
from holdfast.protocol.project.settings import read_project
from holdfast.protocol.serena.discovery import find_serena
from holdfast.protocol.worktree import worktree_of

VERSION_SECONDS = 6.0
INSTALLER_PATHS = (".local/bin/claude", ".claude/local/claude")
"""Where Claude Code's own installers put it, relative to the user's home directory."""


def check_agent(around: Surroundings) -> Iterator[Finding]:
    """Check Claude Code itself."""
    program = _claude(around)
    if program is None:
        yield note("no `claude` found", "Install Claude Code, or connect another agent: `holdfast setup --help`.")
        return
    env = {**around.env, "DISABLE_AUTOUPDATER": "1"}
    try:
        version = subprocess.run(  # noqa: S603 - the program that the user installed
            [program, "--version"],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_SECONDS,
        )
    except subprocess.TimeoutExpired:
        yield note(f"{program} did not print its version within {VERSION_SECONDS:.0f} s")
        return
    if version.returncode != 0:
        yield fault(f"{program} --version failed with status {version.returncode}.", "Reinstall Claude Code.")
    else:
        yield ok(f"{program}, {version.stdout.strip()}")


def check_transcripts(around: Surroundings) -> Iterator[Finding]:
    """Check that the transcripts, from which ledgers are read, are readable."""
    folder = around.agent_config / "projects"
    if not folder.exists():
        yield ok(f"none yet in {folder}")
        return
    if not allowed(folder, os.R_OK | os.X_OK):
        yield fault(f"{folder} cannot be read.", f"Make it readable: chmod u+rx {folder}")
        return
    newest = max(folder.glob("*/*.jsonl"), key=lambda path: path.stat().st_mtime_ns, default=None)
    if newest is None:
        yield ok(f"none yet in {folder}")
    elif allowed(newest, os.R_OK):
        yield ok(f"{sum(1 for _ in folder.iterdir())} projects in {folder}")
    else:
        yield fault(f"{newest} cannot be read.", f"Make it readable: chmod u+r {newest}")


def check_serena(around: Surroundings) -> Iterator[Finding]:
    """Check Serena, and whether its memories are up to date with the store."""
    found = find_serena(around.project, _trusted(around), around.env)
    if found.launch is not None:
        # Show only the host of an address: the rest may contain tokens.
        where = urlsplit(found.launch.url).hostname if found.launch.url else found.launch.argv[0]
        yield ok(f"{found.detail}: {where}")
    else:
        yield ok(found.detail)
    for mirror in (around.daemon or {}).get("mirrors", ()):
        yield note(
            f"memories of {mirror['root']}: {mirror.get('failure', 'not written yet')}",
            "They are written as soon as that works; the session itself is in the store.",
        )


def _claude(around: Surroundings) -> str | None:
    own = shutil.which("claude", path=around.env.get("PATH", os.defpath))
    beside = [around.user / name for name in INSTALLER_PATHS]
    sdk = find_spec("claude_agent_sdk")
    if sdk is not None and sdk.origin:
        beside.append(Path(sdk.origin).parent / "_bundled" / "claude")
    return own or next((str(path) for path in beside if allowed(path, os.X_OK)), None)


def _trusted(around: Surroundings) -> bool:
    """Return whether the owner trusts this project as it is now; False if no daemon can be asked."""
    worktree = worktree_of(around.project)
    digest = read_project(around.project).digest
    if worktree is None or not digest or around.daemon is None:
        return False
    try:
        return bool(around.ask("trusted", {"root": worktree.root}).get("digest") == digest)
    except HoldfastError:
        return False
