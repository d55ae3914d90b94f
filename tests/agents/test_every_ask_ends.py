"""Every ask ends: whatever breaks, it is answered, or ended with its cause named, and its place is free again.

One row of a table for each fault. A fault comes before the ask, while it waits behind another one, or while its turn
is under way. Teams have one process between them, so that a place that is not freed is seen at once.
"""

from __future__ import annotations

import errno
import os
import resource
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.agents.echo import offered, registered
from tests.agents.scripted_model import api_error, seen_so_far
from tests.agents.teams_world import World, ask, own_world, write_teams
from tests.installation import Clocked, Installation, wait_until
from tests.postgres import PostgresServer, fresh_database
from tests.process.agent import Agent

from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.teams.model import LEASE_MS

TIMEOUT_MS = 60_000
"""How long each ask is waited for; none may still be pending then."""


class When(Enum):
    """When a fault comes."""

    BEFORE = "before the ask"
    WAITING = "while the ask waits"
    RUNNING = "while its turn is under way"


@dataclass(frozen=True)
class Fault:
    """Something that breaks, and how an ask ends then."""

    name: str
    plant: Callable[[World], AbstractContextManager[object]]
    """Breaks it while the block lasts, and mends it then."""
    ends: str
    """Words of the cause; empty if the ask is answered."""
    code: str = ""
    when: When = When.BEFORE
    agent: str = "echo"
    question: str = "hello"
    """What the ask is; the echo agent sleeps when it is told to."""
    mended_first: bool = False
    """Whether the ask ends once there is room again, because before that nothing can be stored."""
    warm: bool = False
    """Whether the agent is there before the ask, so that its turn begins at once."""

    def __str__(self) -> str:
        return f"{self.name}, {self.when.value}"


@contextmanager
def _project_gone(world: World) -> Iterator[None]:
    project = world.project(world.backend)
    project.rename(project.with_suffix(".gone"))
    yield
    project.with_suffix(".gone").rename(project)


@contextmanager
def _file_for_project(world: World) -> Iterator[None]:
    with _project_gone(world):
        world.project(world.backend).write_text("not a directory")
        yield
        world.project(world.backend).unlink()


@contextmanager
def _no_teams_json(world: World) -> Iterator[None]:
    (world.holdfast.home / "teams.json").unlink()
    yield
    _write(world)


@contextmanager
def _half_written(world: World) -> Iterator[None]:
    (world.holdfast.home / "teams.json").write_text('{"teams": {')
    yield
    _write(world)


@contextmanager
def _team_changed(world: World, **change: Any) -> Iterator[None]:
    before = world.teams[world.backend]
    world.teams[world.backend] = before | change
    _write(world)
    yield
    world.teams[world.backend] = before
    _write(world)


@contextmanager
def _team_removed(world: World) -> Iterator[None]:
    before = world.teams.pop(world.backend)
    _write(world)
    yield
    world.teams[world.backend] = before
    _write(world)


@contextmanager
def _no_sdk(world: World) -> Iterator[None]:
    """A daemon whose Python has no claude-agent-sdk."""
    site = world.place / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import sys\nsys.modules['claude_agent_sdk'] = None\n")
    _serve_anew(world, PYTHONPATH=str(site))
    yield
    del world.holdfast.settings["PYTHONPATH"]
    _serve_anew(world)


def _serve_anew(world: World, **settings: str) -> None:
    if world.holdfast.daemon() is not None:
        assert world.holdfast.run("stop").returncode == 0
    world.holdfast.settings |= settings
    world.holdfast.serve()


@contextmanager
def _no_room(world: World) -> Iterator[None]:
    """No file of the daemon may grow: the nearest to a full disk without the right to mount one."""
    pid = world.holdfast.daemon()
    assert pid is not None
    limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, limits[1]))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


@contextmanager
def _in_the_transcripts_place(world: World) -> Iterator[None]:
    """A directory where the agent's transcript belongs, and no agent that has it open."""
    transcript = _told_and_ended(world)
    kept = transcript.with_suffix(".kept")
    transcript.rename(kept)
    transcript.mkdir()
    yield
    transcript.rmdir()
    kept.rename(transcript)


