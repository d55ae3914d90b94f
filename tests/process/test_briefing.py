"""The briefing from outside: by every transport, by the hook after a reboot, in a terminal."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path

import psutil
import pytest
from mcp import types
from tests.installation import HOLDFAST, Installation
from tests.process.agent import Agent
from tests.process.clients import ENGINES_AND_WAYS, Way
from tests.process.hooks import left_behind, starts
from tests.shared_daemon import Guest


@ENGINES_AND_WAYS
@pytest.mark.anyio
async def test_whoever_asks_is_told_in_every_era_over_every_transport(
    shared: Guest, way: Way, project: Path, tmp_path: Path
) -> None:
    old = left_behind(tmp_path / "transcripts", project)
    starts(shared, project, old)
    async with way.at_work(shared, project) as session:
        told = (await session.call("resume"))["briefing"]
        assert "Mend the fence, north side first." in told and "was cut off" in told
        short = (await session.call("resume", budget=60))["briefing"]
        assert len(short) < len(told)
        read = await session.client.read_resource("holdfast://briefing")
        assert isinstance(read.contents[0], types.TextResourceContents) and "Mend the fence" in read.contents[0].text
        prompt = await session.client.get_prompt("briefing")
        content = prompt.messages[0].content
        assert isinstance(content, types.TextContent) and "Mend the fence" in content.text


def test_after_a_reboot_the_first_session_is_told_all_the_same(
    embedded: Installation, project: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "transcripts"
    starts(embedded, project, left_behind(folder, project))
    with Agent(embedded, project) as agent:
        agent.think("The posts are rotten.")
    embedded.kill_daemon()
    told = starts(embedded, project, folder / f"{uuid.uuid4()}.jsonl")
    assert "Mend the fence" in told["context"] and "The posts are rotten." in told["context"]


def test_who_was_killed_is_told_of_even_before_its_relay_notices(
    shared_embedded: Guest, project: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "transcripts"
    old = left_behind(folder, project)
    told_so = ["env", f"CLAUDE_CODE_SESSION_ID={old.stem}", str(HOLDFAST), "mcp"]
    command = [sys.executable, "-c", "import subprocess, sys; subprocess.call(sys.argv[1:])", *told_so]
    with Agent(shared_embedded, project, command=command) as agent:
        agent.request("tools/list")
        starts(shared_embedded, project, old, agent.process.pid)
        (relay,) = psutil.Process(agent.process.pid).children()
        relay.suspend()
        try:
            beside = starts(shared_embedded, project, folder / f"{uuid.uuid4()}.jsonl")
            assert "Mend the fence" not in beside["context"] and old.stem in beside["context"]
            agent.process.kill()
            agent.process.wait()
            told = starts(shared_embedded, project, folder / f"{uuid.uuid4()}.jsonl")
            assert "Mend the fence" in told["context"]
        finally:
            relay.kill()


def test_with_a_broken_daemon_the_agent_starts_and_the_user_is_told(
    embedded: Installation, project: Path, tmp_path: Path
) -> None:
    embedded.home.mkdir(mode=0o700)
    (embedded.home / "holdfast.db").mkdir()
    embedded.settings["HOLDFAST_HOOK_TIMEOUT"] = "0.5"  # no daemon will come, however long one waits
    told = starts(embedded, project, tmp_path / f"{uuid.uuid4()}.jsonl")
    assert told["context"] == "" and "holdfast doctor" in told["message"]


def test_a_person_sees_what_an_agent_is_told(shared_embedded: Guest, project: Path, tmp_path: Path) -> None:
    nothing = shared_embedded.run("resume", str(project))
    assert nothing.returncode == 0 and "Nothing is known" in nothing.stdout
    old = left_behind(tmp_path / "transcripts", project)
    starts(shared_embedded, project, old)
    assert "Mend the fence, north side first." in shared_embedded.run("resume", str(project)).stdout
    told = json.loads(shared_embedded.run("resume", str(project), "--json").stdout)
    assert told["recovered"] == old.stem and told["items"]
    assert shared_embedded.run("resume", "--budget", "5").returncode == 2
