"""Starting: how long an agent waits for its tools and its first hook, with and without a daemon that runs."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.hooks import Unexpected, timed
from bench.peers import PeerMissing, sequential_thinking
from bench.report import Effort, Progress, Row, compare, milliseconds
from bench.served import Served, neutral_environment
from bench.stdio import StdioServer, time_to_tools
from bench.workshop import scratch

PEER_TARGET = 0.2
COLD_TARGET = 1.5
HOOK_TARGET = 0.7
WARM_TARGET = 1.05
"""A warm relay must be no slower than before; a twentieth is what medians of the same tree differ by."""
SDK = "import mcp.server.lowlevel.server, mcp.server.streamable_http_manager"


@dataclass(frozen=True, slots=True)
class Tree:
    """An installed checkout: this one, or an earlier one to compare it with."""

    python: Path

    @property
    def holdfast(self) -> str:
        return str(self.python.with_name("holdfast"))

    @property
    def relay(self) -> tuple[str, ...]:
        return self.holdfast, "mcp"

    def hook_client(self) -> str:
        """Where this tree's hook client is."""
        program = "import holdfast.relay, os; print(os.path.dirname(holdfast.relay.__file__))"
        told = subprocess.run([str(self.python), "-c", program], capture_output=True, text=True, check=True)
        return str(Path(told.stdout.strip()) / "hook.py")


THIS = Tree(Path(sys.executable))


@dataclass(slots=True)
class Times:
    """What was measured of one tree, in seconds."""

    warm: list[float] = field(default_factory=list)
    """tools/list through a new relay, with a daemon that runs."""
    cold: list[float] = field(default_factory=list)
    """The same with none running, where one has been before."""
    first: list[float] = field(default_factory=list)
    """The same where there has never been one, in an empty HOME."""
    hook: list[float] = field(default_factory=list)
    """A session-start hook with no daemon running: from its start to its answer."""
    call: list[float] = field(default_factory=list)
    """A tool's first reply with no daemon running."""


def measure(effort: Effort, progress: Progress) -> list[Row]:
    """All of it in turn, so that a busy moment of the machine is everybody's."""
    trees = [THIS] + ([] if effort.before is None else [Tree(effort.before / ".venv" / "bin" / "python")])
    times = [Times() for _ in trees]
    sdk: list[float] = []
    with scratch() as place:
        clients = [tree.hook_client() for tree in trees]
        for number in range(effort.daemon_starts + 1):
            for tree, taken, client in zip(trees, times, clients, strict=True):
                round_of = Times() if number == 0 else taken  # the first round reads the files from the disk
                _cold_round(tree, round_of, client, place / f"{number}-{trees.index(tree)}")
            sdk.append(timed((str(THIS.python), "-c", SDK), b"", neutral_environment(), place)[0])
            progress("starts without a daemon", number, effort.daemon_starts)
        for tree, taken in zip(trees, times, strict=True):
            _warm(tree, taken, effort, place / f"warm-{trees.index(tree)}")
    return [*_rows(effort, times, sdk), _beside_the_peer(effort, progress)]


def _cold_round(tree: Tree, taken: Times, client: str, place: Path) -> None:
    place.mkdir()
    env = {**neutral_environment(), "HOME": str(place), "HOLDFAST_PORT": "0"}
    home = place / ".holdfast"
    taken.first.append(time_to_tools(tree.relay, env, place))
    _stop(tree, env)
    taken.cold.append(time_to_tools(tree.relay, env, place))
    _stop(tree, env)
    with StdioServer(tree.relay, env, place) as server:
        server.initialize()
        server.call("thought", {"thought": "Something to be told of.", "nextThoughtNeeded": True})
        taken.call.append(time.perf_counter() - server.started)
    _stop(tree, env)
    (home / "stopped").unlink()  # a hook does not start again what a person stopped
    payload = json.dumps({"session_id": "bench", "cwd": str(place), "source": "startup"}).encode()
    command = (str(tree.python), "-I", "-S", client, "SessionStart")
    seconds, told = timed(command, payload, {**env, "HOLDFAST_HOME": str(home)}, place)
    if b"additionalContext" not in told:
        raise Unexpected(told.decode(errors="replace") or "the hook was not answered")
    taken.hook.append(seconds)
    _stop(tree, env)


def _stop(tree: Tree, env: Mapping[str, str]) -> None:
    subprocess.run([tree.holdfast, "stop"], env=dict(env), check=True, stdout=subprocess.DEVNULL)


def _warm(tree: Tree, taken: Times, effort: Effort, home: Path) -> None:
    with Served(home, (tree.holdfast, "serve")) as daemon:
        time_to_tools(tree.relay, daemon.env, home)
        taken.warm += [time_to_tools(tree.relay, daemon.env, home) for _ in range(effort.starts)]


def _rows(effort: Effort, times: list[Times], sdk: list[float]) -> list[Row]:
    now, *before = times
    starts = f"median of {effort.daemon_starts}"
    alone = statistics.median(sdk[1:])
    rows = [
        compare(
            f"tools/list with no daemon running, {starts}", now.cold, now.warm, theirs_is="warm", target=COLD_TARGET
        ),
        compare(
            f"tools/list on a machine that never had a daemon, {starts}",
            now.first,
            now.warm,
            theirs_is="warm",
            target=COLD_TARGET,
        ),
        _shown(f"first hook with no daemon running, {starts}", now.hook, alone),
        _shown(f"first tool call with no daemon running, {starts}", now.call, alone),
    ]
    for old in before:
        rows += [
            compare(
                f"first hook with no daemon running, {starts}",
                now.hook,
                old.hook,
                theirs_is="before",
                target=HOOK_TARGET,
            ),
            compare(f"first tool call with no daemon running, {starts}", now.call, old.call, theirs_is="before"),
            compare(f"tools/list with no daemon running, {starts}", now.cold, old.cold, theirs_is="before"),
            compare(
                f"tools/list with a daemon running, median of {effort.starts}",
                now.warm,
                old.warm,
                theirs_is="before",
                target=WARM_TARGET,
            ),
        ]
    return rows


def _shown(what: str, ours: list[float], sdk: float) -> Row:
    """A row without a target, with what the MCP SDK's import alone costs beside it."""
    median = statistics.median(ours)
    return Row(what, milliseconds(median), f"{milliseconds(sdk)} (import of the SDK alone)", median / sdk)


def _beside_the_peer(effort: Effort, progress: Progress) -> Row:
    """Start relay and peer in turn, each until its tools are listed."""
    what = f"cold start to tools/list, median of {effort.starts}"
    try:
        peer = sequential_thinking()
    except PeerMissing as missing:
        return Row(f"{what} ({missing})", "")
    ours: list[float] = []
    theirs: list[float] = []
    with scratch() as place, Served(place / "home") as daemon:
        # The first start of each reads its files from the disk; that is the machine's cold start, not the server's.
        time_to_tools(THIS.relay, daemon.env, place)
        time_to_tools(peer.command, peer.env, place)
        for done in range(effort.starts):
            ours.append(time_to_tools(THIS.relay, daemon.env, place))
            theirs.append(time_to_tools(peer.command, peer.env, place))
            progress("cold starts", done + 1, effort.starts)
    return compare(what, ours, theirs, theirs_is=f"node {peer.version}", target=PEER_TARGET)
