"""The relay as an agent meets it: a process with three streams, in good and bad times."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.process.fake_daemon import FakeDaemon
from tests.process.relay_process import CLEAN, LIMIT, RelayProcess, eventually, ps

from holdfast.relay import place
from holdfast.relay.lines import MAX_LINE
from holdfast.version import __version__

Json = dict[str, Any]


def request(id: int | str, method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


INITIALIZE = request(0, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}})
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    directory.mkdir(mode=0o700)
    return directory


def shake_hands(relay: RelayProcess) -> None:
    relay.write(INITIALIZE, INITIALIZED)
    assert relay.read()["id"] == 0


def starts(home: Path) -> list[str]:
    log = home.parent / "started"
    return [line for line in log.read_text().splitlines() if line != "/"] if log.exists() else []


def test_the_first_line_tells_the_daemon_who_connects_and_no_secret(home: Path) -> None:
    env = {"CLAUDE_CODE_SESSION_ID": "s-1", "CLAUDE_PROJECT_DIR": "/p", "ANTHROPIC_API_KEY": "sk-secret"}
    with FakeDaemon(home) as daemon, RelayProcess(home, "--toolsets", "core,teams", env=env) as relay:
        shake_hands(relay)
        (hello,) = daemon.server.hellos
        assert len(hello.pop("relay")) == 32
        assert hello == {
            "holdfast": "relay",
            "version": __version__,
            "pid": relay.process.pid,
            "ppid": os.getpid(),
            "cwd": os.getcwd(),
            "toolsets": "core,teams",
            "env": {"CLAUDE_CODE_SESSION_ID": "s-1", "CLAUDE_PROJECT_DIR": "/p"},
        }


def test_a_restarted_daemon_is_greeted_by_the_same_relay(home: Path) -> None:
    with RelayProcess(home) as relay:
        with FakeDaemon(home) as first:
            shake_hands(relay)
        with FakeDaemon(home) as second:
            relay.write(request(1, "resources/read"))
            assert "result" in relay.read()
            assert first.server.hellos == second.server.hellos
            assert second.server.methods() == ["initialize", "notifications/initialized", "resources/read"]


def test_an_idle_relay_comes_back_to_a_restarted_daemon_by_itself(home: Path) -> None:
    with RelayProcess(home) as relay:
        with FakeDaemon(home):
            shake_hands(relay)
        with FakeDaemon(home) as second:
            eventually(lambda: "initialize" in second.server.methods(), "the relay repeats its handshake")


def test_a_late_answer_to_a_dead_daemons_question_is_dropped(home: Path) -> None:
    with FakeDaemon(home) as daemon, RelayProcess(home) as relay:
        shake_hands(relay)
        relay.write(request(1, "test/ask"))
        first = relay.read()
        daemon.drop_connections()
        cancelled, second = relay.read(), relay.read()
        assert cancelled["params"]["requestId"] == first["id"]
        assert second["method"] == "roots/list"
        relay.write({"jsonrpc": "2.0", "id": first["id"], "result": {"roots": []}}, request(2, "resources/read"))
        assert relay.read()["id"] == 2
        assert not [body for body in daemon.server.seen if body.get("result") == {"roots": []}]
        relay.write({"jsonrpc": "2.0", "id": second["id"], "result": {"roots": []}}, request(3, "resources/read"))
        assert relay.read()["id"] == 3
        assert [body["id"] for body in daemon.server.seen if body.get("result") == {"roots": []}] == [1]


def test_a_cancelled_call_is_not_repeated_to_the_next_daemon(home: Path) -> None:
    with FakeDaemon(home) as daemon, RelayProcess(home) as relay:
        shake_hands(relay)
        relay.write(request(1, "test/silence"))
        relay.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        relay.write(request(2, "resources/read"))
        assert relay.read()["id"] == 2
        assert "notifications/cancelled" in daemon.server.methods()
        daemon.drop_connections()
        relay.write(request(3, "resources/read"))
        assert relay.read()["id"] == 3
        assert daemon.server.methods().count("test/silence") == 1


def test_a_line_of_a_hundred_megabytes_is_answered_and_never_held(home: Path) -> None:
    with FakeDaemon(home), RelayProcess(home) as relay:
        shake_hands(relay)
        relay.write_raw(b'{"method":"tools/call","params":{"id":1,"text":"')
        piece = b"x" * 1024 * 1024
        for _ in range(100):
            relay.write_raw(piece)
        relay.write_raw(b'"},"jsonrpc":"2.0","id":"last"}\n')
        answer = relay.read()
        assert answer["id"] == "last"
        assert str(MAX_LINE) in answer["error"]["message"]
        relay.write(request(1, "resources/read"))
        assert relay.read()["id"] == 1
        assert relay.peak_kib() < 60 * 1024


def test_an_unreadable_line_is_answered_and_the_next_one_served(home: Path) -> None:
    with FakeDaemon(home), RelayProcess(home) as relay:
        shake_hands(relay)
        relay.write_raw(b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"a":"\\ud800"}}\n')
        relay.write(request(6, "resources/read"))
        answers = {body["id"]: body for body in (relay.read(), relay.read())}
        assert answers[5]["error"]["code"] == -32700
        assert "result" in answers[6]


def test_thirty_calls_of_a_megabyte_each_are_answered_whole(home: Path) -> None:
    with FakeDaemon(home) as daemon, RelayProcess(home) as relay:
        shake_hands(relay)
        text = "x" * 1_000_000
        for n in range(1, 31):
            relay.write(request(n, "tools/call", {"name": "r", "arguments": {"text": f"{n}{text}"}}))
        for n in range(1, 31):
            (*_, answer) = relay.read_until_answer(n)
            assert answer["result"]["content"][0]["text"] == f"{n}{text}"
        assert set(daemon.server.effects.values()) == {1}


def test_answers_that_are_still_out_arrive_after_the_agent_closed_its_end(home: Path) -> None:
    with RelayProcess(home) as relay:
        relay.write(INITIALIZE, request(1, "resources/read"))
        relay.stdin.close()
        with FakeDaemon(home):
            assert relay.process.wait(LIMIT) == 0
            assert [body["id"] for body in relay.rest()] == [0, 1]


def test_an_answer_that_does_not_come_after_the_agent_closed_its_end_is_an_error_that_says_so(home: Path) -> None:
    with FakeDaemon(home), RelayProcess(home, env={"HOLDFAST_DAEMON_WAIT": "0.5"}) as relay:
        shake_hands(relay)
        relay.write(request(1, "test/silence"))
        assert relay.hang_up() == 0
        (answer,) = relay.rest()
        assert answer["id"] == 1 and "input ended, and there was no answer within 0.5 s" in answer["error"]["message"]


def test_a_last_line_without_a_newline_is_served(home: Path) -> None:
    with FakeDaemon(home), RelayProcess(home) as relay:
        relay.write_raw(json.dumps(INITIALIZE).encode())
        assert relay.hang_up() == 0
        assert [body["id"] for body in relay.rest()] == [0]


def test_an_agent_that_does_not_read_slows_the_daemon_down_and_loses_nothing(home: Path) -> None:
    count, text = 130, "x" * 1_000_000  # more than the relay may ever need
    with FakeDaemon(home) as daemon, RelayProcess(home, reading=False) as relay:
        relay.write(INITIALIZE)
        eventually(lambda: daemon.server.methods() == ["initialize"], "the relay is connected")
        told: list[int] = []

        def tell() -> None:
            for n in range(count):
                params = {"level": "info", "data": text, "logger": str(n)}
                daemon.say({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
                told.append(n)

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        eventually(lambda: len(told) > 14, "the relay has taken what it may hold")
        relay.start_reading()
        assert relay.read()["id"] == 0
        assert [relay.read()["params"]["logger"] for _ in range(count)] == [str(n) for n in range(count)]
        teller.join(LIMIT)
        assert relay.peak_kib() < 100 * 1024


def test_an_open_subscription_stream_does_not_keep_the_relay_from_leaving(home: Path) -> None:
    with FakeDaemon(home), RelayProcess(home) as relay:
        shake_hands(relay)
        relay.write(request("l", "subscriptions/listen", {"notifications": {}}))
        assert relay.read()["method"] == "notifications/subscriptions/acknowledged"
        assert relay.hang_up() == 0
        assert relay.rest() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_relay_without_a_word(home: Path, number: signal.Signals) -> None:
    with FakeDaemon(home), RelayProcess(home) as relay:
        shake_hands(relay)
        relay.write(request(1, "test/silence"))
        relay.process.send_signal(number)
        assert relay.process.wait(LIMIT) in (-signal.SIGTERM, 130)
        assert relay.rest() == []
        assert relay.errors() == ""


def test_a_relay_whose_agent_reads_no_more_ends(home: Path) -> None:
    with FakeDaemon(home):
        reader, writer = os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "mcp"],
            stdin=subprocess.PIPE,
            stdout=writer,
            env={**CLEAN, "HOLDFAST_HOME": str(home)},
        )
        os.close(writer)
        os.close(reader)
        assert process.wait(LIMIT) == 0
        assert process.stdin is not None
        process.stdin.close()


def test_without_a_daemon_a_call_fails_with_the_reason_and_the_relay_goes_on(home: Path) -> None:
    (home / "daemon.err").write_text("The port 8181 is taken.\n")
    with RelayProcess(home, env={"HOLDFAST_DAEMON_WAIT": "0.5"}) as relay:
        relay.write(request(1, "resources/read"))
        error = {
            "code": -32000,
            "message": "No Holdfast daemon could be reached within 0.5 s: The port 8181 is taken."
            " Run `holdfast serve` to see why; the relay goes on trying and this call can be repeated.",
        }
        assert relay.read() == {"jsonrpc": "2.0", "id": 1, "error": error}
        with FakeDaemon(home):
            shake_hands(relay)
            relay.write(request(2, "resources/read"))
            assert relay.read_until_answer(2)[-1]["result"] == {}


def test_a_relay_that_finds_no_daemon_starts_one_that_is_not_its_child(tmp_path: Path) -> None:
    home = tmp_path / "not" / "there" / "yet"
    home.parent.mkdir(parents=True)
    with RelayProcess(home, env={"CLAUDE_CODE_SESSION_ID": "s-1"}) as relay:
        eventually(lambda: starts(home), "a daemon is started")
        assert starts(home)[0] == f"-P -m holdfast serve --detach --home {home}"
        assert (home.parent / "started").read_text().startswith("/\n")
        assert relay.process.pid not in [parent for (parent,) in ps("ppid")]
        assert home.stat().st_mode & 0o777 == 0o700
        assert (home / "daemon.log").stat().st_mode & 0o777 == 0o600


def test_a_home_that_cannot_be_made_is_the_reason_given(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with RelayProcess(
        tmp_path / "file" / "home", env={"HOLDFAST_DAEMON_WAIT": "0.3"}, starter=Path("/bin/true")
    ) as relay:
        relay.write(request(1, "resources/read"))
        assert "Not a directory" in relay.read()["error"]["message"]


def test_a_stopped_daemon_stays_stopped_for_running_relays_until_it_is_served_again(home: Path) -> None:
    with RelayProcess(home) as relay:
        with FakeDaemon(home):
            shake_hands(relay)
            relay.write(request(1, "test/silence"), request(2, "resources/read"))
            assert relay.read()["id"] == 2
            (home / "stopped").write_text("")
        assert relay.read()["error"]["message"].startswith("Holdfast was stopped with `holdfast stop`.")
        relay.write(request(3, "resources/read"))
        refusal = relay.read()
        assert refusal["id"] == 3
        assert "holdfast serve" in refusal["error"]["message"]
        assert starts(home) == []
        with FakeDaemon(home):
            relay.write(request(4, "resources/read"))
            assert "result" in relay.read()


def test_a_new_relay_lifts_the_stop(home: Path) -> None:
    (home / "stopped").write_text("")
    with RelayProcess(home):
        eventually(lambda: starts(home), "a daemon is started")
        assert not (home / "stopped").exists()


def test_a_daemon_that_steps_down_is_replaced_at_its_own_address(home: Path) -> None:
    """The successor is started while the older one is still there: it goes only when one waits for its place."""
    with ExitStack() as stack:
        with FakeDaemon(home) as older:
            older.greeting = lambda _: {
                "holdfast": "step-down",
                "version": "0.0.1",
                "host": "127.0.0.1",
                "port": 8199,
            }
            relay = stack.enter_context(RelayProcess(home))
            relay.write(INITIALIZE)
            eventually(lambda: older.connections >= 2, "the relay looks whether the old daemon is gone")
            eventually(lambda: starts(home), "a successor is started")
        assert starts(home)[0].endswith("--host 127.0.0.1 --port 8199")
        with FakeDaemon(home):
            assert relay.read()["id"] == 0


def test_a_refusal_is_told_to_each_caller_and_can_end(home: Path) -> None:
    with FakeDaemon(home) as daemon:
        welcome = daemon.greeting
        daemon.greeting = lambda _: {"holdfast": "refused", "message": "Too many clients. Close one."}
        with RelayProcess(home) as relay:
            for id in (1, 2):
                relay.write(request(id, "resources/read"))
                refusal = relay.read()
                assert (refusal["id"], refusal["error"]["message"]) == (id, "Too many clients. Close one.")
            daemon.greeting = welcome
            eventually(lambda: daemon.server.hellos and relay_is_served(relay, daemon), "the relay is welcomed")


def relay_is_served(relay: RelayProcess, daemon: FakeDaemon) -> bool:
    relay.write(INITIALIZE)
    return "result" in relay.read()


def test_a_daemon_of_another_version_is_named_once_for_each_of_its_lives(home: Path) -> None:
    with FakeDaemon(home) as daemon:
        daemon.greeting = lambda _: {"holdfast": "welcome", "version": "0.0.7", "pid": 4711}
        with RelayProcess(home) as relay:
            shake_hands(relay)
            daemon.drop_connections()
            relay.write(request(1, "resources/read"))
            assert relay.read()["id"] == 1
            daemon.greeting = lambda _: {"holdfast": "welcome", "version": "0.0.7", "pid": 4712}
            daemon.drop_connections()
            relay.write(request(2, "resources/read"))
            assert relay.read()["id"] == 2
            assert relay.hang_up() == 0
            relay.rest()
            note = f"holdfast mcp {__version__} talks to a daemon of version 0.0.7\n"
            eventually(lambda: relay.errors() == note * 2, "two lives, two notes")


def test_something_else_on_the_socket_is_not_taken_for_a_daemon(home: Path) -> None:
    with FakeDaemon(home) as daemon:
        daemon.greeting = lambda _: {"hello": "I am a web server"}
        with RelayProcess(home, env={"HOLDFAST_DAEMON_WAIT": "0.5"}) as relay:
            relay.write(request(1, "resources/read"))
            assert "is not a Holdfast daemon" in relay.read()["error"]["message"]


def test_a_home_too_deep_for_a_socket_is_served_through_the_pointer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = tmp_path / "r"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    home = tmp_path / ("d" * 100) / "home"
    home.mkdir(parents=True)
    path = place.socket_place(str(home))
    assert place.socket_path(str(home)) == path
    with FakeDaemon(home, path=path), RelayProcess(home) as relay:
        shake_hands(relay)


@pytest.mark.parametrize(
    ("args", "env", "says"),
    [
        (["--port", "1"], {}, "--port: unknown option."),
        (["--home"], {}, "--home: a value is missing."),
        (["--toolsets=a b"], {}, "--toolsets: 'a b' is not a toolset. Use auto, all, core, teams, protocol, bridge."),
        ([], {"HOLDFAST_DAEMON_WAIT": "soon"}, "HOLDFAST_DAEMON_WAIT: must be seconds"),
        ([], {"HOLDFAST_DAEMON_WAIT": "nan"}, "HOLDFAST_DAEMON_WAIT: must be seconds"),
    ],
)
def test_bad_usage_is_named_and_nothing_is_started(home: Path, args: list[str], env: Json, says: str) -> None:
    with RelayProcess(home, *args, env=env) as relay:
        assert relay.process.wait(LIMIT) == 2
        assert relay.rest() == []
        eventually(lambda: says in relay.errors(), says)
        assert starts(home) == []


def test_help_explains_the_options_with_examples(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "mcp", "--help"], capture_output=True, text=True, check=True
    )
    for word in ("--toolsets", "HOLDFAST_TOOLSETS", "--home", "HOLDFAST_HOME", "examples:"):
        assert word in done.stdout


def test_the_same_line_twice_is_two_calls(home: Path) -> None:
    with FakeDaemon(home) as daemon, RelayProcess(home) as relay:
        shake_hands(relay)
        for id in (1, 2):
            relay.write(request(id, "tools/call", {"name": "r", "arguments": {"text": "same"}}))
            relay.read_until_answer(id)
        assert json.dumps(daemon.server.effects) == '{"same": 2}'
