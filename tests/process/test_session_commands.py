"""`holdfast sessions`: what agents thought, as a person reads it at a terminal and a program in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.process.clients import Way
from tests.shared_daemon import Guest

pytestmark = pytest.mark.anyio

STDIO = Way("stdio", "legacy")
STEERING = "\x1b]0;owned\x07\x1b[2Jforged\r\nline"
LONG = "a long thought " * 4_000


@pytest.fixture
async def made(shared: Guest, project: Path) -> str:
    """A session of this project with a branch, a revision, a long thought and one that would steer a terminal."""
    async with STDIO.connect(shared, cwd=str(project)) as client:
        made = (await client.init("start_new", title=f"Orders {STEERING}", tags=["billing"]))["session"]["id"]
        await client.think("orders are charged twice")
        await client.think("retry without a key", branchId="key", branchFromThought=1)
        await client.think("exactly those with two attempts", revisesThought=1)
        await client.think(LONG)
        await client.think(f"then {STEERING}")
    return str(made)


async def test_sessions_are_listed_in_a_table_and_as_json(shared: Guest, project: Path, made: str) -> None:
    here = ("--project", str(project))
    table = shared.run("sessions", "list", *here)
    assert table.returncode == 0, table.stderr
    heading, row = table.stdout.splitlines()
    assert heading.split() == ["ID", "UPDATED", "THOUGHTS", "STATE", "TITLE"]
    assert row.startswith(made[:8])
    assert "Orders" in row
    (listed,) = json.loads(shared.run("sessions", "list", *here, "--json").stdout)
    assert (listed["id"], listed["thoughtCount"]) == (made, 5)
    assert made[:8] in shared.run("sessions", "list", "--all", "--limit", "10000").stdout
    empty = shared.run("sessions", "list", "--project", str(project.parent / "nothing"))
    assert (empty.returncode, "--all" in empty.stdout) == (1, True)


async def test_a_session_is_shown_as_a_tree_or_with_every_thought_whole(
    shared: Guest, project: Path, made: str
) -> None:
    tree = shared.run("sessions", "show", made[:12]).stdout
    assert "branch key" in tree
    assert "(revises 1) exactly those" in tree
    newest = shared.run("sessions", "show", "--project", str(project), "--text")
    assert newest.returncode == 0, newest.stderr
    assert "Thought 2, branch key from 1" in newest.stdout
    assert f"  | {LONG}\n" in newest.stdout
    found = json.loads(shared.run("sessions", "show", made, "--text", "--json").stdout)
    assert [thought["thoughtNumber"] for thought in found["thoughts"]] == [1, 2, 3, 4, 5]
    assert found["thoughts"][3]["thought"] == LONG
    unknown = shared.run("sessions", "show", "zzzz")
    assert (unknown.returncode, "sessions list" in unknown.stderr) == (1, True)


async def test_sessions_are_searched_and_exported(shared: Guest, project: Path, made: str, tmp_path: Path) -> None:
    here = ("--project", str(project))
    found = shared.run("sessions", "search", "charged twice", *here)
    assert found.returncode == 0, found.stderr
    assert "thought 1: orders are **charged twice**" in found.stdout
    nothing = shared.run("sessions", "search", "twice charged", *here)
    assert nothing.returncode == 1
    assert "leave the quotes out" in nothing.stdout
    target = tmp_path / "notes.md"
    assert shared.run("sessions", "export", made, "-o", str(target)).returncode == 0
    assert LONG in target.read_text()
    again = shared.run("sessions", "export", made, "-o", str(target))
    assert again.returncode == 1, "no file is written over"
    document = json.loads(shared.run("sessions", "export", "--format", "json", *here).stdout)
    assert len(document["thoughts"]) == 5
    assert shared.run("sessions", "export", made, "--format", "mermaid").stdout.startswith("graph TD\n")


@pytest.mark.parametrize(
    "action", [["list"], ["show"], ["show", "--text"], ["search", "then"], ["export"]], ids=" ".join
)
async def test_nothing_that_an_agent_thought_steers_the_terminal(
    shared_embedded: Guest, project: Path, action: list[str]
) -> None:
    async with STDIO.connect(shared_embedded, cwd=str(project)) as client:
        await client.init("start_new", title=f"Orders {STEERING}")
        await client.think(f"then {STEERING}")
    shown = shared_embedded.at_terminal("sessions", *action, "--project", str(project))
    assert shown.returncode == 0, shown.stdout
    assert not {"\x1b", "\x07", "\r"} & set(shown.stdout.replace("\x1b[1m", "").replace("\x1b[0m", ""))  # our headings
    if action != ["export"]:
        assert not any(line.startswith(("forged", "line")) for line in shown.stdout.splitlines())
