"""What the real Claude Code asks its model: outside text is in it as data, and no line of that looks like ours."""

from __future__ import annotations

import signal
import uuid

from tests.agents.claude_code import kill_claude, play_claude
from tests.agents.scripted_model import Reply, Request, steps, text, tool_use
from tests.agents.teams_world import HOOKS_ALONE, Company, World, ask
from tests.attacks import ATTACKS, CANARY, forged_lines
from tests.process.agent import MODERN_META, Agent

from holdfast.claude_settings import PURPOSES, installed

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
