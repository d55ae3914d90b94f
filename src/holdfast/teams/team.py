"""A team: a name for an agent at work in a project directory, and the settings all teams share."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path

from holdfast.agents.registry import DEFAULT
from holdfast.lazy_dataclass import dataclass

RESERVED_NAME = "external"
"""What people call a caller that is not a team."""

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")


class Policy(StrEnum):
    """What happens when an agent wants to do something that is not allowed in advance."""

    DENY = "deny"
    ASK = "ask"


class Delivery(StrEnum):
    """How a message from the bridge reaches the team."""

    AUTO = "auto"
    HOOK = "hook"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Chat:
    """Where people talk with a team."""

    id: str
    topic: int | None = None
    allowed_users: tuple[int, ...] = ()
    """Who may give orders there; nobody if empty."""


@dataclass(frozen=True, slots=True)
class Team:
    """An agent at work in a project, as configured in teams.json."""

    name: str
    project: Path
    """As configured: absolute, symlinks not resolved."""
    description: str = ""
    skip_permissions: bool = False
    color: str | None = None
    """#RRGGBB"""
    agent: str = DEFAULT
    model: str | None = None
    """None: the agent's own default."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """Added to the agent's environment; not shown, because tokens are kept here."""
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    policy: Policy = Policy.DENY
    machine: str | None = None
    """Which machine runs it, by the content of its `machine` file; None: any that has the project."""
    max_cost_usd_per_day: float | None = None
    chat: Chat | None = None
    session_file: Path | None = None
    """Where an agent without hooks says which session it is in."""
    state_file: Path | None = None
    """Where the agent keeps what it is working on."""
    delivery: Delivery = Delivery.AUTO
    idle_seconds: int = 60
    """After how long without a hook an agent at its terminal counts as idle."""


@dataclass(frozen=True, slots=True)
class TeamSettings:
    """The settings shared by all teams."""

    idle_timeout_ms: int = 300_000
    max_processes: int = 10
    health_check_interval_ms: int = 30_000
    stall_timeout_ms: int = 600_000
    """How long a turn may go without a sign of life."""
    compact_after_messages: int = 1000
    archive_after_days: int = 90
    warm_up: int = 0
    """How many of the most used conversations are opened at start."""
    allowed_roots: tuple[Path, ...] = ()
    """Where projects may be, symlinks resolved; anywhere if empty."""
    max_depth: int = 4
    """How long a chain of teams asking teams may grow."""


def name_problem(name: str) -> str | None:
    """Return why `name` cannot be a team's name; None if it can."""
    if name == RESERVED_NAME:
        return f'"{RESERVED_NAME}" stands for callers that are no team'
    if not _NAME.fullmatch(name):
        return "must be 1 to 64 of the characters A-Z a-z 0-9 . _ - and not start with a dot"
    return None


def name_for(project: Path, taken: Container[str] = ()) -> str | None:
    """Return a name for a team in a project: its folder's, prefixed with parents while taken; None if none fits."""
    name = ""
    for folder in (project, *project.parents):
        part = "".join(char if _NAME.fullmatch(f"_{char}") else "-" for char in folder.name).strip("-.")
        name = f"{part}-{name}".strip("-")
        if name and name not in taken:
            return None if name_problem(name) else name
    return None