@contextmanager
def _sidecar(world: World, content: bytes | None) -> Iterator[None]:
    """A `.meta.json` of a subagent that no agent wrote, or a directory in its place; no agent has it open."""
    transcript = _told_and_ended(world)
    folder = transcript.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-1.jsonl").write_text('{"type": "user"}\n')
    sidecar = folder / "agent-1.meta.json"
    if content is None:
        sidecar.mkdir()
    else:
        sidecar.write_bytes(content)
    yield
    if content is None:
        sidecar.rmdir()


@contextmanager
def _no_room_to_restore(world: World) -> Iterator[None]:
    """A lost transcript, and a full disk where it belongs; where nothing may be mounted, a folder closed to writing."""
    world.config.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", str(world.config)]
    mounted = subprocess.run(mount, capture_output=True).returncode == 0
    try:
        transcript = _told_and_ended(world)
        transcript.unlink()
        if mounted:
            _fill(world.config / "everything else")
        else:
            transcript.parent.chmod(0o500)
        yield
        if mounted:
            (world.config / "everything else").unlink()
        else:
            transcript.parent.chmod(0o700)
    finally:
        if mounted:  # lazily: its agents may still be there
            subprocess.run(["umount", "--lazy", str(world.config)], check=True)


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC


def _told_and_ended(world: World) -> Path:
    """The transcript of a conversation that has begun, and that no agent has open."""
    with world.caller() as caller:
        session = ask(caller, world.backend, "one")["conversation"]["sessionId"]
        world.lose_agents(caller)
    return world.config / "projects" / project_key(world.project(world.backend)) / f"{session}.jsonl"


@contextmanager
def _hangs_at_start(world: World) -> Iterator[None]:
    with _program(world, f"exec {shlex.quote(_found('sleep'))} 600"), _stall_timeout(world, 2000):
        yield


@contextmanager
def _killed_at_start(world: World) -> Iterator[None]:
    with _program(world, "kill -9 $$"):
        yield


@contextmanager
def _program(world: World, command: str) -> Iterator[None]:
    """A `claude` that does nothing but this."""
    world.bin.mkdir()
    program = world.bin / "claude"
    program.write_text(f"#!/bin/sh\n{command}\n")
    program.chmod(0o755)
    yield
    program.unlink()


@contextmanager
def _stopped(world: World) -> Iterator[None]:
    """An agent that is there and does nothing, not even end."""
    with _stall_timeout(world, 2000):
        for process in world.agents():
            process.suspend()
        yield


@contextmanager
def _overloaded(world: World) -> Iterator[None]:
    with world.caller() as caller:  # so that its agent is there before the little time begins
        ask(caller, world.backend, "one")
    world.model.script = lambda request: api_error(529)
    with _stall_timeout(world, 5000):
        yield
    world.model.script = seen_so_far


@contextmanager
def _gives_up(world: World) -> Iterator[None]:
    """A model that is overloaded for ever, and an agent that gives it up by itself."""
    world.model.script = lambda request: api_error(529)
    with _team_changed(world, env=world.teams[world.backend]["env"] | {"CLAUDE_CODE_MAX_RETRIES": "1"}):
        yield
    world.model.script = seen_so_far


@contextmanager
def _stall_timeout(world: World, milliseconds: int) -> Iterator[None]:
    world.settings["stallTimeout"] = milliseconds
    _write(world)
    yield
    del world.settings["stallTimeout"]
    _write(world)


@contextmanager
def _daemon_killed(world: World) -> Iterator[None]:
    world.holdfast.kill_daemon()  # the caller's relay starts another
    yield


def _found(program: str) -> str:
    return next(str(path) for part in os.get_exec_path() if (path := Path(part) / program).exists())


