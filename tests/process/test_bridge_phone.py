"""A phone and an agent, with the daemon between them: each step is heard, whoever is killed meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.bot_api import OWNER, TOKEN, bot_api
from tests.installation import PATIENCE, Installation
from tests.process.agent import Agent

pytestmark = pytest.mark.anyio

CHAT = 12345
STORED, TAKEN, DONE = "👌", "👀", "👍"


async def shown(seen: Callable[[], Any]) -> None:
    """Wait until something shows; a slow machine is no failure."""
    async with asyncio.timeout(2 * PATIENCE):
        while not seen():  # noqa: ASYNC110 - polled
            await asyncio.sleep(0.05)


def write_team(installation: Installation, project: Path, **more: Any) -> None:
    project.mkdir()
    installation.home.mkdir(mode=0o700, exist_ok=True)
    team = {"project": str(project), "delivery": "hook", **more}
    (installation.home / "teams.json").write_text(json.dumps({"teams": {"homelab": team}}))


@pytest.mark.timeout(300)
async def test_a_lone_message_is_heard_of_at_each_step_though_daemon_and_agent_are_killed(
    embedded: Installation, tmp_path: Path
) -> None:
    async with bot_api() as api:
        embedded.settings |= {"HOLDFAST_TELEGRAM_TOKEN": TOKEN, "HOLDFAST_TELEGRAM_API": api.url}
        project = tmp_path / "homelab"
        write_team(embedded, project, chat={"id": CHAT, "allowedUsers": [OWNER]})
        await asyncio.to_thread(embedded.serve)
        number = api.write("Which services run here?", chat=CHAT)
        await shown(lambda: api.sent)
        assert api.texts(str(CHAT)) == ["Queued. No agent is at work there now; it is delivered when one is."]
        assert api.reacted(number) == [STORED]
        killed = await asyncio.to_thread(embedded.kill_daemon)
        await asyncio.to_thread(embedded.serve, another_than=killed)

        def take() -> str:
            with Agent(embedded, project, session="abc") as agent:
                return str(agent.call("take_message")["text"])

        assert "Which services run here?" in await asyncio.to_thread(take)
        await shown(lambda: api.reacted(number)[-1] == TAKEN)

        def finish() -> None:
            with Agent(embedded, project, session="abc") as agent:
                taken = agent.call("take_message")
                agent.call("finish_message", id=taken["id"], outcome="done", reply="DNS and mail.")

        await asyncio.to_thread(finish)
        await shown(lambda: api.reacted(number)[-1] == DONE)
        answers = [sent for sent in api.sent if sent.text == "DNS and mail."]
        assert [sent.reply_to for sent in answers] == [number]
        assert api.violations == []
        await asyncio.to_thread(embedded.run, "stop")


@pytest.mark.timeout(300)
async def test_the_command_that_the_bot_answers_an_unknown_chat_with_links_it(
    embedded: Installation, tmp_path: Path
) -> None:
    async with bot_api() as api:
        embedded.settings |= {"HOLDFAST_TELEGRAM_TOKEN": TOKEN, "HOLDFAST_TELEGRAM_API": api.url}
        write_team(embedded, tmp_path / "homelab")
        await asyncio.to_thread(embedded.serve)
        api.write("Hello?", chat=-100, topic=7)
        await shown(lambda: api.sent)
        command = api.sent[0].text.rpartition("runs: ")[2]
        assert command == f"holdfast bridge chat TEAM -100 --topic 7 --user {OWNER}"
        words = command.replace("TEAM", "homelab").split()[1:]
        by_script = await asyncio.to_thread(embedded.run, *words)
        assert by_script.returncode == 0, by_script.stderr
        assert "once you run `holdfast teams confirm`" in by_script.stdout
        # Whoever is at a terminal confirms what they link, but nothing that somebody else wrote before.
        linked = await asyncio.to_thread(embedded.at_terminal, *words)
        assert "once you run `holdfast teams confirm`" in linked.stdout
        await asyncio.to_thread(embedded.run, "bridge", "chat", "homelab", "--remove")
        linked = await asyncio.to_thread(embedded.at_terminal, *words)
        assert linked.stdout.endswith("The chat -100 is linked to homelab.\n")
        number = api.write("Hello again", chat=-100, topic=7)
        await shown(lambda: api.reacted(number) == [STORED])
        for bad, reason in (
            (("nobody", "1", "--user", "1"), "There is no team nobody"),
            (("homelab", "1"), "--user: is required"),
            (("homelab",), "CHAT: is required"),
            (("homelab", "a b", "--user", "1"), "chat"),
        ):
            refused = await asyncio.to_thread(embedded.run, "bridge", "chat", *bad)
            assert refused.returncode == 1 and reason in refused.stderr
        await asyncio.to_thread(embedded.run, "stop")
