"""Every tool and operation, called so that it takes effect."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.contract.wire_world import Json, Life, Relayed, World

from holdfast.teams.service import Teams

Prepare = Callable[[World, Life, Relayed], Awaitable[Json]]
"""Brings about a state in which the call takes effect; returns its arguments."""

CASES: dict[tuple[str, str], Prepare] = {}
TIMEOUT_MS = 60_000


def case(tool: str, operation: str = "") -> Callable[[Prepare], Prepare]:
    """Register how a tool, or an operation of one, is called with effect; words after it name a form of it."""

    def register(prepare: Prepare) -> Prepare:
        assert (tool, operation) not in CASES
        CASES[tool, operation] = prepare
        return prepare

    return register


def simple(tool: str, operation: str = "", **arguments: Any) -> None:
    """Register a call that takes effect in a session with two thoughts."""

    async def prepare(world: World, life: Life, caller: Relayed) -> Json:
        await _think(caller, "first")
        await _think(caller, "second")
        return {**({"operation": operation} if operation else {}), **arguments}

    case(tool, operation)(prepare)


# -- reasoning --------------------------------------------------------------------------------------------------------


async def _think(caller: Relayed, text: str) -> Json:
    return await caller.use("thought", thought=text, nextThoughtNeeded=True)


async def begun_session(caller: Relayed) -> str:
    return str((await _think(caller, "begun"))["sessionId"])


simple("thought", thought="third", nextThoughtNeeded=True, branchId="b", branchFromThought=1)
simple("init", "get_state")
simple("init", "list_roots")
simple("init", "start_new", title="Another", tags=["a"])
simple("init", "list_sessions")
simple("session", "list")
simple("session", "get")
simple("session", "search", query="first")
simple("session", "export")
simple("session", "analyze")
simple("session", "rename", title="Renamed")
simple("session", "tag", tags=["x", "y"])
simple("session", "pin")
simple("session", "archive")
simple("resume")


@case("init", "bind_root")
async def _bind_root(world: World, life: Life, caller: Relayed) -> Json:
    await begun_session(caller)
    return {"operation": "bind_root", "mcpRootUri": world.other.as_uri()}


@case("init", "load_context")
async def _load_context(world: World, life: Life, caller: Relayed) -> Json:
    made = await begun_session(caller)
    await caller.use("init", operation="start_new", title="Another")
    return {"operation": "load_context", "sessionId": made}


@case("session", "unpin")
async def _unpin(world: World, life: Life, caller: Relayed) -> Json:
    await begun_session(caller)
    await caller.use("session", operation="pin")
    return {"operation": "unpin"}


@case("session", "restore")
async def _restore(world: World, life: Life, caller: Relayed) -> Json:
    made = await begun_session(caller)
    await caller.use("session", operation="delete", sessionId=made, confirm=made)
    return {"operation": "restore", "sessionId": made}


@case("session", "link")
async def _link(world: World, life: Life, caller: Relayed) -> Json:
    made = await begun_session(caller)
    await caller.use("init", operation="start_new", title="Another")
    return {"operation": "link", "linkTo": made}


@case("session", "link to a root")
async def _link_root(world: World, life: Life, caller: Relayed) -> Json:
    made = await begun_session(caller)
    return {"operation": "link", "sessionId": made, "mcpRootUri": world.other.as_uri()}


@case("session", "delete")
async def _delete(world: World, life: Life, caller: Relayed) -> Json:
    made = await begun_session(caller)
    return {"operation": "delete", "sessionId": made, "confirm": made}


# -- connections ------------------------------------------------------------------------------------------------------


@case("reconnect_session")
async def _reconnect(world: World, life: Life, caller: Relayed) -> Json:
    async with life.relay("earlier", world.project.path) as earlier:
        made = (await earlier.use("init", operation="start_new", title="Mine"))["connection"]
    return {"session_id": made["session_id"], "reconnect_token": made["reconnect_token"]}


# -- teams ------------------------------------------------------------------------------------------------------------

PAIR = {"team": "theirs", "fromTeam": "mine"}


async def _ask(life: Life, caller: Relayed) -> str:
    """A conversation that has begun; the id of its ask."""
    reply = await caller.use("teams_ask", team="theirs", question="ping", timeout=TIMEOUT_MS)
    assert reply["status"] == "answered", reply
    await at_rest(life, reply["askId"])
    return str(reply["askId"])


async def at_rest(life: Life, ask_id: str) -> None:
    """Wait until the agent's process was given back after the answer."""
    runner = life.app.service(Teams)._runner
    async with asyncio.timeout(TIMEOUT_MS / 1000):
        while runner.works_on(ask_id) or any(slot.busy for slot in runner.pool.slots):  # noqa: ASYNC110 - polled
            await asyncio.sleep(0.01)


