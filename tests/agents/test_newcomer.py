"""Somebody who has just found Holdfast follows the README, with the real Claude Code, from the clone to the end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.agents.claude_code import CLAUDE, written_down
from tests.agents.scripted_model import Reply, Request, Script, ScriptedModel, steps, text, tool_use
from tests.installation import kill_all

ROOT = Path(__file__).parents[2]
LIMIT = 600.0
COMMANDS = (
    "git clone <this repository> holdfast && cd holdfast\n",
    "make install ",
    "holdfast setup claude ",
    "cd ~/your/project && claude ",
    "claude ",
)


class Newcomer:
    """A user with git, make, a python and Claude Code, and nothing else."""

    def __init__(self, place: Path) -> None:
        self.home = place / "newcomer"
        self.bin = place / "bin"
        self.project = self.home / "fence"
        self.clone = self.home / "holdfast"
        for folder in (self.bin, self.project):
            folder.mkdir(parents=True)
        (self.bin / "claude").symlink_to(CLAUDE)
        # The python of the tests is in an environment of its own; a user's is the one below it.
        (self.bin / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
        (self.project / "plan.md").write_text("Posts first, then boards.\n")

    def environment(self, **more: str) -> dict[str, str]:
        ours = ("HOLDFAST_", "CLAUDE", "VIRTUAL_ENV", "PYTHON", "XDG_", "MAKE")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        path = f"{self.home}/.local/bin:{self.bin}:/usr/local/bin:/usr/bin:/bin"
        return {**kept, "HOME": str(self.home), "PATH": path, "HOLDFAST_PORT": "0", **more}

    def run(self, command: str, cwd: Path) -> str:
        """One line of the README, in a shell."""
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=cwd,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def claude(self, script: Script, prompt: str) -> tuple[int, list[Request]]:
        """Claude Code in the project; its exit status, and what its model was asked."""
        more = {
            "ANTHROPIC_API_KEY": "sk-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            **({"IS_SANDBOX": "1"} if os.geteuid() == 0 else {}),
        }
        with ScriptedModel(script) as model:
            done = subprocess.run(
                ["claude", "-p", prompt, "--allowed-tools", "Read"],
                cwd=self.project,
                env=self.environment(ANTHROPIC_BASE_URL=model.url, **more),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LIMIT,
            )
        return done.returncode, model.requests

    def kill_claude(self, _request: Request) -> Reply:
        written_down(self.home / ".claude", f'"file_path":"{self.project / "plan.md"}"')
        kill_all(process for process in self.processes() if _name_of(process) == CLAUDE.name)
        return text("Nobody hears this.")

    def processes(self) -> list[psutil.Process]:
        """What runs for this user."""
        return [process for process in psutil.process_iter() if _home_of(process) == str(self.home)]


def _name_of(process: psutil.Process) -> str | None:
    try:
        return process.name()
    except psutil.Error:  # it ended meanwhile
        return None


def _home_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("HOME")
    except (psutil.Error, OSError):
        return None


@pytest.mark.timeout(1200)
@pytest.mark.early
def test_a_newcomer_gets_a_session_back_in_five_commands(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    assert all(f"\n{command}" in readme for command in COMMANDS), "the README says something else by now"
    newcomer = Newcomer(tmp_path)
    try:
        newcomer.run(f"git clone -q {ROOT} holdfast", newcomer.home)
        newcomer.run("make install", newcomer.clone)
        examined = newcomer.run("holdfast setup claude --yes", newcomer.home)
        assert "ok     hooks" in examined and "fault  " not in examined, examined
        plan = tool_use("Read", {"file_path": str(newcomer.project / "plan.md")})
        status, _ = newcomer.claude(steps(plan, newcomer.kill_claude), "Mend the fence, north side first.")
        assert status == -signal.SIGKILL
        status, (first, *_) = newcomer.claude(steps(text("Shall I go on?")), "Hello.")
        assert status == 0
        told = first.text[first.text.find("[Holdfast briefing") :][:2_000]
        assert "Mend the fence, north side first." in told and "plan.md" in told and "claude --resume" in told, told
        newcomer.run("holdfast stop", newcomer.home)
    finally:
        kill_all(newcomer.processes())
        shutil.rmtree(newcomer.home, ignore_errors=True)
