"""What the real Claude Code asks its model: outside text is in it as data, and no line of that looks like ours."""

from __future__ import annotations

import json
import re
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.agents.claude_code import kill_claude, play_claude
from tests.agents.scripted_model import Reply, Request, steps, text, tool_use
from tests.agents.teams_world import HOOKS_ALONE, Company, World, ask
from tests.attacks import ATTACKS, CANARY, forged_lines, invisible, unquoted_lines
from tests.contract.hostile_world import branch_name, directory_name, file_name, planted, protocol_settings
from tests.process.agent import MODERN_META, Agent
from tests.repository import Repository

from holdfast.agents.claude.settings import PURPOSES, installed
from holdfast.store.loss_notices import LossNotices
from holdfast.text.own_lines import has_own_form
from holdfast.text.quoting import MARK

ALL = "\n".join(ATTACKS)[:7_000]
"""As long as a message may be that comes whole with a hook."""


def check(request: Request, *parts: str) -> None:
    """The model is shown each part, and no line of an attack that could be taken for one of ours."""
    for part in (CANARY, *parts):
        assert part in request.text, f"the walk does not reach the model: {part}"
    assert not forged_lines(request.text), forged_lines(request.text)


def test_messages_restart_texts_and_briefings_are_data_to_the_model(company: Company) -> None:
    with company.world(**HOOKS_ALONE) as world:
        project, claude_home = world.project(world.backend), world.place / "claude"
        for purpose in ("bridge", "briefing"):
            installed(project, PURPOSES[purpose], home=str(world.holdfast.home)).write()
        meta = {**MODERN_META, "io.modelcontextprotocol/clientInfo": {"name": ATTACKS[0], "version": "1"}}
        arguments = {"target": world.backend, "message": ALL}
        with Agent(world.holdfast, world.project(world.frontend), era="modern") as sender:
            sent = sender.request("tools/call", {"name": "send_message", "arguments": arguments, "_meta": meta})
        assert sent["structuredContent"]["queued"], sent
        options = {
            "home": claude_home,
            "mcp_config": world.holdfast.mcp_config(),
            "allowed_tools": ["mcp__holdfast", "Bash"],
        }

        def killed(request: Request) -> Reply:
            kill_claude(project)
            return text("Nobody hears this.")

        task = {"current_task": ATTACKS[3], "last_completed_step": ATTACKS[2], "pending_messages": [ATTACKS[6][:90]]}
        script = steps(
            tool_use("mcp__holdfast__save_task", task),
            tool_use("mcp__holdfast__take_message", {"target": ATTACKS[1]}),
            killed,
        )
        run, requests = play_claude(script, project, "Mend the fence.", session_id=str(uuid.uuid4()), **options)
        assert run.exit_code == -signal.SIGKILL
        check(requests[0], f'from "team {world.frontend}"')
        (refused,) = requests[2].tool_results
        assert refused.is_error and "E_UNKNOWN_TARGET" in refused.text and CANARY in refused.text
        assert not forged_lines(refused.text)

        again, (first, *_) = play_claude(steps(text("I see.")), project, "Hello.", **options)
        assert not again.is_error, (again.ending, again.stderr)
        check(first, "Session restarted.", "Holdfast briefing", f'from "team {world.frontend}"', "handed out before")


def test_asks_and_notices_are_data_to_a_teams_model(own_world: World) -> None:
    with own_world.caller() as caller:
        caller.call("teams_notify", toTeam=own_world.backend, message=ATTACKS[3], fromTeam=own_world.mobile)
        ask(caller, own_world.backend, ALL)
    asked = next(request for request in own_world.model.requests if CANARY in request.text)
    check(asked, f"[Notice from team {own_world.mobile}:]", "> ", "[Message from somebody outside the teams")


_OF_HOOKS = re.compile(r"(?:[A-Za-z]+(?::\w+)? hook additional context: |Stop hook feedback:\n)")
"""How Claude Code begins what a hook told."""
MET = ("title", "thought", "task", "objective", "recovery", "answer", "message", "argument", "directory", "transcript")


def told_by_hooks(request: Request) -> Iterator[str]:
    """What Holdfast's hooks told the model; of directory, branch and commits Claude Code itself tells it too."""
    for message in request.messages:
        content = message["content"]
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if block["type"] == "text" and (found := _OF_HOOKS.match(block["text"])):
                yield block["text"][found.end() :].partition("\n\n# Environment\n")[0]


