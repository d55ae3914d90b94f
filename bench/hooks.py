"""Hooks: what an agent pays before each tool call, with the command as it is registered and a warm daemon."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.report import Effort, Progress, Row, compare
from bench.served import Served
from bench.workshop import scratch
from holdfast.setup.hook_command import command
from holdfast.setup.launcher import launcher_path, refresh

TARGET = 1.5
ROUNDS_PER_START = 5
EMPTY = (sys.executable, "-c", "pass")
SETTINGS = 'protocol = "simple"\nenforcement = "enforce"\nstart = "hook"\n'


class Unexpected(Exception):
    """The hook did not do the work that is measured."""


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """What any command of an agent pays, and a commit that comes too early, in turn with an empty python."""
    rounds = effort.starts * ROUNDS_PER_START
    any_command: list[float] = []
    too_early: list[float] = []
    empty: list[float] = []
    with scratch() as place, Served(place / "home") as daemon:
        project = _project(place / "project")
        hook("SessionStart", project, daemon.env, source="startup")
        hook("UserPromptSubmit", project, daemon.env, prompt="Measure.")
        for done in range(rounds):
            any_command.append(_before("ls -l", project, daemon.env)[0])
            seconds, told = _before("git commit -m early", project, daemon.env)
            if b"CONTEXT_RETRIEVAL" not in told:
                raise Unexpected(told.decode(errors="replace"))
            too_early.append(seconds)
            empty.append(timed(EMPTY, b"", daemon.env, project)[0])
            progress("hooks", done + 1, rounds)
    return [
        compare(f"pre-tool-use hook, {what}, median of {rounds}", ours, empty, theirs_is="empty python", target=TARGET)
        for what, ours in (("any command", any_command), ("a commit that is too early", too_early))
    ]


def _project(path: Path) -> Path:
    settings = path / ".holdfast" / "protocol.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(SETTINGS)
    (path / "README.md").write_text("# Measured\n")
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    return path


def _before(command: str, project: Path, env: Mapping[str, str]) -> tuple[float, bytes]:
    asked = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "t"}
    return hook("PreToolUse", project, env, **asked)


def hook(event: str, project: Path, env: Mapping[str, str], **more: object) -> tuple[float, bytes]:
    """Run a hook as Claude Code does; how long it took, and what it printed."""
    payload = {"session_id": "bench", "cwd": str(project), "hook_event_name": event, **more}
    home = env["HOLDFAST_HOME"]
    if not launcher_path(Path(home)).exists():
        refresh(Path(home), takes_over=True)  # as `holdfast setup` does
    # Claude Code hands a hook's command to a shell.
    return timed(("/bin/sh", "-c", command(event, home=home)), json.dumps(payload).encode(), env, project)


def timed(argv: Sequence[str], stdin: bytes, env: Mapping[str, str], cwd: Path) -> tuple[float, bytes]:
    """Run a command to its end."""
    began = time.perf_counter()
    done = subprocess.run(argv, input=stdin, env=dict(env), cwd=cwd, capture_output=True, check=True)
    return time.perf_counter() - began, done.stdout
