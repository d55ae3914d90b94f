"""`holdfast setup claude` and the plugin, with the real Claude Code: what it then starts, sees and may do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.agents.claude_code import CLAUDE, ClaudeRun
from tests.agents.scripted_model import ScriptedModel, steps, text, tool_use
from tests.installation import HOLDFAST, PATIENCE, Installation
from tests.shared_daemon import Guest

ROOT = Path(__file__).parents[2]
THOUGHT = {"thought": "hold fast", "nextThoughtNeeded": False}
PLUGIN = "holdfast@holdfast"


class Person:
    """Somebody with Claude Code, Holdfast and a project, and settings that no other test sees."""

    def __init__(self, root: Path, holdfast: Installation) -> None:
        self.root = root
        self.holdfast = holdfast
        self.config = root / "claude"
        self.project = root / "project"
        self.bin = root / "bin"
        for folder in (self.config, self.project, self.bin):
            folder.mkdir()
        (self.bin / "claude").symlink_to(CLAUDE)
        self.log = root / "started"
        self.servers = self.config / ".claude.json"
        self.settings = self.config / "settings.json"

    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(self.root),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            **({"IS_SANDBOX": "1"} if os.geteuid() == 0 else {}),
            **self.holdfast.settings,
        }

    def run(self, program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(program), *arguments],
            cwd=self.project,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
        )

    def setup(self, *arguments: str) -> None:
        done = self.run(HOLDFAST, "setup", "claude", "--yes", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr

    def claude(self, *arguments: str) -> str:
        done = self.run(CLAUDE, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ask(self, model: ScriptedModel, prompt: str, allowed: Sequence[str] = ()) -> ClaudeRun:
        """One run of the agent with the settings as they are."""
        command = [str(CLAUDE), "-p", "--output-format", "stream-json", "--verbose"]
        command += ["--allowed-tools", ",".join(allowed)] if allowed else []
        done = subprocess.run(
            command,
            cwd=self.project,
            env={**self.environment(), "ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-test"},
            input=prompt,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
        )
        return ClaudeRun(done.returncode, [json.loads(line) for line in done.stdout.splitlines() if line], done.stderr)

    def record_starts(self) -> None:
        """Have every start of what setup registered written down first."""
        *_, launcher, _word = json.loads(self.servers.read_text())["mcpServers"]["holdfast"]["args"]
        recorder = self.root / "launcher.sh"
        recorder.write_text(f'echo "$*" >> {self.log}\n. {launcher}\n')
        for file in (self.settings, self.servers):
            file.write_text(file.read_text().replace(launcher, str(recorder)))

    def recorder(self, path: Path, program: str) -> Path:
        """A program that writes down its arguments and becomes another."""
        path.write_text(f'#!/bin/sh\necho "$*" >> {self.log}\nexec {program} "$@"\n')
        path.chmod(0o755)
        return path

    def starts(self) -> list[str]:
        """What was started, by the last word of its command: mcp, or a hook's event."""
        return sorted(line.split()[-1] for line in self.log.read_text().splitlines())

    def files(self) -> dict[str, bytes]:
        """Claude Code's settings, and what the project holds."""
        paths = [self.servers, self.settings, *(path for path in self.project.rglob("*") if path.is_file())]
        return {str(path.relative_to(self.root)): path.read_bytes() for path in paths if path.exists()}


@pytest.fixture
def person(tmp_path: Path, shared_embedded: Guest) -> Person:
    return Person(tmp_path, shared_embedded)


def last_result(model: ScriptedModel) -> Any:
    return json.loads(model.requests[-1].tool_results[-1].text)


def test_after_setup_the_agent_has_the_server_and_may_use_the_core_tools(person: Person) -> None:
    person.setup("--allow", "core")
    with ScriptedModel(steps(tool_use("mcp__holdfast__thought", THOUGHT), text("Thought."))) as model:
        run = person.ask(model, "Think.")
    assert run.mcp_servers == {"holdfast": "connected"}
    assert run.result == "Thought."
    assert last_result(model)["thoughtNumber"] == 1


def test_three_times_is_once_and_removing_gives_back_every_byte(person: Person) -> None:
    person.claude("mcp", "add-json", "-s", "user", "other", '{"type":"stdio","command":"other"}')
    person.settings.write_text('{"model":"opus",\n "hooks": {"Stop": []}}')
    before = person.files()
    person.setup()
    once = person.files()
    person.setup()
    person.setup()
    assert person.files() == once != before
    person.setup("--remove")
    assert person.files() == before


