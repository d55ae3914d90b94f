"""Hook entries in Claude Code's settings: put in and taken out without touching anything else there.

A project's hooks name this machine's python, so they belong in `.claude/settings.local.json`, the file that Claude Code
keeps for one user on one machine, and which is kept out of git here; a file that others share gets a portable command.
Either says nothing if Holdfast is gone: a missing hook would warn at every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from holdfast.lazy_dataclass import dataclass
from holdfast.setup.hook_command import command, is_ours
from holdfast.setup.json_file import (
    REPAIR,
    Change,
    Edit,
    Misshapen,
    SettingsUnusable,
    edited,
    inside,
    read_settings,
)

LOCAL = ".claude/settings.local.json"
SHARED = ".claude/settings.json"
TIMEOUT_S = 10
"""Seconds after which Claude Code continues without a hook's answer; the hook client gives up before."""


@dataclass(frozen=True, slots=True)
class Hook:
    """An event of Claude Code that Holdfast wants to hear of."""

    event: str
    matcher: str | None = None
    """A regular expression for tool names, if the event has them."""


CONVERSATION = (Hook("SessionStart"), Hook("UserPromptSubmit"))
"""A conversation begins, continues after a compaction, gets a prompt."""
TOOLS = (Hook("PreToolUse", "Bash"), Hook("PostToolUse", "Read|Bash|mcp__.*"), Hook("Stop"))
"""What an agent does and when it stops: only where a project asked for it."""
TURNS = (Hook("PreToolUse"), Hook("PostToolUse"), Hook("Stop"), Hook("SessionEnd"))
"""Everything in an agent's turn at which a message can come, or a STOP hold it."""
BRIEFING = (Hook("SessionStart"), Hook("PreCompact"), Hook("SessionEnd"))
"""A conversation begins, is about to forget, ends: never a process of ours at a tool call."""
PURPOSES: Mapping[str, tuple[Hook, ...]] = {
    "conversation": CONVERSATION,
    "protocol": (*CONVERSATION, *TOOLS),
    "bridge": (*CONVERSATION, *TURNS),
    "briefing": BRIEFING,
}
"""What hooks are installed for. Purposes share entries, and Claude Code runs one command once for each call."""


def installed(project: Path, hooks: Iterable[Hook], *, file: str = LOCAL, home: str | None = None) -> Change:
    """Return the settings with these hooks of Holdfast; existing ones of ours are updated."""
    return edited(inside(project, file), putting_in(hooks, lambda event: command(event, home=home)))


def removed(project: Path, hooks: Iterable[Hook] | None = None, *, file: str = LOCAL) -> Change:
    """Return the settings without Holdfast's hooks; what others put there stays.

    If `hooks` names some, only these are removed, except those that another installed purpose shares.
    """
    return edited(inside(project, file), taking_out(hooks))


def putting_in(hooks: Iterable[Hook], run: Callable[[str], str]) -> Edit:
    """Return the edit that adds hooks, each with the command that `run` gives for its event."""

    def edit(settings: dict[str, Any]) -> None:
        section = _section(settings)
        for hook in hooks:
            handler = {"type": "command", "command": run(hook.event), "timeout": TIMEOUT_S}
            section[hook.event] = _with_ours(section.get(hook.event, []), hook, handler)
        settings["hooks"] = section

    return edit


def taking_out(hooks: Iterable[Hook] | None) -> Edit:
    """Return the edit that removes these hooks of Holdfast, or all, except those another purpose needs."""

    def edit(settings: dict[str, Any]) -> None:
        section = _section(settings)
        wanted = None if hooks is None else _unshared(section, set(hooks))
        for event, groups in list(section.items()):
            remaining = _without_ours(groups, event, wanted)
            if remaining or not groups:
                section[event] = remaining
            else:
                del section[event]
                if not section:
                    del settings["hooks"]

    return edit


