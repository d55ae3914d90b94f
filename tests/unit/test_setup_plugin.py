"""The Claude Code plugin: what the repository holds is what its table gives."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from holdfast.agents.claude import plugin
from holdfast.agents.claude import settings as claude_settings
from holdfast.version import __version__

ROOT = Path(__file__).parents[2]
HOOKS = json.loads(plugin.files()["plugin/hooks/hooks.json"])["hooks"]


@pytest.mark.parametrize("name", plugin.files())
def test_the_committed_plugin_is_the_generated_one(name: str) -> None:
    assert (ROOT / name).read_text() == plugin.files()[name], "run `python -m holdfast.agents.claude.plugin .`"


def test_the_committed_plugin_has_no_other_files() -> None:
    there = {
        path.relative_to(ROOT).as_posix()
        for folder in (".claude-plugin", plugin.FOLDER)
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    }
    assert there == set(plugin.files())


def test_it_has_the_hooks_of_setup_and_no_other() -> None:
    assert list(HOOKS) == [hook.event for hook in claude_settings.BRIEFING]


def test_it_has_the_version_of_holdfast() -> None:
    assert json.loads(plugin.files()["plugin/.claude-plugin/plugin.json"])["version"] == __version__


def run_hook(event: str, path: str) -> subprocess.CompletedProcess[str]:
    command = HOOKS[event][0]["hooks"][0]["command"]
    return subprocess.run(
        ["/bin/sh", "-c", command], env={"PATH": path}, input="{}", capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("event", HOOKS)
def test_where_holdfast_is_missing_only_the_start_of_a_session_says_so(event: str) -> None:
    done = run_hook(event, "/usr/bin:/bin")
    assert (done.returncode, done.stderr) == (0, "")
    if event == "SessionStart":
        assert json.loads(done.stdout) == {"systemMessage": plugin.MISSING}
    else:
        assert done.stdout == ""


@pytest.mark.parametrize("event", HOOKS)
def test_where_holdfast_is_there_the_hook_is_its_own(event: str, tmp_path: Path) -> None:
    program = tmp_path / "holdfast"
    program.write_text('#!/bin/sh\necho "$*"; cat; exit 3\n')
    program.chmod(0o755)
    done = run_hook(event, os.pathsep.join([str(tmp_path), "/usr/bin", "/bin"]))
    assert (done.returncode, done.stdout) == (3, f"hook {event}\n{{}}")
