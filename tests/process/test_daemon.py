"""One daemon per home, started when needed, gone when not, and nobody else's business."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.installation import HOLDFAST, Installation, kill_all, wait_until
from tests.process.agent import Agent


def _status(holdfast: Installation) -> dict[str, object]:
    shown = holdfast.run("status", "--json")
    assert shown.returncode == 0, shown.stderr
    return dict(json.loads(shown.stdout))


def _ask_daemon(agent: Agent) -> int:
    """Send a request that no relay answers without a daemon; its id."""
    return agent.ask("tools/call", {"name": "init", "arguments": {"operation": "get_state"}})


def _serving(holdfast: Installation) -> list[psutil.Process]:
    """The processes that serve or are about to."""
    found = []
    for process in holdfast.processes():
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended meanwhile
            if "serve" in process.cmdline():
                found.append(process)
    return found


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A daemon started by hand for the tests of this module that only look at it; nobody else is its client."""
    installation = Installation(tmp_path_factory.mktemp("served") / "holdfast")
    try:
        installation.serve()
        yield installation
    finally:
        installation.close()


def test_status_tells_who_serves(served: Installation, embedded: Installation, project: Path) -> None:
    assert embedded.run("status").returncode == 3, "nobody serves that one"
    with Agent(served, project) as agent:
        agent.request("tools/list")
        status = _status(served)
        assert status["home"] == str(served.home)
        assert str(status["address"]).startswith("http://127.0.0.1:")
        assert status["clients"] == 1
        assert isinstance(status["pid"], int) and isinstance(status["uptime"], float) and status["version"]
    shown = served.run("status").stdout
    assert str(served.home) in shown and "uptime" in shown


def test_a_second_daemon_says_who_holds_the_home(served: Installation) -> None:
    second = served.run("serve")
    assert second.returncode == 1
    assert f"process {served.daemon()}" in second.stderr and "holdfast stop" in second.stderr


def test_the_relay_starts_a_daemon_that_is_nobodys_child_and_holds_nothing_of_its_agents(
    embedded: Installation, project: Path
) -> None:
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    agent = subprocess.Popen(
        [str(HOLDFAST), "mcp"],
        env={**os.environ, **embedded.settings},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=project,
        close_fds=False,
    )
    os.close(write_end)
    wait_until(lambda: embedded.daemon() is not None, "the relay started a daemon")
    daemon = psutil.Process(embedded.daemon())
    assert daemon.ppid() not in (agent.pid, os.getpid())
    assert os.getsid(daemon.pid) != os.getsid(agent.pid)
    agent.communicate(timeout=60)
    assert os.read(read_end, 1) == b"", "the daemon kept a descriptor that it inherited"
    os.close(read_end)
    assert embedded.daemon() == daemon.pid
    assert daemon.cwd() == "/"


def test_twenty_relays_at_once_start_one_daemon_and_take_no_processor_from_it(
    embedded: Installation, project: Path
) -> None:
    """The same after a kill, when all of them miss it."""
    agents = [Agent(embedded, project, era="modern", session=f"agent-{number}") for number in range(20)]
    try:
        asked = [(agent, _ask_daemon(agent)) for agent in agents]
        for agent, number in asked:
            assert "result" in agent.answer(number)
        assert len(_serving(embedded)) == 1
        embedded.kill_daemon()
        asked = [(agent, _ask_daemon(agent)) for agent in agents]
        most, serves = 0, False
        while not serves:
            serves = embedded.daemon() is not None
            most = max(most, len(_serving(embedded)))
        for agent, number in asked:
            assert "result" in agent.answer(number)
        assert 0 < most <= 2, "one that starts, and for a moment the process that it left"
        assert len(_serving(embedded)) == 1
    finally:
        for agent in agents:
            agent.close()


def test_a_daemon_that_is_killed_before_it_serves_is_started_again(embedded: Installation, project: Path) -> None:
    with Agent(embedded, project) as agent:
        asked = _ask_daemon(agent)
        starting: list[psutil.Process] = []
        while not starting:
            starting = _serving(embedded)
        kill_all(starting)
        assert "result" in agent.answer(asked)
        assert embedded.daemon() not in [process.pid for process in starting]


