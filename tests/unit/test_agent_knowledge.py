"""What is known of Claude Code stands in `agents/claude/`: what is still elsewhere is listed here and only shrinks."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.agents.registry import AGENTS
from holdfast.relay import link, spawn

SOURCE = Path(__file__).parents[2] / "src" / "holdfast"
HOME = "agents/claude/"
REGISTRATION = "agents/registry.py"
RELAY = {"relay/link.py": {"variable"}, "relay/spawn.py": {"variable"}}
"""The relay imports nothing, so it has lists of its own; they are held equal to what the agents say."""

KNOWLEDGE = {
    "hook field": r"\b(?:hook_event_name|transcript_path|tool_(?:name|input|response|use_id)|stop_hook_active"
    r"|last_assistant_message|hookSpecificOutput|additionalContext|permissionDecision|systemMessage)\b",
    "hook event": r"\b(?:SessionStart|UserPromptSubmit|PreToolUse|PostToolUse|PreCompact|SessionEnd)\b",
    "transcript field": r"\b(?:toolUseResult|isSidechain|parentUuid|isMeta|isCompactSummary|gitBranch)\b"
    r"|[\"'](?:tool_use|tool_result|uuid)[\"']",
    "tool": r"[\"'](?:Bash|BashOutput|Edit|MultiEdit|Write|NotebookEdit|TodoWrite|ExitPlanMode|AskUserQuestion"
    r"|TaskCreate|TaskUpdate)[\"']|mcp__",
    "path": r"(?<!\w)\.claude\b|(?:/|==) [\"']projects[\"']",
    "variable": r"\b(?:CLAUDE_[A-Z_]+|CLAUDECODE|ANTHROPIC_[A-Z_]*)",
    "flag": r"--fork-session|--resume\b|\bclaude (?:-p|mcp|plugin)\b",
    "import": r"holdfast\.agents\.claude|agents import claude",
}
"""Kinds of knowledge, each with what gives it away. Texts that only name Claude Code to a person are none."""

ELSEWHERE: dict[str, set[str]] = {
    "briefing/sharing.py": {"import"},
    "cli/handoff.py": {"flag", "path", "variable"},
    "cli/move.py": {"flag"},
    "demo/stage.py": {"hook event", "hook field", "variable"},
    "handoff/container.py": {"path"},
    "handoff/service.py": {"import"},
    "handoff/spools.py": {"import", "transcript field"},
    "handoff/transcripts.py": {"import", "path", "transcript field"},
    "history/views.py": {"path"},
    "process/child_environment.py": {"variable"},
    "process/guard_process.py": {"variable"},
    "protocol/project/agent_settings.py": {"path"},
    "protocol/project/gate_settings.py": {"tool"},
    "protocol/project/named_programs.py": {"variable"},
    "protocol/protocols.py": {"path", "tool"},
    "protocol/serena/discovery.py": {"path", "variable"},
    "relay/hook_client.py": {"hook event", "hook field", "variable"},
    "relay/main.py": {"flag", "variable"},
    "wire/mcp/transports.py": {"variable"},
}
"""What still stands outside, by file: take out what is gone, add nothing."""


def _found() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(HOME) and name != REGISTRATION:
            text = path.read_text()
            kinds = {kind for kind, pattern in KNOWLEDGE.items() if re.search(pattern, text)}
            kinds -= RELAY.get(name, set())
            if kinds:
                found[name] = kinds
    return found


def test_no_file_learns_more_of_claude_code_than_is_listed() -> None:
    found = _found()
    new = {name: kinds - ELSEWHERE.get(name, set()) for name, kinds in found.items()}
    assert {name: kinds for name, kinds in new.items() if kinds} == {}, f"this belongs in {HOME}, behind the seam"


def test_what_no_file_knows_any_more_is_not_listed() -> None:
    found = _found()
    gone = {name: kinds - found.get(name, set()) for name, kinds in ELSEWHERE.items()}
    assert {name: kinds for name, kinds in gone.items() if kinds} == {}, "take it out of the list"


def test_the_relays_own_lists_are_those_of_the_agents() -> None:
    for listed, names in (
        (link.HELLO_ENV, [agent.relay_variables for agent in AGENTS.values()]),
        (spawn.SESSION_NAMES, [agent.session_variables for agent in AGENTS.values()]),
    ):
        told = [name for name in listed if not name.startswith("HOLDFAST_")]
        assert sorted(told) == sorted({name for one in names for name in one})
