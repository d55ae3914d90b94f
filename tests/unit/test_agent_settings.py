"""What trust in a project's settings for an agent is pinned to: the settings, and the programs that they name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.agents.claude import project_settings
from holdfast.agents.claude.project_settings import read_project_settings

COMMANDS = {
    "in .claude": (".claude/hooks/start.sh", "sh .claude/hooks/start.sh"),
    "from the top": ("tools/start.sh", "./tools/start.sh --quick"),
    "by the project's variable": ("tools/start.sh", '"$CLAUDE_PROJECT_DIR"/tools/start.sh'),
    "by the variable in braces": ("tools/start.sh", "${CLAUDE_PROJECT_DIR}/tools/start.sh"),
    "by git": ("tools/start.sh", "bash $(git rev-parse --show-toplevel)/tools/start.sh"),
    "by its whole path": ("tools/start.sh", "{top}/tools/start.sh"),
    "with a space": ("my tools/start it.sh", "sh 'my tools/start it.sh'"),
    "escaped": ("my tools/start it.sh", r"sh my\ tools/start\ it.sh"),
    "after cd": ("tools/start.sh", "cd tools && ./start.sh"),
    "in a pipe": ("tools/start.sh", "echo x|tools/start.sh>/dev/null"),
    "as a module": ("tools/start.py", "python -m tools.start"),
    "in a subshell": ("tools/start.sh", "(tools/start.sh;true)"),
    "with ..": ("tools/start.sh", "docs/../tools/start.sh"),
    "as an option's value": ("tools/start.js", "node --require=./tools/start.js"),
}


def write(project: Path, path: str, text: str) -> None:
    (project / path).parent.mkdir(parents=True, exist_ok=True)
    (project / path).write_text(text)


def hook(command: str) -> str:
    return json.dumps({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": command}]}]}})


@pytest.mark.parametrize("case", COMMANDS)
def test_a_script_that_a_hook_runs_is_part_of_what_is_trusted(tmp_path: Path, case: str) -> None:
    script, command = COMMANDS[case]
    write(tmp_path, ".claude/settings.json", hook(command.replace("{top}", str(tmp_path))))
    digests = [read_project_settings(tmp_path).digest]
    for text in ("echo harmless", "echo harm", ""):
        write(tmp_path, script, text)
        digests.append(read_project_settings(tmp_path).digest)
        assert script in read_project_settings(tmp_path).files
    assert len(set(digests)) == 4, "also that it was not there"
    write(tmp_path, "src/main.py", "work goes on")
    assert read_project_settings(tmp_path).digest == digests[-1]


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "./server.sh"},
        {"command": "python", "args": ["server.sh"]},
        {"command": "env", "args": ["X=1", "./server.sh"]},
        {"command": "tool", "env": {"NODE_OPTIONS": "--require ./server.sh"}},
    ],
)
def test_a_server_of_the_repository_is_part_of_what_is_trusted(tmp_path: Path, entry: dict[str, Any]) -> None:
    write(tmp_path, ".mcp.json", json.dumps({"mcpServers": {"own": entry}}))
    write(tmp_path, "server.sh", "one")
    before = read_project_settings(tmp_path)
    write(tmp_path, "server.sh", "two")
    assert "server.sh" in before.files and before.digest != read_project_settings(tmp_path).digest


@pytest.mark.parametrize(
    "path",
    [
        ".claude/hooks/start.sh",
        ".claude/hooks/deep/er/start",
        ".claude/skills/x/scripts/run.py",
        ".claude/output-styles/loud.md",
        ".claude/statusline.sh",
        ".claude/commands/go.md",
        ".claude/anything",
    ],
)
def test_everything_in_the_agents_folder_is_part_of_it(tmp_path: Path, path: str) -> None:
    write(tmp_path, path, "one")
    before = read_project_settings(tmp_path).digest
    write(tmp_path, path, "two")
    assert before != read_project_settings(tmp_path).digest


def test_what_claude_code_writes_while_it_works_is_not(tmp_path: Path) -> None:
    write(tmp_path, ".claude/settings.json", "{}")
    before = read_project_settings(tmp_path).digest
    for name in project_settings.IGNORED_FOLDERS:
        write(tmp_path, f".claude/{name}/a/file", "x")
    assert read_project_settings(tmp_path).digest == before


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: x\nhooks:\n  Stop:\n    - command: tools/start.sh\n---\nText",
        "Look: !`tools/start.sh now`",
        "Do\n```!\ntools/start.sh\n```\n",
    ],
)
def test_a_script_that_a_document_runs_is_part_of_it(tmp_path: Path, text: str) -> None:
    write(tmp_path, ".claude/agents/x.md", text + "\nAlso read src/main.py.\n")
    write(tmp_path, "tools/start.sh", "one")
    write(tmp_path, "src/main.py", "one")
    assert set(read_project_settings(tmp_path).files) == {".claude/agents/x.md", "tools/start.sh"}


def test_files_that_are_only_allowed_or_denied_are_not_part_of_it(tmp_path: Path) -> None:
    write(tmp_path, ".claude/settings.json", json.dumps({"permissions": {"deny": ["Read(./secret.txt)"]}}))
    write(tmp_path, "secret.txt", "x")
    assert set(read_project_settings(tmp_path).files) == {".claude/settings.json"}


def test_links_are_followed_inside_and_named_where_they_lead_out(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    write(project, "shared/hooks/start.sh", "one")
    write(project, ".claude/settings.json", hook("./away.sh"))
    (project / ".claude" / "hooks").symlink_to("../shared/hooks")
    (project / ".claude" / "loop").symlink_to(".")
    outside.write_text("x")
    (project / "away.sh").symlink_to(outside)
    (project / ".claude" / "also-away").symlink_to(outside)
    found = read_project_settings(project)
    assert found.problem is None and ".claude/hooks/start.sh" in found.files
    assert found.not_compared == (".claude/also-away", "away.sh")


def test_what_is_too_large_is_named_and_not_compared(tmp_path: Path) -> None:
    write(tmp_path, ".claude/hooks/large", "x" * (project_settings.MAX_PROGRAM_BYTES + 1))
    assert read_project_settings(tmp_path).not_compared == (".claude/hooks/large",)


def test_a_plugin_that_settings_name_is_part_of_it(tmp_path: Path) -> None:
    source = {"source": {"source": "directory", "path": "./plugins"}}
    write(tmp_path, ".claude/settings.json", json.dumps({"extraKnownMarketplaces": {"ours": source}}))
    write(tmp_path, "plugins/.claude-plugin/marketplace.json", "{}")
    write(tmp_path, "plugins/one/hooks/hooks.json", "{}")
    assert "plugins/one/hooks/hooks.json" in read_project_settings(tmp_path).files


@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"w{number}" for number in range(30_000)),
        "a/" * 100_000,
        "'" * 200_000,
        "$(" * 100_000,
        "x" * 200_000,
        "!`" * 100_000,
    ],
    ids=["words", "folders", "quotes", "subshells", "one word", "commands"],
)
def test_hostile_settings_are_read_or_refused_without_harm(tmp_path: Path, text: str) -> None:
    write(tmp_path, ".claude/settings.json", hook(text))
    write(tmp_path, ".claude/agents/x.md", f"---\nhooks: {text}\n---\n{text}")
    found = read_project_settings(tmp_path)
    assert found.problem is not None or found.digest


def test_more_than_can_be_compared_is_never_trusted(tmp_path: Path) -> None:
    for number in range(project_settings.MAX_FILES + 1):
        write(tmp_path, f".claude/skills/{number % 40}/{number}", "x")
    assert not read_project_settings(tmp_path).digest