def test_stop_holds_for_running_agents_until_a_new_one_starts(embedded: Installation, project: Path) -> None:
    with Agent(embedded, project) as agent:
        agent.think("before the stop")
        assert embedded.run("stop").returncode == 0
        assert embedded.daemon() is None
        refused = agent.answer(_ask_daemon(agent))
        assert "holdfast stop" in refused["error"]["message"] and "holdfast serve" in refused["error"]["message"]
        assert embedded.daemon() is None
        with Agent(embedded, project) as another:
            assert another.init("load_context")["heldByOthers"], "the first agent is expected back"
            assert agent.init("get_state")["session"]["thoughtCount"] == 1
            assert _status(embedded)["clients"] == 2, "the first relay is back as well"


HOLDING = """
import fcntl, json, os, signal, sys
from dataclasses import asdict
from pathlib import Path
from holdfast.process.home_lock import Holder, make_home

def hold():
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps(asdict(Holder(os.getpid(), "0", False, sys.argv[2]))).encode(), 0)

def told(*_):
    print("the heir was told", flush=True)
    os._exit(0)

home = Path(sys.argv[1])
make_home(home)
lock = os.open(home / "lock", os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
living, alive = os.pipe()
if "heir" in sys.argv and os.fork() == 0:
    signal.signal(signal.SIGTERM, told)
    os.close(alive)
    os.read(living, 1)  # until the first one is gone; the lock is both of theirs, and never free between them
    hold()
    while True:
        signal.pause()
hold()
print("holding", flush=True)
signal.pause()
"""


