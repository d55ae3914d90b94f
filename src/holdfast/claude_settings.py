"""Hook entries in a project's Claude Code settings: put in and taken out without touching anything else there.

A hook names this machine's python, so it belongs in `.claude/settings.local.json`, the file that Claude Code keeps for
one user on one machine, and which is kept out of git here. The command says nothing where Holdfast is gone: a hook that
is missing would warn at every call.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import secrets
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import holdfast.relay
from holdfast.errors import Conflict, HoldfastError

LOCAL = ".claude/settings.local.json"
SHARED = ".claude/settings.json"
TIMEOUT_S = 10
"""Seconds after which Claude Code goes on without a hook; the hook client itself gives up before."""
LARGEST = 4 * 1024 * 1024

_OURS = re.compile(r"holdfast/relay/hook\.py'? |(?:^|[\s/;])holdfast hook ")
_INDENT = re.compile(r"^[{\[]\s*\n([ \t]+)\S")


class SettingsUnusable(HoldfastError):
    """A settings file that cannot be changed without losing what is in it."""

    code = "E_SETTINGS_UNUSABLE"


@dataclass(frozen=True, slots=True)
class Hook:
    """An event of Claude Code that Holdfast wants to hear of."""

    event: str
    matcher: str | None = None
    """A regular expression for tool names, where the event has them."""


CONVERSATION = (Hook("SessionStart"), Hook("UserPromptSubmit"))
"""A conversation begins, goes on after a compaction, gets a prompt."""
TOOLS = (Hook("PreToolUse", "Bash"), Hook("PostToolUse", "Read|Bash|mcp__.*"), Hook("Stop"))
"""What an agent does and when it stops: only where a project asked for it."""
TURNS = (Hook("PreToolUse"), Hook("PostToolUse"), Hook("Stop"), Hook("SessionEnd"))
"""Everything in an agent's turn at which a message can come, or a STOP hold it."""
PURPOSES: Mapping[str, tuple[Hook, ...]] = {
    "conversation": CONVERSATION,
    "protocol": (*CONVERSATION, *TOOLS),
    "bridge": (*CONVERSATION, *TURNS),
}
"""What hooks are installed for. Purposes share entries, and Claude Code runs one command once for each call."""