UNAVAILABLE = "E_TEAM_UNAVAILABLE"
FAULTS = (
    Fault("the project is gone", _project_gone, "/backend", UNAVAILABLE),
    Fault("the project is gone", _project_gone, "/backend", UNAVAILABLE, When.WAITING),
    Fault("the team is removed", _team_removed, "there is no team", "E_UNKNOWN_TEAM"),
    Fault("the team is removed", _team_removed, "not in teams.json any more", UNAVAILABLE, When.WAITING),
    Fault("the team is removed", _team_removed, "", when=When.RUNNING, question="sleep 4"),
    Fault("the SDK is missing", _no_sdk, "claude-agent-sdk is not installed", UNAVAILABLE, agent="claude"),
    Fault("the disk is full", _no_room, "Check the disk", "E_STORE"),
    Fault("the disk is full", _no_room, "", when=When.RUNNING, question="sleep 1", mended_first=True),
    Fault(
        "a directory is in the transcript's place",
        _in_the_transcripts_place,
        "Is a directory",
        "E_FILE",
        agent="claude",
    ),
    Fault("a .meta.json is cut off", partial(_sidecar, content=b'{"agentType": '), "", agent="claude"),
    Fault("a .meta.json is no text", partial(_sidecar, content=b"\xff\xfe"), "", agent="claude"),
    Fault("a .meta.json is a list", partial(_sidecar, content=b"[]"), "", agent="claude"),
    Fault("a .meta.json is a directory", partial(_sidecar, content=None), ".meta.json", "E_FILE", agent="claude"),
    Fault("no room to restore a transcript", _no_room_to_restore, "/projects", "E_FILE", agent="claude"),
    Fault("the agent is killed as it starts", _killed_at_start, "137", "E_SESSION_CREATION", agent="claude"),
    Fault(
        "the agent is stopped in mid-turn",
        _stopped,
        "no sign of life",
        "E_AGENT_STALLED",
        When.RUNNING,
        question="sleep 600",
        warm=True,
    ),
    Fault("a file is in the project's place", _file_for_project, "/backend is not a directory", UNAVAILABLE),
    Fault(
        "a file is in the project's place", _file_for_project, "/backend is not a directory", UNAVAILABLE, When.WAITING
    ),
    Fault("teams.json is gone", _no_teams_json, "there is no team", "E_UNKNOWN_TEAM"),
    Fault("teams.json is gone", _no_teams_json, "not in teams.json any more", UNAVAILABLE, When.WAITING),
    Fault("teams.json is gone", _no_teams_json, "", when=When.RUNNING, question="sleep 4"),
    Fault("teams.json is half-written", _half_written, ""),
    Fault("teams.json is half-written", _half_written, "", when=When.RUNNING, question="sleep 4"),
    Fault("the agent hangs at its start", _hangs_at_start, "did not get ready", "E_AGENT_STALLED", agent="claude"),
    Fault("the model answers 529 for ever", _overloaded, "which answered 529", "E_AGENT_STALLED", agent="claude"),
    Fault("the model answers 529 for ever, and the agent gives up", _gives_up, "529", "E_AGENT_ERROR", agent="claude"),
    Fault("the daemon is killed", _daemon_killed, "", when=When.RUNNING, question="sleep 1"),
)


def _write(world: World) -> None:
    with registered():
        world.write()


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_every_ask_ends_with_an_answer_or_its_cause_and_the_pool_is_free_again(fault: Fault, tmp_path: Path) -> None:
    with own_world(tmp_path, maxProcesses=1, healthCheckInterval=1000) as world, ExitStack() as until_mended:
        for team in world.teams.values():
            team["agent"] = fault.agent
        if fault.agent == "echo":
            world.holdfast.settings |= offered()
        _write(world)
        if fault.when is When.BEFORE:
            if fault.agent == "echo":
                world.holdfast.serve()
            until_mended.enter_context(fault.plant(world))
        with world.caller() as caller:
            if fault.when is When.WAITING:
                before = _send(caller, world.frontend, "sleep 600")
                _until(caller, world.frontend, "running")
                until_mended.callback(caller.call, "teams_session", operation="cancel", askId=before)
            if fault.warm:
                ask(caller, world.backend, "one")
            asked = caller.ask(
                "tools/call",
                {
                    "name": "teams_ask",
                    "arguments": {"team": world.backend, "question": fault.question, "timeout": TIMEOUT_MS},
                },
            )
            if fault.when is not When.BEFORE:
                with world.caller() as other:
                    _until(other, world.backend, fault.when.name.lower())
                until_mended.enter_context(fault.plant(world))
            if fault.mended_first:
                until_mended.close()
            told = caller.answer(asked, 2 * TIMEOUT_MS / 1000)["result"]
            _check(fault, told)
            until_mended.close()
            _is_free(caller, world)


