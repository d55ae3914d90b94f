"""What a managed agent gets of the daemon's environment: names on a list, and no secret."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

import psutil
from tests.agents.agent_world import World, family, new_id, play, say
from tests.agents.echo.run import EchoAgent

MARKER = "marker-secret-7f3a"
SECRETS = (
    *("HOLDFAST_DATABASE_URL", "HOLDFAST_TELEGRAM_TOKEN", "HOLDFAST_TELEGRAM_WEBHOOK_SECRET"),
    *("HOLDFAST_WEBHOOK_SECRET", "MCP_SESSION_SECRET", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASS", "NPM_TOKEN"),
)
GIVEN = {name: f"{MARKER}-{name}" for name in SECRETS} | {"LC_MARK": "listed", "HOLDFAST_PASS_ENV": "MARK_A, MARK_B"}
FURTHER = {"MARK_A": "passed-a", "MARK_B": "passed-b", "MARK_C": MARKER}


def test_an_agent_sees_no_secret_of_holdfast_or_of_the_user_in_its_environment(made: World) -> None:
    async def scenario() -> None:
        spec = made.spec(allowed_tools=("Bash",), env={"DB_PASS": "the team's own"})
        session = await made.agent().open(spec, new_id(), resume=False)
        assert session.pid is not None
        for process in family(session.pid):  # the guard's environment is as readable as the agent's own
            assert MARKER not in " ".join(process.environ().values()), process.cmdline()
        said = (await say(session, "run env")).text
        assert MARKER not in said
        for line in ("LC_MARK=listed", "MARK_A=passed-a", "MARK_B=passed-b", "DB_PASS=the team's own"):
            assert line in said
        await session.close()

    with patch.dict(os.environ, GIVEN | FURTHER):
        play(made, scenario)


def test_the_echo_agent_gets_what_every_agent_gets(tmp_path: Path) -> None:
    world = World("echo", tmp_path)

    async def scenario() -> None:
        agent = world.agent()
        assert isinstance(agent, EchoAgent)
        session = await agent.open(world.spec(env={"DB_PASS": "the team's own"}), new_id(), resume=False)
        assert session.pid is not None
        found = psutil.Process(session.pid).environ()
        assert MARKER not in " ".join(found.values())
        assert (found["LC_MARK"], found["MARK_A"], found["DB_PASS"]) == ("listed", "passed-a", "the team's own")
        await session.close()

    with patch.dict(os.environ, GIVEN | FURTHER):
        play(world, scenario)
