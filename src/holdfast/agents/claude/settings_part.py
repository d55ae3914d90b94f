"""Claude Code's settings, as the seam asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.agents.claude import settings as claude_settings
from holdfast.agents.project_settings import ProjectSettings
from holdfast.agents.settings import HookFile, Neighbour, Registered, RunCommand, Scope, SettingsPart, SetupRequest
from holdfast.setup.json_file import Change, edited, inside

if TYPE_CHECKING:
    from holdfast.agents.claude.setup import ClaudeSetup
    from holdfast.setup.steps import Step

Env = Mapping[str, str]


class ClaudeSettings(SettingsPart):
    """Servers, hooks, rules and a plugin. What only setup and doctor need is imported when they ask."""

    scopes = (Scope.USER, Scope.PROJECT, Scope.LOCAL)
    offers_rules = True
    plugin_uninstall = "claude plugin uninstall"
    local_file = claude_settings.LOCAL
    hook_timeout_s = claude_settings.TIMEOUT_S

    def config_directory(self, env: Env) -> Path:
        from holdfast.agents.claude.config import config_directory

        return config_directory(env)

    def setup(self, request: SetupRequest) -> ClaudeSetup:
        from holdfast.agents.claude.setup import ClaudeSetup

        return ClaudeSetup(request.scope, request.project, request.home, request.other_home, request.env)

    def register_server(self, request: SetupRequest) -> Step:
        return self.setup(request).register_server()

    def unregister_server(self, request: SetupRequest) -> Step | None:
        return self.setup(request).unregister_server()

    def servers(self, env: Env, project: Path) -> Sequence[Registered]:
        from holdfast.agents.claude.setup import servers

        return servers(env, project)

    def program(self, env: Env) -> Path | None:
        from holdfast.agents.claude.program import bundled_claude, find_claude

        return find_claude(env) or bundled_claude()

    def plugin(self, env: Env, project: Path) -> str | None:
        from holdfast.agents.claude.setup import plugin

        return plugin([file.path for file in self.hook_files(env, project)])

    def hooks_installed(self, project: Path, purpose: str) -> bool:
        return claude_settings.is_installed(project, purpose)

    def install_hooks(self, project: Path, purpose: str, *, home: str | None = None) -> Change:
        return claude_settings.installed(project, claude_settings.PURPOSES[purpose], home=home)

    def remove_hooks(self, project: Path, purpose: str) -> Change:
        return claude_settings.removed(project, claude_settings.PURPOSES[purpose])

    def hook_files(self, env: Env, project: Path) -> list[HookFile]:
        config = self.config_directory(env)
        files = [HookFile(Scope.USER, config / "settings.json")]
        # In the user's home directory, the project's file is the user's.
        if project / ".claude" != config:
            files.append(HookFile(Scope.PROJECT, inside(project, claude_settings.SHARED)))
        return [*files, HookFile(Scope.LOCAL, inside(project, claude_settings.LOCAL))]

    def hook_commands(self, path: Path) -> list[tuple[str, str]]:
        return claude_settings.hook_commands(path)

    def rewrite_hooks(self, path: Path, run: RunCommand) -> Change:
        return edited(path, claude_settings.putting_in(claude_settings.hooks_in(path), run))

    def neighbours(self, env: Env, project: Path) -> Sequence[Neighbour]:
        from holdfast.agents.claude.neighbours import neighbours

        files = [file.path for file in self.hook_files(env, project)]
        return neighbours(self.config_directory(env), files, project, env)

    def hook_environment(self, project: Path) -> dict[str, str]:
        return {"CLAUDE_PROJECT_DIR": str(project)}

    @property
    def project_names(self) -> tuple[str, ...]:
        from holdfast.agents.claude.project_settings import PROJECT_NAMES

        return PROJECT_NAMES

    def of_project(self, worktree: Path) -> ProjectSettings:
        from holdfast.agents.claude.project_settings import read_project_settings

        return read_project_settings(worktree)

    def mcp_servers(self, worktree: Path, env: Mapping[str, str]) -> list[Mapping[str, Any]]:
        from holdfast.agents.claude.mcp_servers import mcp_servers

        return mcp_servers(worktree, env)
