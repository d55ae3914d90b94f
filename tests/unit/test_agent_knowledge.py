"""What is known of Claude Code stands in `agents/claude/` and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.agents.hook_events import HookAnswer, HookKind
from holdfast.agents.registry import AGENTS
from holdfast.process import guard_process
from holdfast.relay import hook_client, link, spawn

SOURCE = Path(__file__).parents[2] / "src" / "holdfast"
HOME = "agents/claude/"
REGISTRATION = "agents/registry.py"
OWN_LISTS = {
    "process/guard_process.py": {"variable"},
    "relay/hook_client.py": {"hook event", "hook field", "variable"},
    "relay/link.py": {"variable"},
    "relay/spawn.py": {"variable"},
}
"""The relay and the guard import nothing, so they have lists of their own, held equal to what the agents say."""

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
    "meta": r"\banthropic/|\bclaudecode/",
    "flag": r"--fork-session|--resume\b|\bclaude (?:-p|mcp|plugin)\b",
    "import": r"holdfast\.agents\.claude|agents import claude",
}
"""Kinds of knowledge, each with what gives it away. Texts that only name Claude Code to a person are none."""


def _found() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(HOME) and name != REGISTRATION:
            text = path.read_text()
            kinds = {kind for kind, pattern in KNOWLEDGE.items() if re.search(pattern, text)}
            kinds -= OWN_LISTS.get(name, set())
            if kinds:
                found[name] = kinds
    return found


def test_only_the_agents_own_package_knows_claude_code() -> None:
    assert _found() == {}, f"this belongs in {HOME}, behind the seam"


def test_the_lists_of_the_relay_and_the_guard_are_those_of_the_agents() -> None:
    agents = AGENTS.values()
    for listed, names in (
        (link.HELLO_ENV, [agent.relay_variables for agent in agents]),
        (link.SESSION_VARIABLES, [[agent.session_variable] for agent in agents]),
        (link.PROJECT_VARIABLES, [[agent.project_variable] for agent in agents]),
        (spawn.SESSION_NAMES, [agent.session_variables for agent in agents]),
        (hook_client.PID_VARIABLES, [[agent.pid_variable] for agent in agents]),
        (hook_client.SETTING_VARIABLES, [[agent.plugin_variable] for agent in agents]),
        (guard_process.OUTER_AGENT_VARIABLES, [agent.outer_variables for agent in agents]),
    ):
        told = [name for name in listed if not name.startswith("HOLDFAST_")]
        assert sorted(told) == sorted({name for one in names for name in one if name})


def test_the_hook_client_speaks_to_the_user_as_the_agents_read_it() -> None:
    for hooks in (agent.hooks for agent in AGENTS.values() if agent.hooks is not None):
        for event in hook_client.START_EVENTS:
            assert hooks.event(event, {}).kind is HookKind.STARTED
            assert hooks.output(event, HookAnswer(notice="gone")) == (hook_client.NOTICE % "gone").encode()