def test_removing_after_claude_went_on_with_its_file_takes_out_our_server_only(person: Person) -> None:
    person.claude("mcp", "add-json", "-s", "user", "other", '{"type":"stdio","command":"other"}')
    person.setup()
    person.claude("mcp", "add-json", "-s", "user", "later", '{"type":"stdio","command":"later"}')
    person.setup("--remove")
    assert set(json.loads(person.servers.read_text())["mcpServers"]) == {"other", "later"}
    assert not person.settings.exists()


def test_a_tool_call_starts_no_process_of_holdfast(person: Person) -> None:
    person.setup()
    person.record_starts()
    script = steps(tool_use("Bash", {"command": "echo one"}), tool_use("Bash", {"command": "echo two"}), text("Done."))
    with ScriptedModel(script) as model:
        run = person.ask(model, "Work.", allowed=["Bash"])
    assert run.result == "Done."
    assert [request.tool_results[-1].text for request in model.requests[1:]] == ["one", "two"]
    assert person.starts() == ["SessionEnd", "SessionStart", "mcp"]


def test_local_setup_is_seen_in_its_project_only(person: Person) -> None:
    person.setup("--local")
    assert "Scope: Local config" in person.claude("mcp", "get", "holdfast")
    assert not person.settings.exists()
    assert "SessionStart" in (person.project / ".claude" / "settings.local.json").read_text()
    person.setup("--remove", "--local")
    assert person.run(CLAUDE, "mcp", "get", "holdfast").returncode != 0


def test_without_its_command_claude_reads_what_was_written_into_its_file(person: Person) -> None:
    (person.bin / "claude").unlink()
    person.setup()
    assert person.claude("mcp", "get", "holdfast").splitlines()[1:3] == [
        "  Scope: User config (available in all your projects)",
        "  Status: ✔ Connected",
    ]


@pytest.mark.parametrize("there", [True, False], ids=["with Holdfast", "without Holdfast"])
def test_a_shared_setup_works_where_holdfast_is_and_is_silent_where_it_is_not(person: Person, there: bool) -> None:
    person.setup("--project")
    person.settings.write_text('{"enableAllProjectMcpServers": true}')
    if there:
        person.recorder(person.bin / "holdfast", str(HOLDFAST))
    with ScriptedModel() as model:
        run = person.ask(model, "Hello.")
    assert run.mcp_servers == {"holdfast": "connected"}
    assert run.stderr == ""
    tools = [name for name in _tools(run) if name.startswith("mcp__holdfast__")]
    if there:
        assert "mcp__holdfast__thought" in tools
        assert person.starts() == ["SessionEnd", "SessionStart", "mcp"]
    else:
        assert tools == []


@pytest.mark.parametrize("folder", [".", "plugin"])
def test_the_plugin_is_valid(tmp_path: Path, folder: str) -> None:
    person = Person(tmp_path, Installation(tmp_path / "holdfast"))
    assert "Validation passed" in person.claude("plugin", "validate", "--strict", str(ROOT / folder))


def test_the_plugin_brings_server_and_hooks_and_setup_refuses_beside_it(person: Person) -> None:
    marketplace = person.root / "clone"
    for name in (".claude-plugin", "plugin"):
        shutil.copytree(ROOT / name, marketplace / name)
    person.recorder(person.bin / "holdfast", str(HOLDFAST))
    person.claude("plugin", "install", "holdfast", "--marketplace", str(marketplace))
    with ScriptedModel() as model:
        run = person.ask(model, "Hello.")
    assert run.mcp_servers == {"plugin:holdfast:holdfast": "connected"}
    assert "mcp__plugin_holdfast_holdfast__thought" in _tools(run)
    assert person.starts() == ["SessionEnd", "SessionStart", "mcp"]
    before = person.files()
    refused = person.run(HOLDFAST, "setup", "claude", "--yes")
    assert refused.returncode == 1
    assert f"claude plugin disable {PLUGIN}" in refused.stderr
    assert person.files() == before
    person.claude("plugin", "disable", PLUGIN)
    person.setup()
    assert "SessionStart" in person.settings.read_text()


def _tools(run: ClaudeRun) -> list[str]:
    start = next(event for event in run.events if event["type"] == "system" and event["subtype"] == "init")
    return list(start["tools"])
