"""The settings part of an agent, and what it speaks of: scopes, hook files, registered servers. Imported late."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from holdfast.agents.errors import PartMissing
from holdfast.agents.project_settings import ProjectSettings
from holdfast.lazy_dataclass import dataclass
from holdfast.setup.json_file import Change
from holdfast.setup.launcher import launcher_step
from holdfast.setup.server import HOME, Server, of_any_machine, of_this_machine
from holdfast.setup.steps import Step

CORE_TOOLS = ("thought", "init", "session", "resume", "save_task")
"""The toolset that every project has. A test compares it with the catalog."""


class Scope(StrEnum):
    """For whom an agent is set up."""

    USER = "user"
    """This user, in every project."""
    PROJECT = "project"
    """Everyone who works on a project: the files are shared."""
    LOCAL = "local"
    """This user, in one project."""


class Allow(StrEnum):
    """How many of Holdfast's tools an agent may use without asking its user each time."""

    NONE = "none"
    CORE = "core"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class SetupRequest:
    """For whom and where to set up an agent."""

    scope: Scope
    project: Path
    home: Path
    """Holdfast's data directory."""
    other_home: str | None
    """The same, if it is not the default and has to be named."""
    env: Mapping[str, str]

    @property
    def server(self) -> Server:
        """Return the server that the agent starts; a shared file names nothing of this machine."""
        return of_any_machine() if self.scope is Scope.PROJECT else of_this_machine(self.other_home)

    @property
    def launcher_steps(self) -> list[Step]:
        """Return the step that writes the launcher, which the server and hooks of this machine name."""
        return [] if self.scope is Scope.PROJECT else [launcher_step(self.home)]


class Setup(Protocol):
    """Puts Holdfast into an agent's settings, and takes it out."""

    def install(self, allow: Allow | None) -> list[Step]:
        """Return the steps that set it up; without a choice, the rules that are there stay."""
        ...

    def remove(self) -> list[Step]:
        """Return the steps that take Holdfast out again, and nothing else."""
        ...

    def has_rules(self) -> bool:
        """Return whether a rule of ours says which tools may be used without asking."""
        ...


@dataclass(frozen=True, slots=True)
class HookFile:
    """A settings file in which hooks can be."""

    scope: Scope
    path: Path


class NeighbourKind(StrEnum):
    """How something else comes to speak to an agent."""

    MEMORY = "memory"
    """The agent's own: files that it reads by itself."""
    HOOK = "hook"
    PLUGIN = "plugin"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Something else that adds to what an agent reads at the start of a session."""

    kind: NeighbourKind
    name: str
    where: str
    files: tuple[Path, ...] = ()
    """The files that are read; what the others add cannot be known without running them."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A server of Holdfast in an agent's settings."""

    where: str
    command: tuple[str, ...]
    """The program with its arguments; empty for a server reached over HTTP."""
    env: Mapping[str, str]
    own: bool
    """Whether the user registered it, rather than a project's file."""
    scope: Scope = Scope.USER
    """For whom, if the user did."""

    def is_of(self, home: Path) -> bool:
        """Return whether it uses this data directory."""
        home_variable = self.env.get(HOME)
        return home_variable is None or Path(home_variable).expanduser().absolute() == home


def registered(
    where: str, entry: Mapping[str, Any], *, own: bool, env: str = "env", scope: Scope = Scope.USER
) -> Registered:
    """Return a server as its entry names it; values of the wrong type count as missing."""
    command, args, env_table = entry.get("command"), entry.get("args"), entry.get(env)
    words = command if isinstance(command, list) else [command] if isinstance(command, str) and command else []
    more = args if isinstance(args, list) and words else []
    variables = env_table.items() if isinstance(env_table, dict) else ()
    return Registered(
        where,
        tuple(str(word) for word in [*words, *more]),
        {str(name): str(value) for name, value in variables},
        own,
        scope,
    )


RunCommand = Callable[[str], str]
"""Returns the command that a hook runs, for its event."""