def check_hooks(request: Request) -> str:
    """All that hooks told: each line of it is marked, or one of ours with outside text in quotes."""
    told = "\n".join(told_by_hooks(request))
    assert not invisible(told) and not unquoted_lines(told), told
    for line in told.splitlines():
        assert not line or line.startswith(MARK.strip()) or has_own_form(line), line
    return told


def check_results(request: Request) -> str:
    """What tools of Holdfast answered: one line of JSON each, or an error that quotes."""
    for result in request.tool_results:
        assert not invisible(result.text), result.text
        if result.is_error:
            assert not unquoted_lines(result.text), result.text
        else:
            assert len(result.text.splitlines()) == 1 and isinstance(json.loads(result.text), dict), result.text
    return "\n".join(result.text for result in request.tool_results)


def hostile_project(world: World, attack: str) -> Path:
    """A team's project with an attack in every name; hooks are installed in it."""
    project = Repository(world.place / directory_name(attack))
    project.write(file_name(attack, "file"), "x\n")
    project.write(".holdfast/protocol.toml", protocol_settings(planted(attack, "recovery")))
    project.commit(planted(attack, "commit"))
    project.git("checkout", "-q", "-b", branch_name(attack))
    for purpose in ("bridge", "briefing", "protocol"):
        installed(project.path, PURPOSES[purpose], home=str(world.holdfast.home)).write()
    world.teams["yard"] = {"project": str(project.path), **HOOKS_ALONE}
    world.write()
    LossNotices(world.holdfast.home).record(0, "damage", [planted(attack, "loss")])
    return project.path


def test_results_errors_and_hooks_are_data_to_the_model_in_a_hostile_project(own_world: World) -> None:
    attack = ATTACKS[3]
    project = hostile_project(own_world, attack)
    own_world.model.script = steps(text(planted(attack, "answer")))
    with own_world.caller() as caller:
        for number in range(3):
            message = f"{planted(attack, 'message')} {number}"
            assert caller.call("send_message", target="yard", message=message)["queued"]

    def call(tool: str, **arguments: object) -> Reply:
        return tool_use(f"mcp__holdfast__{tool}", arguments)

    calls = (
        call("init", operation="start_new", title=planted(attack, "title")),
        call("thought", thought=planted(attack, "thought"), nextThoughtNeeded=True),
        call("init", operation="load_context"),
        call("save_task", current_task=planted(attack, "task")),
        call("session_start", objective=planted(attack, "objective")),
        call("advance_phase"),
        call("teams_ask", team=own_world.backend, question="Which port?", timeout=60_000),
        call("take_message"),
        call("pull_updates", target="yard"),
        call("queue_status"),
        call("validate_gate", phase=planted(attack, "argument")),
    )
    commit = tool_use("Bash", {"command": "git commit --allow-empty -m x"})
    script = steps(*calls, commit, *[text("Done.")] * 4)
    options: dict[str, Any] = {
        "home": own_world.place / "claude-home",
        "mcp_config": own_world.holdfast.mcp_config(),
        "allowed_tools": ["mcp__holdfast", "Bash"],
    }
    run, requests = play_claude(script, project, planted(attack, "transcript"), **options)
    assert not run.is_error, (run.ending, run.stderr)
    told = [check_results(request) for request in requests[1 : len(calls) + 1]]
    told += [check_hooks(requests[-1])]
    for words in ("comes too early", "and not ended. If you wait", "[End of message "):
        assert words in told[-1], told[-1]

    with own_world.caller() as caller:
        assert caller.call("send_message", target="yard", message=planted(attack, "message"))["queued"]
    again, (first, *_) = play_claude(steps(*[text("Done.")] * 4), project, "Go on.", **options)
    assert not again.is_error, (again.ending, again.stderr)
    told += [check_hooks(first)]
    for words in ("Session restarted. ", "Holdfast: session ", "[Holdfast briefing for ", "[Message "):
        assert words in told[-1], (words, told[-1])
    whole = "\n".join(told)
    assert not [field for field in MET if f"{CANARY}.{field}." not in whole]
    assert f"{CANARY}.loss." not in whole + first.text, "a loss is told to the user"