def _check(fault: Fault, told: dict[str, Any]) -> None:
    if told.get("isError"):
        words = told["content"][0]["text"]
        assert words.startswith(fault.code) and fault.code and fault.ends in words, words
        return
    reply = told["structuredContent"]
    assert reply["status"] == ("failed" if fault.code else "answered"), reply
    assert reply.get("error", "") == fault.code and fault.ends in reply.get("message", ""), reply


def _is_free(caller: Agent, world: World) -> None:
    """Nothing of the fault is left: each team is answered, with one process between them."""

    def at_rest() -> bool:
        return all(
            team["busy"] + team["running"] + team["waiting"] == 0 for team in caller.call("teams_status")["teams"]
        )

    wait_until(at_rest, "nothing is at work")
    for team in (world.backend, world.mobile, world.backend):
        ask(caller, team, "still there?")


def _send(caller: Agent, team: str, message: str) -> str:
    return str(caller.call("teams_send_message", toTeam=team, message=message, waitForResponse=False)["askId"])


def _until(caller: Agent, team: str, state: str) -> None:
    def is_so() -> bool:
        return bool(caller.call("teams_status", team=team)["teams"][0][state])

    wait_until(is_so, f"an ask of {team} is {state}")


@pytest.mark.parametrize("pinned", [False, True], ids=["any machine", "that machine alone"])
def test_an_ask_whose_machine_is_gone_is_taken_over_or_ended_with_that_reason(
    pinned: bool, tmp_path: Path, postgres: PostgresServer
) -> None:
    url = fresh_database(postgres)
    with ExitStack() as stack:
        here, there = (_machine(tmp_path / name, url, stack) for name in ("here", "there"))
        project, outside = tmp_path / "api", tmp_path / "outside"
        for folder in (project, outside):
            folder.mkdir()
        there.serve()
        machine = (there.home / "machine").read_text().strip()
        _pin(there, project, {"machine": machine})
        with Agent(there, outside, session="asker") as caller:
            sent = _send(caller, "api", "sleep 3")
            _until(caller, "api", "running")
        there.kill_daemon()
        _pin(here, project, {"machine": machine} if pinned else {})
        here.serve()
        for one in (here, there):
            one.later(LEASE_MS + 1)
        with Agent(here, outside, session="asker") as caller:
            ended = caller.call("teams_session", operation="wait", askId=sent, timeout=TIMEOUT_MS)
            if pinned:
                assert (ended["status"], ended["error"]) == ("failed", UNAVAILABLE), ended
                assert f'runs on the machine "{machine[:8]}' in ended["message"], ended
                _pin(here, project, {})
            else:
                assert ended["status"] == "answered" and "asked again" in ended["note"], ended
            ask(caller, "api", "still there?")


def test_an_ask_is_cancelled_from_another_machine(tmp_path: Path, postgres: PostgresServer) -> None:
    url = fresh_database(postgres)
    with ExitStack() as stack:
        here, there = (_machine(tmp_path / name, url, stack) for name in ("here", "there"))
        project, outside = tmp_path / "api", tmp_path / "outside"
        for folder in (project, outside):
            folder.mkdir()
        for one in (here, there):
            one.serve()
        machine = (here.home / "machine").read_text().strip()
        for one in (here, there):
            _pin(one, project, {"machine": machine})
        with Agent(here, outside, session="asker") as asker, Agent(there, outside, session="other") as other:
            sent = _send(asker, "api", "sleep 600")
            _until(asker, "api", "busy")
            assert other.call("teams_session", operation="cancel", askId=sent)["status"] == "cancelled"

            def is_idle() -> bool:
                return not asker.call("teams_status", team="api")["teams"][0]["busy"]

            wait_until(is_idle, "its turn was interrupted")
            ask(asker, "api", "still there?")


def _machine(home: Path, url: str, stack: ExitStack) -> Clocked:
    made = Clocked(home)
    made.settings |= {**offered(), "HOLDFAST_DATABASE_URL": url}
    stack.callback(made.close)
    return made


def _pin(machine: Installation, project: Path, more: dict[str, Any]) -> None:
    with registered():
        write_teams(machine, {"maxProcesses": 1}, {"api": {"project": str(project), "agent": "echo", **more}})