class SettingsPart(ABC):
    """Knows where an agent's configuration is, how Holdfast is put in and taken out, and what of it is installed.

    What is not overridden is the answer of an agent that has nothing but MCP servers.
    """

    scopes: tuple[Scope, ...] = (Scope.USER, Scope.PROJECT)
    """For whom it can be set up."""
    offers_rules: bool = False
    """Whether its settings can say which tools it may use without asking."""
    local_file: str | None = None
    """The project's file for one user on one machine, which is kept out of git."""
    shared_file_note: str = ""
    """What its user should know of a project's shared file."""
    plugin_uninstall: str = ""
    """The command that uninstalls the plugin that is named after it."""
    hook_timeout_s: float = 0.0
    """Seconds that it waits for a hook."""

    @abstractmethod
    def config_directory(self, env: Mapping[str, str]) -> Path:
        """Return where it keeps a user's settings, in this environment."""

    @abstractmethod
    def setup(self, request: SetupRequest) -> Setup:
        """Return the steps that set it up."""

    @abstractmethod
    def servers(self, env: Mapping[str, str], project: Path) -> Sequence[Registered]:
        """Return the servers of Holdfast that it starts in a project; raises SettingsUnusable."""

    def register_server(self, request: SetupRequest) -> Step | None:
        """Return the step that registers only the MCP server; None if that is not possible without the rest."""
        return None

    def unregister_server(self, request: SetupRequest) -> Step | None:
        """Return the step that takes such a server out again; None if it is not there, or has another purpose too."""
        return None

    def program(self, env: Mapping[str, str]) -> Path | None:
        """Return the agent's program; None if there is none, or it is not known by its program."""
        return None

    def plugin(self, env: Mapping[str, str], project: Path) -> str | None:
        """Return the plugin of Holdfast that is enabled and brings server and hooks by itself."""
        return None

    def hooks_installed(self, project: Path, purpose: str) -> bool:
        """Return whether a project has all of Holdfast's hooks for a purpose."""
        return False

    def install_hooks(self, project: Path, purpose: str, *, home: str | None = None) -> Change | None:
        """Return the change that adds the hooks of a purpose to a project's local file; None if it has no hooks."""
        return None

    def remove_hooks(self, project: Path, purpose: str) -> Change | None:
        """Return the change that removes the hooks of a purpose, but none that another purpose needs."""
        return None

    def hook_files(self, env: Mapping[str, str], project: Path) -> list[HookFile]:
        """Return the files whose hooks run in a project; raises SettingsUnusable for a link out of it."""
        return []

    def hook_commands(self, path: Path) -> list[tuple[str, str]]:
        """Return the event and the command of each of Holdfast's hooks in a file; raises SettingsUnusable."""
        return []

    def rewrite_hooks(self, path: Path, run: RunCommand) -> Change:
        """Return the change that rewrites the command of each of Holdfast's hooks in a file, and adds none."""
        raise PartMissing(f"This agent has no hooks that could be rewritten in {path}.")

    def neighbours(self, env: Mapping[str, str], project: Path) -> Sequence[Neighbour] | None:
        """Return what else adds to what the agent reads at the start of a session; None if that is not known.

        Runs nothing. Raises SettingsUnusable."""
        return None

    def hook_environment(self, project: Path) -> dict[str, str]:
        """Return the variables that the agent adds to the environment of its hooks."""
        return {}

    @property
    def project_names(self) -> tuple[str, ...]:
        """Return the files and folders of a project's directory that the agent follows."""
        return ()

    def of_project(self, worktree: Path) -> ProjectSettings:
        """Read the settings that a project brings along. Runs nothing, reads nothing outside, and never raises."""
        return ProjectSettings()

    def mcp_servers(self, worktree: Path, env: Mapping[str, str]) -> list[Mapping[str, Any]]:
        """Return the user's MCP servers by name: those for this project, then those for all.

        Each entry is as in an `.mcp.json`. Raises ValueError if the configuration cannot be read."""
        return []
