"""What teams.json may say does something: the echo agent answers, processes are looked at, colors are told."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import psutil
from tests.agents.echo import offered
from tests.installation import PATIENCE, Installation, kill_all, wait_until
from tests.process.agent import Agent


def _echoes(holdfast: Installation) -> list[psutil.Process]:
    """The processes of echo agents that this Holdfast runs."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if any(part.endswith("echo_process.py") for part in command) and str(holdfast.home / "echo") in command:
            found.append(process)
    return found


def test_a_team_with_the_echo_agent_answers_what_it_is_told_and_is_looked_after(
    embedded: Installation, tmp_path: Path
) -> None:
    for name in ("mirror", "asker"):
        (tmp_path / name).mkdir()
    embedded.home.mkdir(mode=0o700)
    embedded.settings |= offered()
    settings = {"healthCheckInterval": 100}
    teams = {
        "mirror": {"project": str(tmp_path / "mirror"), "agent": "echo", "color": "#E91E63"},
        "asker": {"project": str(tmp_path / "asker"), "agent": "echo"},
    }
    (embedded.home / "teams.json").write_text(json.dumps({"settings": settings, "teams": teams}))
    embedded.serve()
    with Agent(embedded, tmp_path / "asker", session="asker") as asker:
        answer = asker.call("teams_ask", team="mirror", question="Is anybody there?", timeout=int(PATIENCE * 1000))
        assert answer["status"] == "answered" and "Is anybody there?" in answer["response"], answer
        assert asker.call("teams_status")["processes"].startswith("1 of ")
        kill_all(_echoes(embedded))
        wait_until(
            lambda: asker.call("teams_status")["processes"].startswith("0 of "),
            "a process that died is forgotten as soon as healthCheckInterval says",
        )
    headers = {"Authorization": f"Bearer {embedded.key()}"}
    told = httpx2.get(f"{embedded.address()}/api/teams", headers=headers, timeout=PATIENCE).json()["teams"]
    assert {one["team"]: one.get("color") for one in told} == {"mirror": "#E91E63", "asker": None}

    kept = embedded.home / "echo"
    assert any("Is anybody there?" in path.read_text() for path in kept.iterdir())
    assert embedded.run("forget", str(tmp_path / "mirror"), "--yes").returncode == 0
    assert not any("Is anybody there?" in path.read_text() for path in kept.iterdir()), "forgotten with the project"
