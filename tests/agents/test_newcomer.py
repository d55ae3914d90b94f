"""Somebody who has just found Holdfast follows the README and docs/teams.md, with the real Claude Code, to the end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.agents.claude_code import CLAUDE, written_down
from tests.agents.scripted_model import Reply, Request, Script, ScriptedModel, steps, text, tool_use
from tests.installation import kill_all

ROOT = Path(__file__).parents[2]
LIMIT = 600.0
CLONE = "git clone <this repository> holdfast && cd holdfast"
INSTALL = "make install"
SETUP = "holdfast setup claude"


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

    def install(self) -> None:
        """What both documents begin with."""
        self.run(f"git clone -q {ROOT} holdfast", self.home)
        self.run(INSTALL, self.clone)

    def environment(self, **more: str) -> dict[str, str]:
        ours = ("HOLDFAST_", "CLAUDE", "VIRTUAL_ENV", "PYTHON", "XDG_", "MAKE")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        path = f"{self.home}/.local/bin:{self.bin}:/usr/local/bin:/usr/bin:/bin"
        return {**kept, "HOME": str(self.home), "PATH": path, "HOLDFAST_PORT": "0", **more}

    def run(self, command: str, cwd: Path, more: dict[str, str] | None = None, *, status: int = 0) -> str:
        """One line of a document, in a shell, with more variables."""
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=cwd,
            env=self.environment(**(more or {})),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert done.returncode == status, (command, done.stdout, done.stderr)
        return done.stdout

    def claude(self, script: Script, prompt: str) -> tuple[int, list[Request]]:
        """Claude Code in the project; its exit status, and what its model was asked."""
        with ScriptedModel(script) as model:
            done = subprocess.run(
                ["claude", "-p", prompt, "--allowed-tools", "Read"],
                cwd=self.project,
                env=self.environment(**signed_in(model)),
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


def signed_in(model: ScriptedModel) -> dict[str, str]:
    """The environment in which Claude Code talks to this model."""
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "sk-test",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        **({"IS_SANDBOX": "1"} if os.geteuid() == 0 else {}),
    }


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


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    """A newcomer who has cloned and installed Holdfast."""
    newcomer = Newcomer(tmp_path_factory.mktemp("newcomer"))
    try:
        newcomer.install()
        yield newcomer
        newcomer.run("make uninstall", newcomer.clone)
        assert not (newcomer.home / ".local" / "bin" / "holdfast").is_symlink()
    finally:
        shutil.rmtree(newcomer.home, ignore_errors=True)


@pytest.fixture
def newcomer(installed: Newcomer) -> Iterator[Newcomer]:
    """The same, with no process left of an earlier test."""
    try:
        yield installed
    finally:
        kill_all(installed.processes())


@pytest.mark.timeout(1200)
@pytest.mark.early
def test_a_newcomer_gets_a_session_back_in_five_commands(newcomer: Newcomer) -> None:
    readme = (ROOT / "README.md").read_text()
    assert all(f"\n{command} " in readme for command in (INSTALL, SETUP)), "the README says something else by now"
    examined = newcomer.run(f"{SETUP} --yes", newcomer.home)
    assert "ok     hooks" in examined and "fault  " not in examined, examined
    plan = tool_use("Read", {"file_path": str(newcomer.project / "plan.md")})
    status, _ = newcomer.claude(steps(plan, newcomer.kill_claude), "Mend the fence, north side first.")
    assert status == -signal.SIGKILL
    status, (first, *_) = newcomer.claude(steps(text("Shall I go on?")), "Hello.")
    assert status == 0
    told = first.text[first.text.find("[Holdfast briefing") :][:2_000]
    assert "Mend the fence, north side first." in told and "plan.md" in told and "claude --resume" in told, told
    newcomer.run("holdfast stop", newcomer.home)


def commands_of(document: str, heading: str) -> list[str]:
    """The commands in the blocks below a heading, line by line."""
    section = document.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [line for block in section.split("```sh\n")[1:] for line in block.partition("```")[0].splitlines()]


def shop(request: Request) -> Reply:
    """The model of two teams: the one that asks, and the one that knows."""
    if "[Message from " in request.text:
        return text("GET /orders and POST /orders.")
    if request.tool_results:
        return text(f"They say: {request.tool_results[-1].text}")
    question = {"team": "backend", "question": "Which endpoints are there?", "timeout": 120_000}
    return tool_use("mcp__holdfast__teams_ask", question)


@pytest.mark.timeout(1200)
@pytest.mark.early
def test_a_newcomer_gets_from_nothing_to_answers_of_teams_by_the_commands_of_their_page(newcomer: Newcomer) -> None:
    page = (ROOT / "docs" / "teams.md").read_text()
    clone, install, *commands = commands_of(page, "From nothing to a first answer")
    assert [clone, install] == [CLONE, INSTALL], "what the fixture did"
    for name in ("backend", "frontend"):
        (newcomer.home / "shop" / name).mkdir(parents=True)
    with ScriptedModel(shop) as model:
        told = {command: newcomer.run(command, newcomer.clone, signed_in(model)) for command in commands}
        answers = [answer for command, answer in told.items() if " ask " in command or " -p " in command]
        assert len(answers) == 2 and all("GET /orders and POST /orders." in answer for answer in answers), told
        (history,) = [shown for command, shown in told.items() if " history " in command]
        assert "frontend" in history and "  | GET /orders and POST /orders." in history
        (checked,) = [shown for command, shown in told.items() if " check" in command]
        assert "2 of 2 teams can be served" in checked
        newcomer.run("holdfast stop", newcomer.home)


@pytest.mark.timeout(1200)
@pytest.mark.early
def test_the_line_that_is_named_for_a_missing_sdk_adds_it_to_the_installation(newcomer: Newcomer) -> None:
    python = newcomer.home / ".local" / "share" / "holdfast" / "venv" / "bin" / "python"
    newcomer.run("holdfast teams add fence --project fence", newcomer.home)
    newcomer.run(f"{python} -m pip uninstall --quiet --yes claude-agent-sdk", newcomer.home)
    missing = newcomer.run("holdfast teams check", newcomer.home, status=1)
    line = missing.partition("Add it: `")[2].partition("`")[0]
    assert line.startswith(f"{python} -m pip install"), missing
    newcomer.run(f"{line} --quiet --disable-pip-version-check", newcomer.home)
    assert "FAULT" not in newcomer.run("holdfast teams check", newcomer.home)
    newcomer.run("holdfast teams remove fence", newcomer.home)