@contextlib.contextmanager
def _holding(holdfast: Installation, *purpose: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the home; with an heir, which holds it as soon as that one is gone."""
    command = [sys.executable, "-c", HOLDING, str(holdfast.home), *purpose]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "holding\n"
            yield process
        finally:
            process.kill()


def test_stop_also_ends_one_that_took_over_meanwhile(embedded: Installation) -> None:
    with _holding(embedded, "daemon", "heir") as first:
        stopped = embedded.run("stop")
        assert (stopped.returncode, stopped.stderr) == (0, "")
        assert first.wait(60) == -signal.SIGTERM
        assert first.stdout is not None and first.stdout.read() == "the heir was told\n"


def test_stop_ends_nothing_that_is_no_daemon(embedded: Installation) -> None:
    with _holding(embedded, "restore") as restoring:
        stopped = embedded.run("stop")
        assert stopped.returncode == 1
        assert "holdfast restore" in stopped.stderr and "Wait" in stopped.stderr
        assert restoring.poll() is None


def test_an_agent_goes_on_when_serve_by_hand_takes_over_and_when_sigterm_ends_that_one(
    embedded: Installation, project: Path
) -> None:
    with Agent(embedded, project) as agent:
        first = agent.think("on the relay's daemon")
        started = _status(embedded)
        assert started["started_by"] == "relay"
        embedded.serve(another_than=int(str(started["pid"])))
        assert _status(embedded)["started_by"] == "hand"
        reply = agent.think("on the one started by hand")
        assert (reply["sessionId"], reply["thoughtNumber"]) == (first["sessionId"], 2)
        pid = embedded.daemon()
        assert pid is not None
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: embedded.daemon() not in (None, pid), "the relay started another daemon")
        reply = agent.think("on another one of the relay's")
        assert (reply["sessionId"], reply["thoughtNumber"]) == (first["sessionId"], 3)


def test_a_daemon_that_is_being_started_while_stop_is_called_does_not_serve(embedded: Installation) -> None:
    """The daemon that a relay started a moment before finds, once it is up, that it is not wanted any more."""
    assert embedded.run("stop").returncode == 0
    assert embedded.run("serve", "--detach").returncode == 0
    wait_until(lambda: not embedded.processes(), "the daemon ended by itself")
    assert embedded.daemon() is None
    assert (embedded.home / "stopped").exists(), "it stays stopped"


def test_a_daemon_ends_when_nobody_needs_it_or_its_home_was_removed(
    embedded: Installation, project: Path, tmp_path: Path
) -> None:
    """Both notice only from time to time, so they are waited for together."""
    embedded.settings["HOLDFAST_IDLE_EXIT"] = "1s"
    removed = Installation(tmp_path / "removed")
    try:
        with Agent(embedded, project) as agent, Agent(removed, project) as other:
            agent.think("somebody is here")
            other.think("and here")
        pid = removed.daemon()
        assert pid is not None
        shutil.rmtree(removed.home)
        wait_until(lambda: not psutil.pid_exists(pid), "the daemon noticed that its home is gone")
        wait_until(lambda: embedded.daemon() is None, "the daemon that nobody needs ended by itself")
        with Agent(embedded, project) as agent:
            assert agent.init("load_context")["session"]["thoughtCount"] == 1
    finally:
        removed.close()


def test_a_taken_port_is_named_by_serve_and_survived_by_a_relays_daemon(embedded: Installation, project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        embedded.settings["HOLDFAST_PORT"] = str(port)
        refused = embedded.run("serve")
        assert refused.returncode == 1
        assert f"Port {port}" in refused.stderr and f"process {os.getpid()}" in refused.stderr
        with Agent(embedded, project) as agent:
            agent.think("the socket works all the same")
            status = _status(embedded)
            assert status["address"] is None and f"Port {port}" in str(status["http"])
            assert "HTTP is off" in embedded.run("status").stdout


def test_home_socket_and_key_are_for_their_owner_alone(served: Installation) -> None:
    modes = {name: stat.S_IMODE((served.home / name).stat().st_mode) for name in ("daemon.sock", "key", "holdfast.db")}
    assert modes == {"daemon.sock": 0o600, "key": 0o600, "holdfast.db": 0o600}
    assert stat.S_IMODE(served.home.stat().st_mode) == 0o700


KNOCK = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
door = socket.socket(socket.AF_UNIX); door.settimeout(30); door.connect(sys.argv[1])
try:
    door.sendall(b'{"holdfast":"command","name":"status"}\\n')
    told = door.recv(100)
except ConnectionError:
    told = b""
sys.stdout.write(repr(told))
"""


def test_a_process_of_another_user_is_turned_away_even_with_the_door_open(served: Installation) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become another user; tests/unit/test_door.py checks the same rule for everybody")
    door = served.home / "daemon.sock"
    for folder in served.home.parents:
        if folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    served.home.chmod(0o777)
    door.chmod(0o777)
    try:
        knocked = subprocess.run(
            [sys.executable, "-c", KNOCK, str(door)],
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        served.home.chmod(0o700)
        door.chmod(0o600)
    assert knocked.stdout == "b''", knocked.stderr
    assert served.daemon() is not None


def test_a_deep_home_works_through_a_private_runtime_directory(tmp_path: Path, project: Path) -> None:
    deep = Installation(tmp_path / ("deep" * 30) / "holdfast")
    try:
        with Agent(deep, project) as agent:
            agent.think("far down")
        assert deep.daemon() is not None
    finally:
        deep.close()


def test_a_broken_store_setting_is_told_to_the_agent(embedded: Installation, project: Path) -> None:
    embedded.settings["HOLDFAST_DATABASE_URL"] = "postgresql://nobody:hidden@127.0.0.1:1/none"
    embedded.settings["HOLDFAST_DAEMON_WAIT"] = "1"
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "init", "arguments": {}}}
    said: list[str] = []

    def is_told_why() -> bool:
        """A daemon that is not up within a second has not failed yet: the next relay is told."""
        relay = subprocess.run(
            [str(HOLDFAST), "mcp"],
            env=embedded.environment(),
            cwd=project,
            input=json.dumps(call).encode() + b"\n",
            stdout=subprocess.PIPE,
            timeout=60,
        )
        said.append(json.loads(relay.stdout)["error"]["message"])
        return "PostgreSQL" in said[-1]

    wait_until(is_told_why, "the agent is told why no daemon starts")
    assert "holdfast serve" in said[-1]
    assert not any("hidden" in message for message in said)
    assert "hidden" not in (embedded.home / "daemon.log").read_text()
