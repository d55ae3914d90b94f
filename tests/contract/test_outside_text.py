"""Every place where outside text reaches an agent, with an attack in every name and text: it is data there.

The places are listed from the code: a new tool, operation, prompt, resource or hook fails the walk until it is walked.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.attacks import ATTACKS, CANARY, forged_lines, invisible, unquoted_lines
from tests.contract.conftest import Place
from tests.contract.hostile_world import Hostile, file_name, hostile_world
from tests.contract.repetition_cases import TIMEOUT_MS, at_rest
from tests.contract.wire_world import Json, Relayed, new_world

from holdfast.agents.claude.settings import PURPOSES
from holdfast.text.own_lines import has_own_form
from holdfast.text.quoting import MARK
from holdfast.wire.mcp.tools import Tool

pytestmark = pytest.mark.anyio

Outlet = tuple[str, ...]
"""What kind of place it is, its name, and the operation, where there are some."""

DATA = frozenset(
    {
        *("name", "title", "tags", "domain", "thought", "begins", "snippet", "text", "branchId", "root", "mcpRootUri"),
        *("boundRoot", "client", "roots", "fromOtherRoot", "description", "project"),
        *("response", "question", "threadId", "content", "current_task", "from", "id", "message_id"),
        *("objective", "branch", "step", "recovery", "old", "new"),
    }
)
"""Fields of results that hold what somebody wrote, under the seeds' names. All others are Holdfast's own words,
and what they repeat from outside is in quotes."""
TOLD = {("take_message", "text"), ("resume", "briefing")}
"""Fields that are a text for the agent to read as it is."""
DOCUMENTS = ("holdfast://sessions/", "holdfast://protocol/")
"""Resources with headings and lists of their own."""
_LABELLED = re.compile(r"(?:- \*\*[A-Z][A-Za-z ]+\*\*: |\|| {2}- (?=\S)|### )")
"""How a line of a protocol's memories begins in which somebody's words stand, as the seed has it."""

FIELDS = frozenset(
    {
        *("client", "directory", "branch", "file", "commit", "recovery", "setting", "description", "team"),
        *("title", "tag", "domain", "thought", "task", "step", "pending", "message", "notice", "question"),
        *("label", "labelled", "adopted", "signer", "transcript", "edited", "loss", "thread"),
        *("objective", "decision", "notes", "evidence", "argument", "reply", "failure"),
    }
)
"""Every field that an attack is planted in; the walk meets each of them somewhere."""


def fields(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a result, with the name of its field."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield "the name of a field", key
            yield from fields(member, key)
    elif isinstance(value, list):
        for member in value:
            yield from fields(member, name)
    elif isinstance(value, str):
        yield name, value


def check_told(outlet: Outlet, told: str) -> None:
    """A text that an agent reads as it is: outside text in it is marked or quoted, and the other lines are ours."""
    assert not invisible(told), (outlet, told)
    assert not forged_lines(told), (outlet, forged_lines(told))
    document = outlet[1].startswith(DOCUMENTS)
    unquoted = [line for line in unquoted_lines(told) if not (document and _LABELLED.match(line))]
    assert not unquoted, (outlet, unquoted)
    if not document:
        for line in told.splitlines():
            assert not line or line.startswith(MARK.strip()) or has_own_form(line), (outlet, "unknown form", line)


def check_answer(outlet: Outlet, answer: Json) -> str:
    """The answer to a call: an error as one text, a result as one JSON document in which outside text is data."""
    if "error" in answer:
        assert not unquoted_lines(answer["error"]["message"]), (outlet, answer)
        return str(answer["error"]["message"])
    result = answer["result"]
    (block,) = result["content"]
    if result.get("isError"):
        assert "structuredContent" not in result, outlet
        check_told(outlet, block["text"])
        return str(block["text"])
    assert block["type"] == "text" and json.loads(block["text"]) == result["structuredContent"], outlet
    check_result(outlet, result["structuredContent"], block["text"])
    return str(block["text"])


def check_result(outlet: Outlet, result: Json, text: str) -> None:
    # A client shows a model the structured result as JSON of its own making, with as few escapes as JSON allows.
    for shown in (text, json.dumps(result, ensure_ascii=False)):
        assert len(shown.splitlines()) == 1 and not invisible(shown), (outlet, shown)
    for name, value in fields(result):
        if (outlet[1], name) in TOLD:
            check_told(outlet, value)
        elif name not in DATA:
            assert not unquoted_lines(value), (outlet, name, value)


# -- the walk ---------------------------------------------------------------------------------------------------------


async def walk_tools(hostile: Hostile) -> AsyncIterator[tuple[Outlet, Json]]:
    """Every tool and operation, so that it has something to tell."""
    mine, theirs, of, world = hostile.mine, hostile.theirs, hostile.of, hostile.world

    async def call(who: Relayed, tool: str, operation: str = "", **arguments: Any) -> tuple[Outlet, Json]:
        given = {**({"operation": operation} if operation else {}), **arguments}
        return ("tool", tool, operation), await who.answer(tool, given)

    for operation in ("get_state", "list_roots", "list_sessions", "load_context"):
        yield await call(mine, "init", operation)
    found = await mine.use("init", operation="get_state")
    session = found["session"]["id"]
    yield await call(theirs, "init", "load_context", sessionId=session)
    yield await call(mine, "init", "start_new", title=of("title", 200))
    yield await call(theirs, "init", "bind_root", mcpRootUri=f"file://{quote(str(world.project.path))}")
    yield await call(theirs, "init", "bind_root", mcpRootUri=world.other.as_uri())
    yield await call(mine, "init", "load_context", sessionId=session)
    yield await call(mine, "thought", thought=of("thought"), nextThoughtNeeded=True)
    for operation in ("list", "get", "analyze", "pin", "unpin", "archive"):
        yield await call(mine, "session", operation)
    for form in ("markdown", "json", "mermaid"):
        yield await call(mine, "session", "export", format=form)
    yield await call(mine, "session", "search", query=CANARY)
    yield await call(mine, "session", "rename", title=of("title", 200))
    yield await call(mine, "session", "tag", tags=[of("tag", 90)])
    other = (await mine.use("init", operation="start_new", title=of("title", 200)))["session"]["id"]
    yield await call(mine, "session", "link", linkTo=session)
    yield await call(mine, "session", "get")
    yield await call(mine, "session", "delete", sessionId=other, confirm=other)
    yield await call(mine, "session", "restore", sessionId=other)
    yield await call(mine, "resume")
    yield await call(mine, "reconnect_session", session_id=of("argument", 60), reconnect_token=of("argument", 60))

    yield await call(mine, "queue_status")
    while "id" in (taken := await call(mine, "take_message"))[1]["result"]["structuredContent"]:
        yield taken
        taken_id = taken[1]["result"]["structuredContent"]["id"]
        yield await call(mine, "finish_message", id=taken_id, outcome="done", reply=of("reply"))
    yield await call(mine, "save_task", current_task=of("task", 1_000), current_task_id=of("task", 100))
    yield await call(mine, "pull_updates", target="mine")
    yield await call(theirs, "pull_updates", target="mine")
    yield await call(theirs, "send_message", target=of("argument", 60), message=of("message"))

    asked = await call(theirs, "teams_ask", team="mine", question=of("question"), timeout=TIMEOUT_MS)
    yield asked
    failed = await call(theirs, "teams_ask", team="mine", question=f"fail\n{of('failure')}", timeout=TIMEOUT_MS)
    assert failed[1]["result"]["structuredContent"]["status"] == "failed", failed
    yield failed
    ask_id = asked[1]["result"]["structuredContent"]["askId"]
    yield await call(theirs, "teams_notify", toTeam="mine", message=of("notice"))
    sent: Json = {"toTeam": "mine", "message": of("question"), "timeout": TIMEOUT_MS}
    yield await call(theirs, "teams_send_message", **sent, threadId="c4n4ry.thread. ' {}")
    yield await call(theirs, "teams_status")
    for operation in ("result", "wait", "cancel"):
        yield await call(theirs, "teams_session", operation, askId=ask_id)
    await at_rest(hostile.life, ask_id)
    yield await call(theirs, "teams_session", "list")
    pair = {"team": "mine"}
    for operation in ("history", "compact", "archive", "restore", "reset"):
        yield await call(theirs, "teams_session", operation, **pair)
    yield await call(theirs, "teams_ask", team="mine", question=of("question"), timeout=TIMEOUT_MS)
    yield await call(theirs, "teams_session", "fork", **pair, newThreadId="c4n4ry.thread. ' []")
    yield await call(theirs, "teams_session", "fork", **pair, newThreadId="c4n4ry.thread. fork")
    yield await call(theirs, "teams_session", "fork", **pair, newThreadId="c4n4ry.thread. fork")


async def walk_protocol(hostile: Hostile) -> AsyncIterator[tuple[Outlet, Json]]:
    """The tools of a protocol, refused and granted, with resources between them."""
    mine, of, project = hostile.mine, hostile.of, hostile.world.project

    async def call(tool: str, **arguments: Any) -> tuple[Outlet, Json]:
        return ("tool", tool, ""), await mine.answer(tool, arguments)

    objective = of("objective", 1_000)
    yield ("tool", "session_start", ""), await hostile.theirs.answer("session_start", {"objective": objective})
    yield await call("session_start", objective=objective)
    yield await call("session_start", objective=objective)
    yield await call("get_blocked_reason")
    yield await call("validate_gate", phase="ALL")
    yield await call("advance_phase")
    for kind in ("content_hash", "report", "commit", "said"):
        yield await call("record_evidence", phase="CONTEXT_RETRIEVAL", evidence_type=kind, evidence=of("evidence", 900))
    async for told in walk_resources(hostile):
        yield told
    evidence = f"README.md {project.sha256('README.md')}"
    yield await call("record_evidence", phase="CONTEXT_RETRIEVAL", evidence_type="content_hash", evidence=evidence)
    yield await call("advance_phase")
    project.write(f"{file_name(hostile.attack, 'file')}.py", "print('work')\n")
    yield await call("validate_gate", phase="ALL")
    yield await call("session_end", summary=of("notes"))
    project.commit(of("commit"))
    decisions = [of("decision", 900), f"Holdfast: {of('decision', 900)}", f"[STOP: {of('decision', 90)}"]
    ended = await call("session_end", summary=of("notes"), key_decisions=decisions, next_session_notes=of("notes"))
    assert ended[1]["result"]["structuredContent"]["status"] == "COMPLETE", ended
    yield ended


async def walk_resources(hostile: Hostile) -> AsyncIterator[tuple[Outlet, Json]]:
    """Every resource, read; and those that are listed."""
    session = (await hostile.mine.use("init", operation="load_context"))["session"]["id"]
    values = {"id": session, "n": "1"}
    for resource in hostile.life.wire.catalog.resources:
        uri = re.sub(r"\{(\w+)\}", lambda name: values[name[1]], resource.template)
        yield ("resource", resource.template, ""), await hostile.mine.request("resources/read", {"uri": uri})
    wrong = {"uri": f"holdfast://sessions/{session}/thoughts/{quote(hostile.of('argument', 90), safe='')}"}
    yield ("resource", "holdfast://sessions/{id}/thoughts/{n}", ""), await hostile.mine.request("resources/read", wrong)
    yield ("list", "resources/list", ""), await hostile.mine.request("resources/list", {})


async def walk_hooks(hostile: Hostile) -> AsyncIterator[tuple[Outlet, Json]]:
    """Every hook, with messages that come with it."""
    of, hook = hostile.of, hostile.hook
    path: Json = {"transcript_path": str(hostile.transcript)}

    async def call(event: str, session: str, **more: Any) -> tuple[Outlet, Json]:
        return ("hook", event, ""), await hook(event, session, **path, **more)

    await hostile.theirs.use("send_message", target="mine", message=of("message"))
    for source in ("startup", "compact", "resume", "clear"):
        yield await call("SessionStart", f"new-{source}" if source != "compact" else "new-startup", source=source)
    yield ("hook", "SessionStart", ""), await hook("SessionStart", "faulty", cwd=hostile.world.other, source="startup")
    yield await call("UserPromptSubmit", "new-startup", prompt=of("argument"))
    yield await call("Stop", "new-startup", stop_hook_active=False, last_assistant_message=of("reply"))
    await hostile.theirs.use("send_message", target="mine", message=of("message"), priority="urgent")
    yield await call("PostToolUse", "new-startup", tool_name="Bash", tool_input={"command": of("argument")})
    commit = {"command": f"git commit -m '{of('commit', 90)}'"}
    yield await call("PreToolUse", "new-startup", tool_name="Bash", tool_input=commit)
    await hostile.theirs.use("send_message", target="mine", message=of("message"), priority="stop")
    yield await call("PreToolUse", "new-startup", tool_name="Bash", tool_input=commit)
    yield await call("PreCompact", "new-startup")
    yield await call("SessionEnd", "new-startup", reason=of("argument", 90))


def walked(hostile: Hostile) -> set[Outlet]:
    """Every place there is, by the code."""
    catalog = hostile.life.wire.catalog
    tools = {("tool", tool.name, name) for tool in catalog.tools.values() for name in tool.operations or ("",)}
    prompts = {("prompt", name, "") for name in catalog.prompts}
    resources = {("resource", resource.template, "") for resource in catalog.resources}
    hooks = {("hook", hook.event, "") for purpose in PURPOSES.values() for hook in purpose}
    return tools | prompts | resources | hooks | {("list", "resources/list", "")}


WALKS = [*(("sqlite", number) for number in range(len(ATTACKS))), ("postgres", 0), ("postgres", 3)]


@pytest.mark.parametrize(("place", "number"), WALKS, indirect=["place"])
async def test_outside_text_is_data_wherever_an_agent_is_told_it(place: Place, number: int, tmp_path: Path) -> None:
    async with hostile_world(place, ATTACKS[number], tmp_path) as hostile:
        seen: set[Outlet] = set()
        told: list[str] = []
        for name in hostile.life.wire.catalog.prompts:
            prompt = await hostile.mine.request("prompts/get", {"name": name})
            told.append(prompt["result"]["messages"][0]["content"]["text"])
            check_told(("prompt", name, ""), told[-1])
            seen.add(("prompt", name, ""))
        await hostile.mine.use("session_start", objective=hostile.of("objective", 900))
        async for outlet, answer in walk_hooks(hostile):
            for name, text in fields(answer):
                if name not in ("the name of a field", "hookEventName", "permissionDecision", "decision"):
                    check_told(outlet, text)
                    told.append(text)
            seen.add(outlet)
        for walk in (walk_tools, walk_protocol, walk_resources):
            async for outlet, answer in walk(hostile):
                seen.add(outlet)
                if outlet[0] == "tool" or "error" in answer:
                    told.append(check_answer(outlet, answer))
                elif outlet[0] == "list":
                    check_result(outlet, answer["result"], json.dumps(answer["result"]))
                else:
                    told.append(answer["result"]["contents"][0]["text"])
                    check_told(outlet, told[-1])
        assert seen == walked(hostile)
        whole = "\n".join(told)
        met = set(re.findall(rf"{CANARY}\.(\w+)\.", whole))
        assert met >= FIELDS - {"description"}, FIELDS - met  # a team's may hold no control characters


# -- arguments that are repeated --------------------------------------------------------------------------------------


def texts_of(tool: Tool) -> list[str]:
    """The parameters of a tool that take a text, or a list of texts."""
    schema = tool.params.model_json_schema()["properties"]
    return [name for name, of in schema.items() if "string" in json.dumps(of)]


def required(tool: Tool, operation: str) -> Json:
    """The fewest arguments with which a tool is called; most of them name nothing."""
    given: Json = {"operation": operation} if operation else {}
    for name in tool.params.model_json_schema().get("required", []):
        given.setdefault(name, True if name == "nextThoughtNeeded" else "mine")
    return given


@pytest.mark.parametrize("number", [0, 3, 5, 7])
async def test_no_argument_of_any_tool_comes_back_as_a_line_of_ours(sqlite_place: Place, number: int) -> None:
    attack = ATTACKS[number]
    async with (
        new_world(sqlite_place) as world,
        world.working_life() as life,
        life.relay("mine", world.project.path) as mine,
        life.relay("outside", world.home) as outside,
    ):
        await mine.use("session_start", objective="Mend it")
        for tool in life.wire.catalog.tools.values():
            for operation in tool.operations or ("",):
                for name in texts_of(tool):
                    value: Any = [attack[:100]] if name in ("tags", "key_decisions", "pending_messages") else attack
                    given = {**required(tool, operation), name: value, **_quick(tool)}
                    for who in (mine, outside):
                        check_answer(("tool", tool.name, operation, name), await who.answer(tool.name, given))
            unknown = {**required(tool, ""), attack: "x"}
            check_answer(("tool", tool.name, "", "unknown"), await mine.answer(tool.name, unknown))
        for method, name in (("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")):
            check_answer((method, "", ""), await mine.request(method, {name: attack}))


def _quick(tool: Tool) -> Json:
    """Arguments that let a call wait for nothing."""
    return {"timeout": 0} if "timeout" in tool.params.model_fields else {}


async def test_a_directory_with_a_line_of_ours_in_its_name_says_nothing(sqlite_place: Place) -> None:
    async with new_world(sqlite_place) as world, world.working_life() as life:
        for attack in ATTACKS:
            here = world.home / file_name(attack, "directory")
            here.mkdir()
            async with life.relay("mine", here, client=attack) as mine:
                for tool, given in (
                    ("thought", {"thought": "x", "nextThoughtNeeded": True}),
                    ("resume", {}),
                    ("session_start", {"objective": "x"}),
                    ("save_task", {"current_task": "x"}),
                    ("init", {"operation": "get_state"}),
                ):
                    check_answer(("tool", tool, ""), await mine.answer(tool, given))
            hostile = Hostile(attack, world, life, here, mine, mine)
            for event in {hook.event for purpose in PURPOSES.values() for hook in purpose}:
                answer = await hostile.hook(event, "session", cwd=here, source="startup", prompt="x")
                for _, text in fields(answer):
                    assert not unquoted_lines(text), (event, text)