def conversation(operation: str, **arguments: Any) -> None:
    """Register an operation on a conversation that has begun."""

    async def prepare(world: World, life: Life, caller: Relayed) -> Json:
        await _ask(life, caller)
        return {"operation": operation, **PAIR, **arguments}

    case("teams_session", operation)(prepare)


conversation("history")
conversation("compact")
conversation("fork", newThreadId="copy")
conversation("archive", deleteFiles=True)
conversation("reset")
conversation("list")
simple("teams_ask", team="theirs", question="Which port?", timeout=TIMEOUT_MS)
simple("teams_send_message", toTeam="theirs", message="Which port?", timeout=TIMEOUT_MS)
simple("teams_notify", toTeam="theirs", message="The port is 80.")
simple("teams_status")


@case("teams_session", "result")
async def _result(world: World, life: Life, caller: Relayed) -> Json:
    return {"operation": "result", "askId": await _ask(life, caller)}


@case("teams_session", "wait")
async def _wait(world: World, life: Life, caller: Relayed) -> Json:
    return {"operation": "wait", "askId": await _ask(life, caller)}


@case("teams_session", "cancel")
async def _cancel(world: World, life: Life, caller: Relayed) -> Json:
    await caller.use("teams_send_message", toTeam="theirs", message="sleep 30", waitForResponse=False)
    waiting = await caller.use("teams_send_message", toTeam="theirs", message="never", waitForResponse=False)
    return {"operation": "cancel", "askId": waiting["askId"]}


@case("teams_session", "restore")
async def _restore_conversation(world: World, life: Life, caller: Relayed) -> Json:
    await _ask(life, caller)
    await caller.use("teams_session", operation="archive", **PAIR)
    return {"operation": "restore", **PAIR}


# -- protocol ---------------------------------------------------------------------------------------------------------


async def start_run(world: World, caller: Relayed) -> None:
    await caller.use("session_start", objective="Try it")


async def read_first(world: World, caller: Relayed) -> None:
    evidence = f"README.md {world.project.sha256('README.md')}"
    await caller.use("record_evidence", phase="CONTEXT_RETRIEVAL", evidence_type="content_hash", evidence=evidence)


simple("session_start", objective="Try it")


@case("validate_gate")
async def _validate(world: World, life: Life, caller: Relayed) -> Json:
    await start_run(world, caller)
    await read_first(world, caller)
    return {"phase": "CONTEXT_RETRIEVAL"}


@case("record_evidence")
async def _record(world: World, life: Life, caller: Relayed) -> Json:
    await start_run(world, caller)
    evidence = f"README.md {world.project.sha256('README.md')}"
    return {"phase": "CONTEXT_RETRIEVAL", "evidence_type": "content_hash", "evidence": evidence}


@case("advance_phase")
async def _advance(world: World, life: Life, caller: Relayed) -> Json:
    await start_run(world, caller)
    await read_first(world, caller)
    return {}


@case("session_end")
async def _end(world: World, life: Life, caller: Relayed) -> Json:
    await start_run(world, caller)
    await read_first(world, caller)
    world.project.write("code.py", "print('work')\n")
    world.project.commit()
    return {"summary": "Tried.", "key_decisions": ["None"]}


@case("get_blocked_reason")
async def _blocked(world: World, life: Life, caller: Relayed) -> Json:
    await start_run(world, caller)
    return {}


# -- bridge -----------------------------------------------------------------------------------------------------------


async def queued(caller: Relayed, *texts: str, **more: Any) -> list[str]:
    return [(await caller.use("send_message", target="mine", message=text, **more))["id"] for text in texts]


simple("send_message", target="mine", message="Look at this.")
simple("save_task", current_task="Mend it", last_completed_step=2, pending_messages=["m"])
simple("queue_status")


@case("pull_updates")
async def _pull(world: World, life: Life, caller: Relayed) -> Json:
    await caller.use("save_task", current_task="Mend it")
    return {"target": "mine"}


@case("take_message")
async def _take(world: World, life: Life, caller: Relayed) -> Json:
    await queued(caller, "one", "two")
    return {}


@case("finish_message")
async def _finish_later(world: World, life: Life, caller: Relayed) -> Json:
    await queued(caller, "one", "two")
    return {"id": (await caller.use("take_message"))["id"], "outcome": "later"}


@case("finish_message", " cancelled")
async def _cancel_message(world: World, life: Life, caller: Relayed) -> Json:
    one, _ = await queued(caller, "one", "two")
    return {"id": one, "outcome": "cancelled"}


@case("send_message", " edited")
async def _edit_message(world: World, life: Life, caller: Relayed) -> Json:
    one, _ = await queued(caller, "one", "two")
    return {"target": "mine", "message": "one, but better", "replaces": one, "priority": "urgent"}
