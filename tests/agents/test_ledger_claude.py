"""The ledger of the real Claude Code: what it did is told from its transcript, however its session ended."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, ResultMessage
from claude_agent_sdk.types import PermissionResultAllow, PermissionResultDeny
from tests.agents.claude_code import ClaudeRun, play_claude
from tests.agents.scripted_model import Reply, Request, Script, ScriptedModel, reply, say, steps, text, tool_use, use

from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.ledger.service import Ledgers
from holdfast.identity.project import Root, RootSource, locate
from holdfast.store.sqlite import SqliteStore

TOOLS = ("Read", "Edit", "Write", "Bash", "Agent")
REQUEST = "Mend the fence, and leave the gate alone."
IS_COMPACTION = "CRITICAL: Respond with TEXT ONLY"


class Workplace:
    """A project of one's own in which Claude Code works, and the ledgers of what it does there."""

    def __init__(self, place: Path) -> None:
        self.project = place / "project"
        self.home = place / "claude"
        self.store = place / "holdfast.db"
        self.project.mkdir()
        self.fence.write_text("height = 1\n")

    @property
    def fence(self) -> Path:
        return self.project / "fence.py"

    @property
    def root(self) -> Root:
        return locate(str(self.project), RootSource.DIRECTORY)

    def run(
        self, script: Script, prompt: str = REQUEST, *, resume: str | None = None, session_id: str | None = None
    ) -> ClaudeRun:
        options = {"home": self.home, "resume": resume, "session_id": session_id, "allowed_tools": TOOLS}
        return play_claude(script, self.project, prompt, **options)[0]

    def environment(self, model: ScriptedModel) -> dict[str, str]:
        """For an agent that the SDK starts."""
        return {
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "sk-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }

    def transcript(self, session_id: str) -> Path:
        (found,) = (self.home / ".claude" / "projects").glob(f"*/{session_id}.jsonl")
        return found

    def ledger(self, session_id: str, transcript: Path | None = None) -> Ledger:
        """Brought up to date now."""

        async def read() -> Ledger | None:
            store = SqliteStore.open(self.store)
            try:
                path = transcript or self.transcript(session_id)
                return await Ledgers(store, "here").bring_up_to_date(session_id, path, self.root)
            finally:
                await store.close()

        ledger = asyncio.run(read())
        assert ledger is not None
        return ledger


def mending(workplace: Workplace) -> list[Reply | Script]:
    """Read the fence, raise it, and run what fails."""
    path = str(workplace.fence)
    return [
        tool_use("Read", {"file_path": path}),
        reply(
            say("I see how high it is."),
            use("Edit", {"file_path": path, "old_string": "height = 1", "new_string": "height = 2"}),
        ),
        tool_use("Bash", {"command": "python3 -c 'raise KeyError(\"heron\")'", "description": "Look for the heron"}),
    ]


def test_an_agent_killed_in_mid_turn_has_left_its_request_its_files_and_that_it_is_unfinished(tmp_path: Path) -> None:
    workplace = Workplace(tmp_path)
    session_id = str(uuid.uuid4())
    written = f"{workplace.home}/.claude/projects/*/*.jsonl"
    # The tool waits until its own call stands in the transcript, and then kills the agent that called it.
    suicide = f"until grep -q tide_is_out {written}; do sleep 0.1; done; kill -9 $PPID"
    killing = tool_use("Bash", {"command": suicide, "description": "Wait for the tide"})
    run = workplace.run(steps(*mending(workplace), killing), session_id=session_id)
    assert run.exit_code == -9

    ledger = workplace.ledger(session_id)
    assert ledger.first_request == REQUEST
    assert ledger.cwd == str(workplace.project)
    assert [file.path for file in ledger.read] == [str(workplace.fence)]
    assert [file.path for file in ledger.modified] == [str(workplace.fence)]
    assert [error.name for error in ledger.errors] == ["KeyError"]
    assert [(one.error, one.line) for one in ledger.failed] == [("KeyError", "KeyError: 'heron'")]
    assert ledger.unfinished
    assert [(call.tool, "tide_is_out" in call.about) for call in ledger.calls] == [("Bash", True)]


def test_a_turn_that_came_to_its_end_is_finished(tmp_path: Path) -> None:
    workplace = Workplace(tmp_path)
    run = workplace.run(steps(*mending(workplace), text("The fence is mended.")))
    ledger = workplace.ledger(run.session_id)
    assert (ledger.unfinished, ledger.calls) == (False, [])
    assert (ledger.turns, ledger.last_words) == (1, "The fence is mended.")


def compacting(request: Request) -> Reply:
    return text("<summary>Some work was done.</summary>") if IS_COMPACTION in request.text else text("Very well.")


def test_a_compaction_forgets_nothing_of_it_and_reading_bit_by_bit_is_reading_at_once(tmp_path: Path) -> None:
    workplace = Workplace(tmp_path)
    run = workplace.run(steps(*mending(workplace), text("The fence is mended.")))
    for prompt in ("Paint it green.", "/compact", "Now oil the gate after all."):
        workplace.run(compacting, prompt, resume=run.session_id)

    ledger = workplace.ledger(run.session_id)
    assert ledger.compactions == 1
    assert ledger.first_request == REQUEST
    assert ledger.requests == ["Paint it green.", "Now oil the gate after all."]
    assert [file.path for file in ledger.modified] == [str(workplace.fence)]
    assert not ledger.unfinished

    whole = workplace.transcript(run.session_id).read_bytes()
    growing = tmp_path / "growing.jsonl"
    workplace.store = tmp_path / "another.db"
    for end in [*range(0, len(whole), max(1, len(whole) // 25)), len(whole)]:
        growing.write_bytes(whole[:end])
        last = workplace.ledger(run.session_id, growing)
    assert last == ledger


def test_what_a_subagent_did_counts_and_what_it_was_asked_does_not(tmp_path: Path) -> None:
    workplace = Workplace(tmp_path)
    task = {"description": "Cut", "prompt": "Cut the wire.", "run_in_background": False}
    wire = str(workplace.project / "wire.py")

    def script(request: Request) -> Reply:
        is_subagent = any("Cut the wire." in turn for turn in request.user_turns)
        if request.tool_results:
            return text("It is cut." if is_subagent else "The fence is mended.")
        return (
            tool_use("Write", {"file_path": wire, "content": "cut = True\n"})
            if is_subagent
            else tool_use("Agent", task)
        )

    run = workplace.run(script)
    assert not run.is_error, run.ending
    ledger = workplace.ledger(run.session_id)
    assert [file.path for file in ledger.modified] == [wire]
    assert (ledger.first_request, ledger.requests) == (REQUEST, [])
    assert ledger.last_words == "The fence is mended."
    assert not ledger.unfinished


def test_what_the_user_says_during_a_turn_answers_and_refuses_is_kept(tmp_path: Path) -> None:
    workplace = Workplace(tmp_path)
    session_id = str(uuid.uuid4())
    waiting = f"until grep -q 'Mind the do[g]' {workplace.home}/.claude/projects/*/*.jsonl; do sleep 0.1; done"
    question = {"question": "Wood or wire?", "header": "Kind", "multiSelect": False}
    options = [{"label": label, "description": label} for label in ("Wood", "Wire")]
    script = steps(
        tool_use("Bash", {"command": waiting, "description": "Wait"}),
        tool_use("AskUserQuestion", {"questions": [{**question, "options": options}]}),
        tool_use("Write", {"file_path": "/nowhere/gate.py", "content": "open = True"}),
        text("Very well."),
    )

    async def answer(tool: str, arguments: dict[str, Any], _: Any) -> PermissionResultAllow | PermissionResultDeny:
        if tool == "AskUserQuestion":
            return PermissionResultAllow(updated_input={**arguments, "answers": {"Wood or wire?": "Wood"}})
        return PermissionResultDeny(message="Not there.") if tool == "Write" else PermissionResultAllow()

    async def converse(model: ScriptedModel) -> None:
        options = ClaudeAgentOptions(
            cwd=workplace.project,
            env=workplace.environment(model),
            session_id=session_id,
            can_use_tool=answer,
            setting_sources=[],
            system_prompt={"type": "preset", "preset": "claude_code"},
        )
        async with ClaudeSDKClient(options) as client:
            await client.query(REQUEST)
            said = False
            async for message in client.receive_messages():
                if isinstance(message, AssistantMessage) and not said:
                    await client.query("Mind the dog.")
                    said = True
                if isinstance(message, ResultMessage):
                    return

    with ScriptedModel(script) as model:
        asyncio.run(converse(model))
    ledger = workplace.ledger(session_id)
    assert (ledger.first_request, ledger.requests, ledger.waiting) == (REQUEST, ["Mind the dog."], [])
    assert [(one.question, one.answer) for one in ledger.decisions] == [("Wood or wire?", "Wood")]
    assert ledger.ruled_out == ["the user refused Write /nowhere/gate.py: Not there."]
    assert ledger.modified == []
