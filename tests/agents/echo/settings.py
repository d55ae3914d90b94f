"""The echo agent's settings: one JSON file of the user and one of a project, each with servers and hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.agents.echo.hooks import EVENTS

from holdfast.agents.settings import (
    Allow,
    HookFile,
    Registered,
    RunCommand,
    Scope,
    SettingsPart,
    SetupRequest,
    registered,
)
from holdfast.setup import json_entry
from holdfast.setup.hook_command import command, is_ours, portable_command
from holdfast.setup.json_file import Change, SettingsUnusable, edited, inside, read_settings
from holdfast.setup.originals import Originals
from holdfast.setup.steps import Step, putting_in, taking_out

KEYS = ("servers",)
FILE = ".echo/config.json"
Env = Mapping[str, str]


class EchoSettings(SettingsPart):
    """Its servers and hooks."""

    local_file = FILE
    hook_timeout_s = 5.0

    def config_directory(self, env: Env) -> Path:
        return Path(env["HOME"]) / ".echo"

    def setup(self, request: SetupRequest) -> EchoSetup:
        return EchoSetup(self.file(request.scope, request.env, request.project), request)

    def servers(self, env: Env, project: Path) -> Sequence[Registered]:
        found = [(file, json_entry.own_entry(file.path, KEYS)) for file in self.hook_files(env, project)]
        return [
            registered(str(file.path), entry, own=file.scope is Scope.USER)
            for file, entry in found
            if entry is not None
        ]

    def file(self, scope: Scope, env: Env, project: Path) -> Path:
        return inside(project, FILE) if scope is Scope.PROJECT else self.config_directory(env) / "config.json"

    def hooks_installed(self, project: Path, purpose: str) -> bool:
        try:
            return len(self.hook_commands(inside(project, FILE))) == len(EVENTS)
        except SettingsUnusable:
            return False

    def install_hooks(self, project: Path, purpose: str, *, home: str | None = None) -> Change:
        return edited(inside(project, FILE), _hooked(lambda event: command(event, home=home)))

    def remove_hooks(self, project: Path, purpose: str) -> Change:
        return edited(inside(project, FILE), _unhooked)

    def hook_files(self, env: Env, project: Path) -> list[HookFile]:
        return [HookFile(scope, self.file(scope, env, project)) for scope in self.scopes]

    def hook_commands(self, path: Path) -> list[tuple[str, str]]:
        hooks = read_settings(path).get("hooks")
        commands = hooks.items() if isinstance(hooks, dict) else ()
        return [(f"{event} echo", text) for event, text in commands if isinstance(text, str) and is_ours(text)]

    def rewrite_hooks(self, path: Path, run: RunCommand) -> Change:
        return edited(path, _hooked(run))


@dataclass(frozen=True)
class EchoSetup:
    """One scope of the echo agent."""

    path: Path
    request: SetupRequest

    def install(self, allow: Allow | None) -> list[Step]:
        run: RunCommand = portable_command
        if self.request.scope is not Scope.PROJECT:
            run = lambda event: command(event, home=self.request.other_home)  # noqa: E731
        change = edited(self.path, json_entry.putting_in(KEYS, self.request.server.entry()), _hooked(run))
        return [*self.request.launcher_steps, putting_in(Originals(self.request.home), change, self._without())]

    def remove(self) -> list[Step]:
        return [taking_out(Originals(self.request.home), self._without())]

    def has_rules(self) -> bool:
        return False

    def _without(self) -> Change:
        return edited(self.path, json_entry.taking_out(KEYS), _unhooked)


def _hooked(run: RunCommand) -> Callable[[dict[str, Any]], None]:
    def edit(settings: dict[str, Any]) -> None:
        settings["hooks"] = {**settings.get("hooks", {}), **{event: run(f"{event} echo") for event in EVENTS}}

    return edit


def _unhooked(settings: dict[str, Any]) -> None:
    hooks = {event: text for event, text in settings.get("hooks", {}).items() if not is_ours(text)}
    settings["hooks"] = hooks
    if not hooks:
        del settings["hooks"]
