"""Limits of a managed agent: Holdfast's data, its own settings, and what an untrusted project brings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.agents.agent_world import new_id, play, say, world
from tests.agents.scripted_model import Reply, Request, steps, text, tool_use
from tests.agents.teams_world import World as TeamsWorld
from tests.agents.teams_world import ask, own_world
from tests.installation import wait_until
from tests.process.agent import Agent

TOOLS = ("Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep")


@pytest.mark.parametrize("skip", [False, True], ids=["allowed tools", "skipped permissions"])
def test_file_tools_reach_neither_holdfasts_data_nor_the_agents_own_settings(tmp_path: Path, skip: bool) -> None:
    place = tmp_path / "place"
    data, config, project = place / "data", place / "claude", place / "project"
    link, hard_link = project / "link", tmp_path / "hard-link"
    forbidden = [
        data / "teams.json",
        data / "new" / "file",
        link / "teams.json",
        config / "settings.json",
        config / ".claude.json",
        project / ".claude" / "settings.local.json",
        project / ".mcp.json",
        hard_link,
        project / ".." / "data" / "teams.json",
    ]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("Write", {"file_path": str(path), "content": "{}"}) for path in forbidden
    ]
    for path in (data / "key", link / "key", hard_link, Path("../data/key"), Path("/proc/self/environ")):
        calls.append(("Read", {"file_path": str(path)}))
    for path in (place, data, link, hard_link):
        calls.append(("Grep", {"pattern": "owners", "path": str(path), "output_mode": "content"}))
    calls.append(("Grep", {"pattern": "owners", "path": str(place), "output_mode": "content", "glob": "*key*"}))
    calls += [("Glob", {"pattern": pattern}) for pattern in (f"{data}/*", "../data/*", "link/*")]
    calls.append(("Edit", {"file_path": str(hard_link), "old_string": "owners", "new_string": "agents"}))
    notebook = {
        "notebook_path": str(data / "new.ipynb"),
        "new_source": "{}",
        "edit_mode": "insert",
        "cell_type": "code",
    }
    calls.append(("NotebookEdit", notebook))
    calls.append(("Write", {"file_path": str(project / "mine.txt"), "content": "allowed"}))

    async def scenario() -> None:
        spec = made.spec(allowed_tools=TOOLS, skip_permissions=skip)
        session = await made.agent().open(spec, new_id(), resume=False)
        assert (await say(session, "go")).text == "done"
        await session.close()
        assert made.model is not None
        told = "\n".join(result.text for request in made.model.requests for result in request.tool_results)
        assert len(told.splitlines()) >= len(calls), "every call was tried"
        assert "the-owners-key" not in told and "HOLDFAST_" not in told, "nothing of it was read"
        assert "machine-of-the-owner" not in told, "nor listed"
        assert (data / "key").read_text() == "the-owners-key"
        assert (project / "mine.txt").read_text() == "allowed"
        assert not [path for path in forbidden if path.exists() and path.read_text() == "{}"]

    with world("claude", place, steps(*(tool_use(*call) for call in calls), text("done"))) as made:
        data.mkdir(parents=True)
        (data / "key").write_text("the-owners-key")
        (data / "machine-of-the-owner").touch()
        project.mkdir()
        hard_link.hardlink_to(data / "key")
        link.symlink_to(data)
        play(made, scenario)


def _hostile(project: Path, marks: Path) -> None:
    """Give a project a hook and an MCP server that leave a mark when they run."""
    hook = {"type": "command", "command": f"touch {marks / 'hook'}"}
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text(
        json.dumps({"hooks": {"SessionStart": [{"hooks": [hook]}]}, "enableAllProjectMcpServers": True})
    )
    server = {"command": "touch", "args": [str(marks / "server")]}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"evil": server}}))


def test_a_projects_hook_and_servers_run_for_managed_agents_only_once_it_is_trusted(tmp_path: Path) -> None:
    with own_world(tmp_path) as teams, teams.caller() as caller:
        project, marks = teams.project(teams.backend), tmp_path / "marks"
        marks.mkdir()
        _hostile(project, marks)
        (project / "CLAUDE.md").write_text("The tide is at nine.")
        ask(caller, teams.backend, "go")
        assert not list(marks.iterdir())
        assert "not loaded, because its owner has not trusted" in teams.model.requests[-1].text
        assert f"they are not trusted yet. `holdfast trust {project}`" in _settings_off(caller, teams)
        told = teams.holdfast.run("teams", "check").stdout + teams.holdfast.run("doctor").stdout
        assert told.count("they are not trusted yet") == 2 and told.count(f"`holdfast trust {project}`") == 2, told
        _trust(teams, project)
        assert not _settings_off(caller, teams)
        assert "settings are off" not in teams.holdfast.run("teams", "check").stdout
        teams.lose_agents(caller)
        ask(caller, teams.backend, "go on")
        assert {mark.name for mark in marks.iterdir()} == {"hook", "server"}
        assert "The tide is at nine." in teams.model.requests[-1].text
        for mark in marks.iterdir():
            mark.unlink()
        with (project / ".mcp.json").open("a") as file:
            file.write("\n")
        teams.lose_agents(caller)
        ask(caller, teams.backend, "go on")
        assert not list(marks.iterdir()), "a change asks again"
        assert "changed since they were trusted" in _settings_off(caller, teams)


def test_a_script_that_a_trusted_hook_runs_is_trusted_as_it_was_shown(tmp_path: Path) -> None:
    """An agent that may write files rewrites the scripts; at its next start none of them runs."""
    scripts = (".claude/skills/s/start.sh", "tools/start.sh", "tools/server.sh")
    marks = tmp_path / "marks"

    def script(mark: str) -> str:
        return f"touch {marks}/{mark}-${{0##*/}}\n"

    def rewrites(request: Request) -> Reply:
        done = sum(len(one.tool_results) for one in teams.model.requests)
        if "rewrite" not in request.user_turns[-1] or done == 2 * len(scripts):
            return text("done")
        path = str(teams.project(teams.backend) / scripts[done // 2])
        if done % 2 == 0:
            return tool_use("Read", {"file_path": path})
        return tool_use("Write", {"file_path": path, "content": script("evil")})

    with own_world(tmp_path, rewrites) as teams:
        teams.teams[teams.backend]["allowedTools"] = ["Read", "Write"]
        teams.write()
        project = teams.project(teams.backend)
        marks.mkdir()
        for path in scripts:
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).write_text(script("good"))
        commands = (f"sh {scripts[0]}", f'sh "$CLAUDE_PROJECT_DIR"/{scripts[1]}')
        hooks = [{"hooks": [{"type": "command", "command": command}]} for command in commands]
        settings = {"hooks": {"SessionStart": hooks}, "enableAllProjectMcpServers": True}
        (project / ".claude" / "settings.json").write_text(json.dumps(settings))
        server = {"command": "sh", "args": [scripts[2]]}
        (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"own": server}}))
        shown = teams.holdfast.at_terminal("trust", str(project)).stdout
        assert all(path in shown for path in scripts), shown
        with teams.caller() as caller:
            ask(caller, teams.backend, "rewrite")
            assert {mark.name for mark in marks.iterdir()} == {"good-start.sh", "good-server.sh"}
            # Claude Code itself asks before a write to .claude.
            assert ["evil" in (project / path).read_text() for path in scripts] == [False, True, True]
            teams.lose_agents(caller)
            ask(caller, teams.backend, "go on")
            assert not [mark for mark in marks.iterdir() if mark.name.startswith("evil")]
            assert "not loaded, because its owner has not trusted" in teams.model.requests[-1].text, "told at a resume"


def _settings_off(caller: Agent, teams: TeamsWorld) -> str:
    (shown,) = caller.call("teams_status", team=teams.backend)["teams"]
    return str(shown.get("settings", ""))


def _trust(teams: TeamsWorld, project: Path) -> None:
    done = teams.holdfast.at_terminal("trust", str(project))
    assert done.returncode == 0 and "touch" in done.stdout, done.stdout


def test_rights_that_somebody_wrote_into_teams_json_count_once_a_person_confirmed_them(tmp_path: Path) -> None:
    made = tmp_path / "made"

    def touches(request: Request) -> Reply:
        return text("done") if request.tool_results else tool_use("Bash", {"command": f"touch {made}"})

    with own_world(tmp_path, touches) as teams:
        teams.holdfast.settings |= teams.teams[teams.backend]["env"]  # what is not confirmed of a team has no env
        for team in teams.teams.values():
            del team["env"]
        teams.write()
        with teams.caller() as caller:
            ask(caller, teams.backend, "go")
            teams.teams[teams.backend]["skipPermissions"] = True
            (teams.holdfast.home / "teams.json").write_text(json.dumps({"teams": teams.teams}))
            wait_until(lambda: "holdfast teams confirm" in _faults(caller), "the change is told")
            assert "holdfast teams confirm" in teams.holdfast.run("status").stdout
            teams.lose_agents(caller)
            ask(caller, teams.backend, "go on")
            assert not made.exists()
            for env in ({}, {"HOLDFAST_MANAGED": "1"}):
                assert teams.holdfast.run("teams", "confirm", stdin="yes\n", env=env).returncode != 0
            _confirm_in_a_terminal(teams)
            wait_until(lambda: not _faults(caller), "the daemon has seen the word")
            teams.lose_agents(caller)
            ask(caller, teams.backend, "go on")
            assert made.exists()


def _faults(caller: Agent) -> str:
    return " ".join(caller.call("teams_status").get("faults") or ())


def _confirm_in_a_terminal(teams: TeamsWorld) -> None:
    done = teams.holdfast.at_terminal("teams", "confirm")
    assert "skipPermissions: true" in done.stdout and "Confirmed." in done.stdout, done.stdout


def test_a_project_without_settings_needs_no_trust_for_its_claude_md(world: TeamsWorld) -> None:
    (world.project(world.backend) / "CLAUDE.md").write_text("The tide is at nine.")
    with world.caller() as caller:
        ask(caller, world.backend, "go")
        assert "The tide is at nine." in world.model.requests[-1].text
