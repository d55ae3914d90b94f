"""Somebody who has a phone and nothing else follows docs/bridge.md, with the real Claude Code, to a first message."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.agents.scripted_model import ScriptedModel, steps, text
from tests.agents.test_newcomer import LIMIT, ROOT, Newcomer
from tests.bot_api import TOKEN, bot_api
from tests.installation import kill_all, run_at_terminal

pytestmark = pytest.mark.anyio

SECTION = "## From nothing to a first message from your phone"
PHONE = 12345
"""The number of the chat and of its owner, which the document has too."""
QUESTION, ANSWER = "Which services run here?", "DNS and mail."


def documented() -> list[str]:
    """The commands of the section, in order."""
    section = (ROOT / "docs" / "bridge.md").read_text().split(f"{SECTION}\n")[1].split("\n## ")[0]
    assert QUESTION in section
    blocks = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip()]


async def shown(seen: Callable[[], Any]) -> None:
    async with asyncio.timeout(LIMIT):
        while not seen():  # noqa: ASYNC110 - polled
            await asyncio.sleep(0.05)


@pytest.mark.timeout(1200)
@pytest.mark.early
async def test_the_commands_of_the_document_lead_to_a_first_message_from_a_phone(tmp_path: Path) -> None:
    install, add, init, serve, link, queue, pull = documented()
    newcomer = Newcomer(tmp_path)
    newcomer.project = newcomer.home / "homelab"
    newcomer.project.mkdir()
    answers = steps(text(ANSWER))
    try:
        async with bot_api() as api:
            with ScriptedModel(answers) as model:
                more = {
                    "HOLDFAST_TELEGRAM_API": api.url,
                    "ANTHROPIC_BASE_URL": model.url,
                    "ANTHROPIC_API_KEY": "sk-test",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                    "DISABLE_AUTOUPDATER": "1",
                    "IS_SANDBOX": "1",
                }
                await asyncio.to_thread(newcomer.run, f"git clone -q {ROOT} holdfast", newcomer.home)
                await asyncio.to_thread(newcomer.run, install, newcomer.clone)
                await asyncio.to_thread(newcomer.run, add, newcomer.home)
                assert "Registering the MCP server" in await asyncio.to_thread(newcomer.run, init, newcomer.home)
                listed = await asyncio.to_thread(newcomer.run, "claude mcp get holdfast", newcomer.project)
                assert "Scope: Local config" in listed, listed
                assert "123456:AB…" in serve
                daemon = subprocess.Popen(
                    ["sh", "-c", f"exec env {serve.replace('123456:AB…', TOKEN)}"],
                    cwd=newcomer.home,
                    env=newcomer.environment(**more),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                )
                await shown(lambda: daemon.poll() is not None or "getupdates" in api.calls)
                assert daemon.poll() is None
                api.write("Hello?", chat=PHONE, user=PHONE)
                await shown(lambda: api.sent)
                assert api.sent[0].text.endswith(link.replace("homelab", "TEAM"))
                linked = await asyncio.to_thread(run_at_terminal, ["sh", "-c", link], newcomer.environment())
                assert linked.returncode == 0, linked.stdout
                question = api.write(QUESTION, chat=PHONE, user=PHONE)
                await shown(lambda: api.reacted(question)[-1:] == ["👍"])
                replies = [sent.text for sent in api.sent if sent.reply_to == question]
                assert replies == [ANSWER]
                assert QUESTION in model.requests[0].text
                assert (
                    (await asyncio.to_thread(newcomer.run, queue, newcomer.home)).splitlines()[1].startswith("homelab")
                )
                told = await asyncio.to_thread(newcomer.run, pull, newcomer.home)
                assert f"    > {QUESTION}\n    {ANSWER}\n" in told
                assert api.violations == []
                await asyncio.to_thread(newcomer.run, "holdfast stop", newcomer.home)
    finally:
        kill_all(newcomer.processes())
        shutil.rmtree(newcomer.home, ignore_errors=True)