def is_installed(project: Path, purpose: str) -> bool:
    """Return whether a project's settings files have every hook of a purpose; False if they cannot be read."""
    for file in (LOCAL, SHARED):
        try:
            there = hooks_in(inside(project, file))
        except SettingsUnusable:
            continue
        if there.issuperset(PURPOSES[purpose]):
            return True
    return False


def hooks_in(path: Path) -> set[Hook]:
    """Return which of Holdfast's hooks a settings file has. Raises SettingsUnusable."""
    try:
        return _ours_in(_section(read_settings(path)))
    except Misshapen as problem:
        raise SettingsUnusable(f"{path}: {problem}.", recovery=REPAIR) from problem


def hook_commands(path: Path) -> list[tuple[str, str]]:
    """Return the event and the command of each of our hooks in a file; malformed ones are left to Claude Code."""
    hooks = read_settings(path).get("hooks")
    return [
        (event, handler["command"])
        for event, groups in (hooks.items() if isinstance(hooks, dict) else ())
        for group in (groups if isinstance(groups, list) else ())
        if _is_group(group)
        for handler in group["hooks"]
        if _is_ours(handler)
    ]


def _section(settings: dict[str, Any]) -> dict[str, Any]:
    section = settings.get("hooks", {})
    if not isinstance(section, dict) or not all(isinstance(groups, list) for groups in section.values()):
        raise Misshapen("`hooks` must be an object with a list per event")
    return section


def _ours_in(section: Mapping[str, Any]) -> set[Hook]:
    return {
        Hook(event, _matcher(group))
        for event, groups in section.items()
        for group in groups
        if _is_group(group) and any(map(_is_ours, group["hooks"]))
    }


def _unshared(section: Mapping[str, Any], hooks: set[Hook]) -> set[Hook]:
    """Return these hooks except those that are also installed here for another purpose."""
    there = _ours_in(section)
    others = [set(purpose) for purpose in PURPOSES.values() if there.issuperset(purpose)]
    # A purpose that is within what goes, goes with it; one of which this is a part is what goes.
    return hooks.difference(*(other for other in others if not other <= hooks and not hooks <= other))


def _with_ours(groups: list[Any], hook: Hook, handler: dict[str, Any]) -> list[Any]:
    """Put our handler where ours was, so that the order of hooks stays, or else after all others."""
    result: list[Any] = []
    placed = False
    for group in groups:
        if not _is_for(group, hook.matcher):
            result.append(group)
            continue
        handlers: list[Any] = []
        for one in group["hooks"]:
            if not _is_ours(one):
                handlers.append(one)
            elif not placed:
                handlers.append(handler)
                placed = True
        if handlers or not group["hooks"]:
            result.append({**group, "hooks": handlers})
    if not placed:
        matcher = {} if hook.matcher is None else {"matcher": hook.matcher}
        result.append({**matcher, "hooks": [handler]})
    return result


def _without_ours(groups: list[Any], event: str, wanted: set[Hook] | None) -> list[Any]:
    result: list[Any] = []
    for group in groups:
        if not _is_group(group) or (wanted is not None and Hook(event, _matcher(group)) not in wanted):
            result.append(group)
            continue
        handlers = [one for one in group["hooks"] if not _is_ours(one)]
        if handlers or not group["hooks"]:
            result.append({**group, "hooks": handlers})
    return result


def _is_group(group: object) -> bool:
    return isinstance(group, dict) and isinstance(group.get("hooks"), list)


def _is_for(group: object, matcher: str | None) -> bool:
    return _is_group(group) and _matcher(group) == matcher


def _matcher(group: Any) -> str | None:
    """Return the tools a group is for; None if it is for all, which can be written in several ways."""
    matcher = group.get("matcher")
    return matcher if isinstance(matcher, str) and matcher not in ("", "*") else None


def _is_ours(handler: object) -> bool:
    text = handler.get("command") if isinstance(handler, dict) else None
    return isinstance(text, str) and is_ours(text)
