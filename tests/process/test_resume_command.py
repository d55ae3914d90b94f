"""`holdfast` lists the unfinished work of all projects, and `holdfast resume` starts the agent on it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.installation import HOLDFAST, Installation, run_at_terminal, wait_until
from tests.process.hooks import left_behind

from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.store.sqlite import system_clock

STAND_IN = '#!/bin/sh\necho "AGENT in $(pwd): $*"\nexit 7\n'
"""Says where and how it was started; tests/agents/test_resume_claude.py starts the real one."""


class User:
    """Somebody who used Claude Code before Holdfast, with two projects."""

    def __init__(self, installation: Installation, place: Path) -> None:
        self.installation = installation
        self.home = place / "home"
        self.shop, self.api = (self.home / "src" / name for name in ("shop", "api"))
        for project in (self.shop, self.api):
            project.mkdir(parents=True)
        programs = place / "bin"
        programs.mkdir()
        (programs / "claude").write_text(STAND_IN)
        (programs / "claude").chmod(0o755)
        self.env = {**installation.environment(), "HOME": str(self.home), "COLUMNS": "80"}
        self.env["PATH"] = f"{programs}:{self.env['PATH']}"

    def was_cut_off(self, project: Path, request: str) -> str:
        """An agent was killed in the middle of this; returns its session."""
        folder = self.home / ".claude" / "projects" / project_key(project)
        folder.mkdir(parents=True, exist_ok=True)
        session = left_behind(folder, project, request).stem
        then = system_clock()
        wait_until(lambda: system_clock() > then, "the next one is later")
        return session

    def runs(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(HOLDFAST), *words],
            env=self.env,
            cwd=self.shop,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def at_terminal(self, *words: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        return run_at_terminal(["env", "-C", str(self.shop), str(HOLDFAST), *words], self.env, answer)


@pytest.fixture
def user(embedded: Installation, tmp_path: Path) -> User:
    return User(embedded, tmp_path)


def test_unfinished_work_is_listed_with_the_command_that_continues_it(user: User) -> None:
    newcomer = user.runs()
    assert newcomer.returncode == 0 and "Nothing is unfinished" in newcomer.stdout
    assert "holdfast setup claude" in newcomer.stdout, "what to do next"
    session = user.was_cut_off(user.api, "Add paging.")
    other = user.was_cut_off(user.shop, "Mend the drawer " + "that does not open " * 9)
    lines = user.runs().stdout.splitlines()
    assert lines[0].split() == ["LAST", "STATE", "PROJECT", "ASKED"]
    assert "cut off  ~/src/shop  Mend the drawer" in lines[1] and "\x1b" not in "".join(lines)
    assert f"    holdfast resume ~/src/shop --session {other[:8]}" in lines
    assert f"    holdfast resume ~/src/api --session {session[:8]}" in lines
    one = json.loads(user.runs("--json", "--limit", "1").stdout)
    assert [work["session"] for work in one["work"]] == [other] and one["more"] == 1
    assert user.runs("--limit", "0").returncode == 1

    shown = user.at_terminal()
    assert "\x1b[33mcut off\x1b[0m" in shown.stdout
    table = shown.stdout.replace("\x1b[33m", "").replace("\x1b[1m", "").replace("\x1b[0m", "").partition("\n\n")[0]
    assert max(map(len, table.splitlines())) <= 80, "it fits the terminal"
    user.env["NO_COLOR"] = "1"
    assert "\x1b" not in user.at_terminal().stdout


def test_resume_starts_the_agent_where_it_was_cut_off_and_asks_which_if_several_are_open(user: User) -> None:
    session = user.was_cut_off(user.shop, "Mend the drawer.")
    started = user.at_terminal("resume")
    assert started.returncode == 7, "the exit status is the agent's"
    assert f"AGENT in {user.shop}: --resume {session}" in started.stdout
    newer = user.was_cut_off(user.shop, "Write the notes.")
    asked = user.at_terminal("resume", answer="2")
    assert "Mend the drawer." in asked.stdout and "Write the notes." in asked.stdout and "Which one?" in asked.stdout
    assert f"AGENT in {user.shop}: --resume {session}" in asked.stdout
    assert f": --resume {newer}" in user.at_terminal("resume", answer="").stdout
    assert f": --resume {session}" in user.at_terminal("resume", "--session", session[:8]).stdout
    refused = user.at_terminal("resume", answer="3")
    assert refused.returncode == 1 and "must be 1 to 2" in refused.stdout and "AGENT" not in refused.stdout
    elsewhere = user.was_cut_off(user.api, "Add paging.")
    assert f"AGENT in {user.api}: --resume {elsewhere}" in user.at_terminal("resume", "../api", "--in", "claude").stdout
    user.env["PATH"] = "/usr/bin:/bin"
    assert "no `claude` in PATH" in user.at_terminal("resume", "../api").stdout


def test_without_a_terminal_resume_starts_nothing_and_says_how(user: User) -> None:
    nothing = user.runs("resume", "--print")
    assert (nothing.returncode, nothing.stdout) == (1, "") and "holdfast show" in nothing.stderr
    session = user.was_cut_off(user.shop, "Mend the drawer.")
    command = f"cd ~/src/shop && claude --resume {session}"
    assert user.runs("resume", "--print").stdout == f"{command}\n"
    told = user.runs("resume")
    assert told.returncode == 0 and "AGENT" not in told.stdout
    assert command in told.stderr and "not a terminal" in told.stderr
    assert told.stdout == user.runs("show").stdout and "Mend the drawer." in told.stdout, "as it always did"
    assert json.loads(user.runs("resume", "--json").stdout) == json.loads(user.runs("show", "--json").stdout)
    unknown = user.runs("resume", "--in", "emacs")
    assert unknown.returncode == 2 and "claude" in unknown.stderr
    assert "not a directory" in user.runs("resume", "../nowhere").stderr
