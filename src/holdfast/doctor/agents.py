"""Checks of agents: their programs, their transcripts, and Serena."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.agents import TranscriptsPart
from holdfast.agents.registry import AGENTS, DEFAULT
from holdfast.doctor.findings import Finding, fault, note, ok
from holdfast.doctor.installation import allowed
from holdfast.doctor.surroundings import Surroundings
from holdfast.errors import HoldfastError
from holdfast.identity.worktree import worktree_of
from holdfast.protocol.project.settings import read_project
from holdfast.protocol.serena.discovery import find_serena

VERSION_SECONDS = 6.0


def check_agent(around: Surroundings) -> Iterator[Finding]:
    """Check the programs of agents; a missing one is a finding only if it is the default."""
    for agent in AGENTS.values():
        program = agent.settings().program(around.env) if agent.settings is not None else None
        if program is not None:
            yield _version(around, agent.title, program)
        elif agent.name == DEFAULT:
            yield note(
                f"no `{agent.name}` found",
                f"Install {agent.title}, or connect another agent: `holdfast setup --help`.",
            )


def _version(around: Surroundings, title: str, program: Path) -> Finding:
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
        return note(f"{program} did not print its version within {VERSION_SECONDS:.0f} s")
    if version.returncode != 0:
        return fault(f"{program} --version failed with status {version.returncode}.", f"Reinstall {title}.")
    return ok(f"{program}, {version.stdout.strip()}")


def check_transcripts(around: Surroundings) -> Iterator[Finding]:
    """Check that the transcripts, from which ledgers are read, are readable."""
    for agent in AGENTS.values():
        if agent.transcripts is not None and agent.settings is not None:
            yield _transcripts(agent.transcripts, agent.settings().config_directory(around.env))


def _transcripts(transcripts: TranscriptsPart, config: Path) -> Finding:
    folder = transcripts.folder(config)
    if not folder.exists():
        return ok(f"none yet in {folder}")
    if not allowed(folder, os.R_OK | os.X_OK):
        return fault(f"{folder} cannot be read.", f"Make it readable: chmod u+rx {folder}")
    newest = next((file.path for file in transcripts.found(config)), None)
    if newest is None:
        return ok(f"none yet in {folder}")
    if allowed(newest, os.R_OK):
        return ok(f"{sum(1 for _ in folder.iterdir())} projects in {folder}")
    return fault(f"{newest} cannot be read.", f"Make it readable: chmod u+r {newest}")


def check_serena(around: Surroundings) -> Iterator[Finding]:
    """Check Serena, and whether its memories are up to date with the store."""
    serena = find_serena(around.project, _trusted(around), around.env)
    if serena.launch is not None:
        # Show only the host of an address: the rest may contain tokens.
        where = urlsplit(serena.launch.url).hostname if serena.launch.url else serena.launch.argv[0]
        yield ok(f"{serena.detail}: {where}")
    else:
        yield ok(serena.detail)
    for silent in (around.daemon or {}).get("serena", ()):
        yield note(f"Serena does not answer: {silent}", "SERENA_INIT is not met until it does or is not configured.")
    for mirror in (around.daemon or {}).get("mirrors", ()):
        yield note(
            f"memories of {mirror['root']}: {mirror.get('failure', 'not written yet')}",
            "They are written as soon as that works; the session itself is in the store.",
        )


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
