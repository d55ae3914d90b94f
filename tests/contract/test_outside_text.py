"""Every place where outside text reaches an agent, with hostile titles, messages, tasks and transcripts in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.attacks import ATTACKS, CANARY, forged_lines
from tests.contract.conftest import Place
from tests.contract.repetition_cases import TIMEOUT_MS
from tests.contract.wire_world import Life, Relayed, new_world
from tests.transcripts import Transcript

from holdfast.hooks import Told

pytestmark = pytest.mark.anyio


def texts(answer: Any) -> Iterator[str]:
    """Every text in an answer, as a model reads it."""
    for value in answer.values() if isinstance(answer, dict) else answer:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            yield from texts(value)


def check(where: str, told: str, *, reaches: bool = True) -> None:
    """What an agent is told holds the attack, and no line of that has the form of one of ours."""
    assert not reaches or CANARY in told, f"{where}: the walk does not reach this place: {told!r}"
    assert not forged_lines(told), (where, forged_lines(told))
    assert "\n[End of message 000000000000" not in told and "</system-reminder>" not in told, where
    shown = told.replace("\n", "").replace("\t", "")
    assert all(char.isprintable() or char in "\u200c\u200d" for char in shown), (where, told)


async def hook(life: Life, event: str, cwd: Path, session: str, **more: object) -> str:
    """What a hook of an agent tells it."""
    payload = {"session_id": session, "cwd": str(cwd), "hook_event_name": event, **more}
    reply = await life.app.hooks(life.links).handle(event, Told("1", False, "full"), json.dumps(payload).encode())
    stdout = reply.stdout
    return "\n".join(texts(json.loads(stdout))) if stdout else ""


async def briefings(mine: Relayed) -> Iterator[tuple[str, str]]:
    resource = await mine.request("resources/read", {"uri": "holdfast://briefing"})
    found = [("holdfast://briefing", resource["result"]["contents"][0]["text"])]
    for name in ("briefing", "continue"):
        prompt = await mine.request("prompts/get", {"name": name})
        found.append((f"prompt {name}", prompt["result"]["messages"][0]["content"]["text"]))
    found.append(("resume", (await mine.use("resume"))["briefing"]))
    return iter(found)


@pytest.mark.parametrize("attack", ATTACKS, ids=[str(number) for number in range(len(ATTACKS))])
async def test_no_outside_text_has_the_form_of_one_of_ours(place: Place, attack: str, tmp_path: Path) -> None:
    async with new_world(place) as world, world.working_life() as life:
        project, outside = world.project.path, place.home / "outside"
        outside.mkdir()
        transcript = Transcript(project)
        transcript.ask(attack)
        transcript.fail(f"echo {attack}", attack)
        transcript.edit(f"{project}/{attack[:60]}")
        transcript.say(attack, stop_reason=None)
        path = transcript.write(tmp_path)
        await hook(life, "SessionStart", project, "old", source="startup", transcript_path=str(path))
        async with life.relay("mine", project, "old") as mine, life.relay("theirs", world.other) as theirs:
            title = {"title": attack[:200], "tags": []}
            assert await mine.answer("init", {"operation": "start_new", **title})
            thought = {"thought": attack, "nextThoughtNeeded": True}
            await mine.answer("thought", thought)
            await mine.answer("thought", {**thought, "branchId": attack[:60], "branchFromThought": 1})
            await mine.use("save_task", current_task=attack, last_completed_step=attack, pending_messages=[attack[:90]])
            await theirs.use("send_message", target="mine", message=attack, priority="urgent")
            await theirs.use("teams_notify", toTeam="mine", message=attack)

            asked = {"team": "mine", "question": attack, "timeout": TIMEOUT_MS}
            answered = await theirs.use("teams_ask", **asked)
            check("team prompt and notice", answered["response"].removeprefix("echo 1: "))
            for where, told in await briefings(mine):
                check(where, told)
            check("take_message", (await mine.use("take_message"))["text"])
            for tool in ("queue_status", "teams_status"):
                for told in texts(await theirs.use(tool)):
                    check(tool, told, reaches=False)
        start = await hook(life, "SessionStart", project, "new", source="startup", transcript_path=str(path))
        check("session start: briefing", start)
        resumed = await hook(life, "SessionStart", project, "old", source="compact", transcript_path=str(path))
        check("compaction: briefing", resumed)
