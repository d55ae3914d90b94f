"""Teams of real Claude Codes for tests, on a daemon of a test's own or on one that many tests share."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from tests.agents.scripted_model import Script, ScriptedModel, seen_so_far
from tests.installation import Installation, kill_all, wait_until
from tests.process.agent import Agent

from holdfast.teams.config import read_config
from holdfast.teams.confirmation import read_confirmations, write_confirmations

HOOKS_ALONE = {"delivery": "hook"}
STOCK: tuple[dict[str, Any], ...] = (
    *[{}] * 28,
    *[HOOKS_ALONE] * 4,
    {"policy": "ask"},
    {"maxCostUsdPerDay": 0.000001},
)
"""What is special about each three teams that a shared daemon starts with; it takes a while to read of more."""


class World:
    """Three teams whose agents talk to a model of their own, which tells how many turns it has seen."""

    def __init__(
        self, place: Path, model: ScriptedModel, holdfast: Installation | None = None, suffix: str = ""
    ) -> None:
        self.place = place
        self.model = model
        self.config = place / "claude"
        self.bin = place / "bin"
        """Stands first in the agents' PATH; a test may put a `claude` of its own there."""
        self.holdfast = holdfast or Installation(place / "holdfast")
        self.suffix = suffix
        self.frontend, self.backend, self.mobile = (f"{name}{suffix}" for name in ("frontend", "backend", "mobile"))
        self.names = (self.frontend, self.backend, self.mobile)
        self.settings: dict[str, Any] = {"maxProcesses": 4}
        env = {
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "sk-test",
            "CLAUDE_CONFIG_DIR": str(self.config),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
        }
        self.teams: dict[str, dict[str, Any]] = {}
        for name in self.names:
            self.project(name).mkdir(parents=True)
            self.teams[name] = {"project": str(self.project(name)), "env": env}

    def project(self, name: str) -> Path:
        """Where a team works."""
        return self.place / name

    def write(self) -> None:
        """Write teams.json."""
        write_teams(self.holdfast, self.settings, self.teams)

    def caller(self) -> Agent:
        """Somebody who asks teams, from outside all projects."""
        outside = self.place / "outside"
        outside.mkdir(exist_ok=True)
        return Agent(self.holdfast, outside, session=f"asker{self.suffix}")

    def agents(self, name: str | None = None) -> list[psutil.Process]:
        """The processes that run in these teams' projects; those of one name."""
        projects = {str(self.project(team)) for team in self.names}
        found = []
        for process in psutil.process_iter():
            try:
                alive = process.status() != psutil.STATUS_ZOMBIE and process.cwd() in projects
                if alive and name in (None, process.name()):
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return found

    def sessions(self) -> set[str]:
        """The conversations that an agent process is at work on."""
        found = set()
        for process in self.agents("claude"):
            try:
                line = process.cmdline()
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
            found |= {
                argument.partition("=")[2] for argument in line if argument.startswith(("--session-id=", "--resume="))
            }
        return found

    def lose_agents(self, caller: Agent) -> None:
        """Kill every agent, and wait until the daemon has seen that they are gone: the next ask starts one."""
        kill_all(self.agents())
        wait_until(lambda: _processes(caller, self) == 0, "the daemon has seen that its agents are gone", limit=20)


def ask(caller: Agent, team: str, question: str, **more: Any) -> dict[str, Any]:
    """Ask a team; the whole reply, which must be an answer."""
    reply = caller.call("teams_ask", team=team, question=question, timeout=60_000, **more)
    assert reply["status"] == "answered", reply
    return reply


def turns(reply: dict[str, Any]) -> int:
    """How many turns the agent had seen when it answered."""
    return int(reply["response"].split("I have seen ")[1].split(" ")[0])


def write_teams(holdfast: Installation, settings: dict[str, Any], teams: dict[str, dict[str, Any]]) -> None:
    """Write a data directory's teams.json, whole or not at all."""
    holdfast.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = holdfast.home / "teams.json.fresh"
    document = json.dumps({"settings": settings, "teams": teams})
    known = read_confirmations(holdfast.home)
    if known.begun:  # its owner confirms what is written, before the daemon sees it
        config = read_config(document, home=holdfast.home)
        write_confirmations(holdfast.home, config.teams.values(), config.settings, known)
    fresh.write_text(document)
    fresh.rename(holdfast.home / "teams.json")


@contextmanager
def own_world(place: Path, script: Script = seen_so_far, **settings: Any) -> Iterator[World]:
    """Teams on a daemon of their own, for a test that ends, damages or configures it; the first caller starts it."""
    with ScriptedModel(script) as model:
        made = World(place, model)
        made.settings |= settings
        made.write()
        try:
            yield made
        finally:
            made.holdfast.close()


class Company:
    """A daemon with many teams. Each test takes three that no other test has had, with a model of their own."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-company-", dir="/tmp")
        self.place = Path(self._folder.name)
        self.holdfast = Installation(self.place / "holdfast")
        self._made: list[World] = []
        self._free: list[tuple[dict[str, Any], World]] = []
        for special in STOCK:
            self._hire(special)
        self._write()
        self.holdfast.serve()

    def _hire(self, special: dict[str, Any]) -> None:
        number = len(self._made) + 1
        world = World(self.place / str(number), ScriptedModel(), self.holdfast, f"-{number}")
        for team in world.teams.values():
            team |= special
        self._made.append(world)
        self._free.append((special, world))

    def _write(self) -> None:
        teams = {name: team for world in self._made for name, team in world.teams.items()}
        write_teams(self.holdfast, {"maxProcesses": 4}, teams)

    @contextmanager
    def world(self, **special: Any) -> Iterator[World]:
        """Teams for one test; it must leave no client behind."""
        if not any(kind == special for kind, _ in self._free):
            self._hire(special)
            self._write()
            with self._free[-1][1].caller() as caller:
                wait_until(lambda: _is_known(caller, self._free[-1][1].backend), "the daemon knows the new teams")
        position = next(number for number, (kind, _) in enumerate(self._free) if kind == special)
        _, world = self._free.pop(position)
        with world.model:
            yield world
            wait_until(
                lambda: self.holdfast._ask("status")["clients"] == 0, "every client of the shared daemon has left"
            )

    def close(self) -> None:
        """Stop the daemon; nothing of it may be left."""
        try:
            self.holdfast.close()
        finally:
            for _, unused in self._free:
                unused.model.discard()
            self._folder.cleanup()


def _processes(caller: Agent, world: World) -> int:
    shown = caller.call("teams_status")["teams"]
    return sum(team["processes"] for team in shown if team["team"] in world.names)


def _is_known(caller: Agent, team: str) -> bool:
    return any(shown["team"] == team for shown in caller.call("teams_status")["teams"])
