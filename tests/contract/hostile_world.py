"""A world in which every name and text that comes from outside is an attack, each with a canary of its own."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.attacks import CANARY
from tests.contract.conftest import Place
from tests.contract.repetition_cases import TIMEOUT_MS
from tests.contract.wire_world import Json, Life, Relayed, World, new_world
from tests.repository import Repository
from tests.transcripts import Transcript

from holdfast.bridge import hooks
from holdfast.bridge.service import Bridge
from holdfast.hooks.dispatch import HookContext
from holdfast.identity.caller import Transport
from holdfast.identity.senders import identify_sender
from holdfast.store.loss_notices import LossNotices

MAX_NAME = 200
"""Bytes of a file's name."""


@dataclass
class Hostile:
    """The attack as each field holds it, and the services that it is planted in."""

    attack: str
    world: World
    life: Life
    transcript: Path
    mine: Relayed
    theirs: Relayed

    def of(self, field: str, most: int = 10_000) -> str:
        """The attack in a field."""
        return planted(self.attack, field)[:most]

    async def hook(self, event: str, session: str, *, cwd: Path | None = None, **more: object) -> Json:
        """What a hook prints."""
        payload = {"session_id": session, "cwd": str(cwd or self.world.project.path), "hook_event_name": event, **more}
        told = HookContext("1", managed=False, briefing="full")
        reply = await self.life.app.hooks.handle(event, told, json.dumps(payload).encode())
        return dict(json.loads(reply.stdout)) if reply.stdout else {}

    async def send(self, field: str, sender: str, **more: Any) -> None:
        """A message for this project, whose sender's name is the attack."""
        await self.life.app.service(Bridge).send("mine", f"{self.of(field)} {field}", sender=sender, **more)


def planted(attack: str, field: str) -> str:
    """An attack with the canary of a field."""
    return attack.replace(CANARY, f"{CANARY}.{field}.")


def file_name(attack: str, field: str) -> str:
    """An attack as the name of a file: any characters but two, and not too many."""
    text = planted(attack, field).replace("/", "|")
    return text.encode()[:MAX_NAME].decode(errors="ignore")


def directory_name(attack: str) -> str:
    """An attack as the name of a project's directory; no root or team has control characters in it."""
    name = file_name(attack, "directory")
    return "".join("\u2028" if unicodedata.category(char) == "Cc" else char for char in name)


def branch_name(attack: str) -> str:
    """An attack as git takes it for the name of a branch: no space, no bracket, but other ends of lines."""
    text = planted(attack, "branch").replace("\n", "\u2028").replace(" ", "\xa0")
    kept = "".join(char if char.isalnum() or ord(char) > 127 or char in "-_.'\"" else "-" for char in text)
    return f"b\u2028{kept[:60]}".rstrip(".-").replace("..", ".")


@asynccontextmanager
async def hostile_world(place: Place, attack: str, folder: Path) -> AsyncIterator[Hostile]:
    """Everything that can be hostile before an agent is told anything."""
    with patch.object(hooks, "WRITTEN_S", 0.0):  # no agent writes down here what it was told
        async with _hostile_world(place, attack, folder) as world:
            yield world


@asynccontextmanager
async def _hostile_world(place: Place, attack: str, folder: Path) -> AsyncIterator[Hostile]:
    team = {"project": str(place.home), "agent": "echo", "description": planted(attack, "description")[:200]}
    odd = {planted(attack, "team")[:60]: team, "plain": team}
    async with new_world(place, directory_name(attack), **odd) as world, world.working_life() as life:
        project = world.project
        project.write(file_name(attack, "file"), "x\n")
        project.write(f".serena/memories/{file_name(attack, 'memory')}.md", "x\n")
        project.write(".holdfast/protocol.toml", protocol_settings(planted(attack, "recovery")))
        project.commit(planted(attack, "commit"))
        project.git("checkout", "-q", "-b", branch_name(attack))
        faulty = Repository(world.other)
        faulty.write(".holdfast/protocol.toml", f"{json.dumps(planted(attack, 'setting')[:60])} = 1\n")
        path = _transcript(attack, project.path).write(folder)
        LossNotices(world.home).record(0, "damage", [planted(attack, "loss")])
        client = planted(attack, "client")[:100]
        async with (
            life.relay("mine", project.path, "old", client=client) as mine,
            life.relay("theirs", world.other) as theirs,
        ):
            hostile = Hostile(attack, world, life, path, mine, theirs)
            await hostile.hook("SessionStart", "old", source="startup", transcript_path=str(path))
            await _said(hostile)
            yield hostile


async def _said(hostile: Hostile) -> None:
    """What agents and others said before."""
    mine, theirs, of = hostile.mine, hostile.theirs, hostile.of
    await mine.use("init", operation="start_new", title=of("title", 200), tags=[of("tag", 90)], domain=of("domain", 90))
    await mine.use("thought", thought=of("thought"), nextThoughtNeeded=True)
    await mine.use("thought", thought=of("thought"), nextThoughtNeeded=True, branchId="side", branchFromThought=1)
    step, pending = of("step", 1_000), [of("pending", 100)]
    await mine.use("save_task", current_task=of("task", 1_000), last_completed_step=step, pending_messages=pending)
    await theirs.use("send_message", target="mine", message=of("message"), priority="urgent")
    await theirs.use("teams_notify", toTeam="mine", message=of("notice"))
    key = identify_sender(Transport.HTTP, key=of("label", 100))
    await hostile.send("labelled", key.label)
    signer = f'an archive of {of("machine", 60)}, adopted; there from "{of("signer", 60)}"'
    await hostile.send("adopted", signer)
    answered = await theirs.use("teams_ask", team="mine", question=of("question"), timeout=TIMEOUT_MS)
    assert answered["status"] == "answered", answered


def protocol_settings(recovery: str) -> str:
    """A project's protocol.toml with a step of its own words."""
    gate = f"[gates.CONTEXT_RETRIEVAL]\nrecovery = [{json.dumps(recovery)}]\n"
    return f'protocol = "simple"\nenforcement = "warn"\n{gate}'


def _transcript(attack: str, project: Path) -> Transcript:
    transcript = Transcript(project, branch=branch_name(attack))
    words = planted(attack, "transcript")
    transcript.ask(words)
    transcript.fail(f"echo {words}", words)
    subject = " ".join(planted(attack, "commit").split())
    transcript.run("Bash", {"command": "git commit"}, f"[main abc1234] {subject}\n 1 file changed, 1 insertion(+)")
    transcript.edit(f"{project}/{file_name(attack, 'edited')}")
    transcript.say(words, stop_reason=None)
    return transcript