@dataclass(frozen=True, slots=True)
class Change:
    """A settings file as it is, and as it is to be."""

    path: Path
    before: str | None
    """None where there is no file yet."""
    after: str

    @property
    def needed(self) -> bool:
        """Whether there is anything to do."""
        return self.after != (self.before or "")

    def diff(self) -> str:
        """The change as `diff -u` shows it."""
        lines = difflib.unified_diff(
            (self.before or "").splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            str(self.path) if self.before is not None else os.devnull,
            str(self.path),
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def write(self) -> None:
        """Make the change in one step. Raises Conflict when somebody else changed the file since it was read."""
        if not self.needed:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        mode = self.path.stat().st_mode & 0o777 if self.before is not None else 0o644
        try:
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
                file.write(self.after)
                file.flush()
                os.fsync(file.fileno())
            if _text(self.path) != self.before:
                raise Conflict(f"{self.path} was changed meanwhile.", recovery="Run the command again.")
            fresh.replace(self.path)
        finally:
            fresh.unlink(missing_ok=True)


def installed(project: Path, hooks: Iterable[Hook], *, file: str = LOCAL, home: str | None = None) -> Change:
    """The settings with these hooks of Holdfast in them; ours that are there already are brought up to date."""
    path = _settings_path(project, file)
    before = _text(path)
    settings = _parsed(path, before)
    section = _section(path, settings)
    for hook in hooks:
        handler = {"type": "command", "command": command(hook.event, home=home), "timeout": TIMEOUT_S}
        section[hook.event] = _with_ours(section.get(hook.event, []), hook, handler)
    settings["hooks"] = section
    return _change(path, before, settings)


def removed(project: Path, hooks: Iterable[Hook] | None = None, *, file: str = LOCAL) -> Change:
    """The settings without Holdfast's hooks; what others put there stays.

    Without these of them, where some are named: those that another purpose shares stay, as long as that is installed.
    """
    path = _settings_path(project, file)
    before = _text(path)
    settings = _parsed(path, before)
    section = _section(path, settings)
    wanted = None if hooks is None else _unshared(section, set(hooks))
    for event, groups in list(section.items()):
        left = _without_ours(groups, event, wanted)
        if left or not groups:
            section[event] = left
        else:
            del section[event]
    if "hooks" in settings and not section:
        del settings["hooks"]
    return _change(path, before, settings)


def is_installed(project: Path, purpose: str) -> bool:
    """Whether every hook of a purpose is in one of a project's settings files; False for files that cannot be read."""
    for file in (LOCAL, SHARED):
        try:
            path = _settings_path(project, file)
            there = _ours_in(_section(path, _parsed(path, _text(path))))
        except SettingsUnusable:
            continue
        if there.issuperset(PURPOSES[purpose]):
            return True
    return False


def command(event: str, *, home: str | None = None) -> str:
    """What a hook runs: the hook client with this python, or nothing where one of them is gone."""
    python = shlex.quote(sys.executable)
    client = shlex.quote(str(Path(holdfast.relay.__file__).with_name("hook.py")))
    place = "" if home is None else f"export HOLDFAST_HOME={shlex.quote(home)}; "
    return f"[ -x {python} ] && [ -f {client} ] || exit 0; {place}exec {python} -I -S {client} {event}"


def _ours_in(section: Mapping[str, Any]) -> set[Hook]:
    return {
        Hook(event, _matcher(group))
        for event, groups in section.items()
        for group in groups
        if _is_group(group) and any(map(_is_ours, group["hooks"]))
    }


def _unshared(section: Mapping[str, Any], hooks: set[Hook]) -> set[Hook]:
    """These hooks without those of other purposes that are installed here."""
    there = _ours_in(section)
    others = [set(purpose) for purpose in PURPOSES.values() if there.issuperset(purpose)]
    # A purpose that is within what goes, goes with it; one of which this is a part is what goes.
    return hooks.difference(*(other for other in others if not other <= hooks and not hooks <= other))


def _with_ours(groups: list[Any], hook: Hook, handler: dict[str, Any]) -> list[Any]:
    """Our handler where one of ours is, so that the order of hooks stays; else after all others."""
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
    """The tools a group is for; there are several ways to say that it is for all."""
    matcher = group.get("matcher")
    return matcher if isinstance(matcher, str) and matcher not in ("", "*") else None


def _is_ours(handler: object) -> bool:
    text = handler.get("command") if isinstance(handler, dict) else None
    return isinstance(text, str) and _OURS.search(text) is not None


def _settings_path(project: Path, file: str) -> Path:
    """The file that is really meant. A link in a clone must not lead to a file outside it."""
    root, path = Path(os.path.realpath(project)), Path(os.path.realpath(project / file))
    if not path.is_relative_to(root):
        raise SettingsUnusable(
            f"{project / file} leads out of the project through a symbolic link.", recovery="Replace it with a file."
        )
    return path


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise SettingsUnusable(f"{path} cannot be read: {failure.strerror}.") from failure
    if len(content) > LARGEST:
        raise SettingsUnusable(f"{path} has over {LARGEST} bytes.")
    try:
        return content.decode()
    except UnicodeDecodeError as failure:
        raise SettingsUnusable(f"{path} is not UTF-8 ({failure.reason} at byte {failure.start}).") from failure


def _parsed(path: Path, text: str | None) -> dict[str, Any]:
    repair = "Repair it; it was left as it is."
    try:
        settings = json.loads(text, object_pairs_hook=_once) if text is not None and text.strip() else {}
    except json.JSONDecodeError as failure:
        raise SettingsUnusable(f"{path}, line {failure.lineno}: {failure.msg}.", recovery=repair) from failure
    except (_Twice, RecursionError) as failure:
        raise SettingsUnusable(f"{path}: {failure}.", recovery=repair) from failure
    if not isinstance(settings, dict):
        raise SettingsUnusable(f"{path} must hold a JSON object.", recovery=repair)
    return settings


def _section(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    section = settings.get("hooks", {})
    if not isinstance(section, dict) or not all(isinstance(groups, list) for groups in section.values()):
        raise SettingsUnusable(
            f"{path}: `hooks` must be an object with a list per event.", recovery="Repair it; it was left as it is."
        )
    return section


class _Twice(ValueError):
    """A name that stands twice in one object: reading it would lose the first."""


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _Twice(f"{json.dumps(name)} stands twice in one object")
        found[name] = value
    return found


def _change(path: Path, before: str | None, settings: dict[str, Any]) -> Change:
    """The file is rewritten only when its meaning changes, in its own indentation."""
    if before is not None and before.strip() and json.loads(before) == settings:
        return Change(path, before, before)
    if before is None and not settings:
        return Change(path, None, "")
    found = _INDENT.match(before or "")
    indent: int | str = 2 if found is None else "\t" * len(found[1]) if "\t" in found[1] else len(found[1])
    return Change(path, before, json.dumps(settings, indent=indent, ensure_ascii=False) + "\n")
