"""What Holdfast adds to a turn of Claude Code: the same turns through a team and straight through the SDK."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
import uuid
from pathlib import Path
from typing import Any

from tests.agents.scripted_model import ScriptedModel, text

from bench.report import Effort, Progress, Row, milliseconds
from bench.served import RELAY, Served
from bench.stdio import StdioServer
from bench.workshop import scratch

WARM_TARGET_MS = 10.0
NEW_TARGET = 1.2
SETTLE_SECONDS = 0.7
"""An agent tidies up after its first turn; that must not fall into the other's time."""
ANSWER = "A short answer."


def environment(model: ScriptedModel, config: Path) -> dict[str, str]:
    """What both agents get."""
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "sk-test",
        "CLAUDE_CONFIG_DIR": str(config),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }


class Direct:
    """Claude Code through the SDK alone."""

    def __init__(self, project: Path, env: dict[str, str]) -> None:
        from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

        self._client = ClaudeSDKClient(
            ClaudeAgentOptions(
                cwd=project,
                env=env,
                session_id=str(uuid.uuid4()),
                system_prompt={"type": "preset", "preset": "claude_code"},
            )
        )

    async def turn(self) -> None:
        from claude_agent_sdk import ResultMessage

        await self._client.query("What is the answer?")
        async for message in self._client.receive_response():
            if isinstance(message, ResultMessage) and message.is_error:
                raise RuntimeError(f"the turn failed: {message.result}")

    async def connect(self) -> None:
        await self._client.connect()

    async def close(self) -> None:
        await self._client.disconnect()


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """First turns and warm turns, in turn with the SDK's own."""
    with scratch() as place, ScriptedModel(lambda request: text(ANSWER)) as model:
        home, project = place / "home", place / "project"
        home.mkdir()
        project.mkdir()
        env = environment(model, place / "claude")
        team: dict[str, Any] = {"project": str(project), "env": env}
        settings = {"maxProcesses": effort.pairs + 2}
        (home / "teams.json").write_text(json.dumps({"settings": settings, "teams": {"backend": team}}))
        with Served(home) as daemon, StdioServer(RELAY, daemon.env, place) as relay:
            relay.initialize()
            return asyncio.run(_compare(relay, project, env, effort, progress))


async def _compare(
    relay: StdioServer, project: Path, env: dict[str, str], effort: Effort, progress: Progress
) -> list[Row]:
    ours_first, theirs_first, ours_warm, theirs_warm = [], [], [], []

    def ask(thread: str) -> float:
        question = {"team": "backend", "question": "What is the answer?", "threadId": thread, "timeout": 60_000}
        return relay.timed_call("teams_ask", question)

    for number in range(effort.pairs):
        direct = Direct(project, env)
        await asyncio.sleep(SETTLE_SECONDS)
        began = time.perf_counter()
        await direct.connect()
        await direct.turn()
        theirs_first.append(time.perf_counter() - began)
        await asyncio.sleep(SETTLE_SECONDS)
        ours_first.append(await asyncio.to_thread(ask, f"pair-{number}"))
        if number + 1 < effort.pairs:
            await direct.close()
        progress("first turns", number + 1, effort.pairs)
    for number in range(effort.turns):
        began = time.perf_counter()
        await direct.turn()
        theirs_warm.append(time.perf_counter() - began)
        ours_warm.append(await asyncio.to_thread(ask, f"pair-{effort.pairs - 1}"))
        progress("warm turns", number + 1, effort.turns)
    await direct.close()
    # Each ask beside the turn right before it: the machine's moods are in both.
    added = statistics.median(ours - theirs for ours, theirs in zip(ours_warm, theirs_warm, strict=True)) * 1000
    return [
        Row(
            f"warm ask of a team, p50 of {effort.turns}: what it adds to a turn",
            milliseconds(statistics.median(ours_warm)),
            f"{milliseconds(statistics.median(theirs_warm))} (SDK alone)",
            value=added,
            target=WARM_TARGET_MS,
            unit="ms",
            samples={"holdfast": ours_warm, "sdk": theirs_warm},
        ),
        Row(
            f"first ask of a new pair, median of {effort.pairs}",
            milliseconds(statistics.median(ours_first)),
            f"{milliseconds(statistics.median(theirs_first))} (SDK alone)",
            value=statistics.median(ours / theirs for ours, theirs in zip(ours_first, theirs_first, strict=True)),
            target=NEW_TARGET,
            samples={"holdfast": ours_first, "sdk": theirs_first},
        ),
    ]
