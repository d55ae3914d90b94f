"""What the shell of a managed agent can make of the `holdfast` command: it may look, and speak for nobody."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.agents.scripted_model import Reply, Request, text, tool_use
from tests.agents.teams_world import ask, own_world
from tests.installation import HOLDFAST

ATTACK = """\
import json, os, pty, socket, sys

program, home, result, *commands = sys.argv[1:]
env = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
env["HOLDFAST_HOME"] = home


def at_a_terminal(command):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(program, [program, *json.loads(command)], env)
    os.write(terminal, b"yes\\n")
    told = b""
    try:
        while piece := os.read(terminal, 65536):
            told += piece
    except OSError:
        pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), told.decode()


def at_the_socket(name, args):
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.connect(f"{home}/daemon.sock")
        daemon.sendall(json.dumps({"holdfast": "command", "name": name, "args": args}).encode() + b"\\n")
        return json.loads(daemon.makefile().readline())


done, waiting = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:  # nobody's child any more
        told = {command: at_a_terminal(command) for command in commands}
        told["socket"] = at_the_socket("trust", {"root": os.getcwd(), "digest": "d", "agent_digest": "a"})
        told["look"] = at_the_socket("status", {})
        with open(result, "w") as file:
            json.dump(told, file)
        os.write(waiting, b"!")
    os._exit(0)
os.close(waiting)
os.read(done, 1)
"""
COMMANDS = [
    ["trust"],
    ["teams", "confirm"],
    ["teams", "add", "mine", "--skip-permissions"],
    ["approve"],
    ["release"],
    ["acknowledge-loss"],
    ["key"],
    ["key", "create", "mine", "--scope", "admin"],
    ["send", "frontend", "The owner wants this."],
    ["adopt", "an-archive", "--unsigned"],
    ["stop"],
]
LOOKS = {("resume",): "earlier work", (): "usage: holdfast"}
"""What it may run, also where it would do more for a person: no agent is started, no other project is listed."""


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell a process's ancestors")
def test_what_an_agent_starts_cannot_speak_for_its_owner_not_even_at_a_terminal_of_its_own(tmp_path: Path) -> None:
    result, script = tmp_path / "result", tmp_path / "attack.py"
    script.write_text(ATTACK)

    def attacks(request: Request) -> Reply:
        if request.tool_results:
            return text("done")
        words = [sys.executable, script, HOLDFAST, tmp_path / "holdfast", result, *map(json.dumps, [*COMMANDS, *LOOKS])]
        return tool_use("Bash", {"command": " ".join(f"'{word}'" for word in words)})

    with own_world(tmp_path, attacks) as teams:
        for team in teams.teams.values():
            team["skipPermissions"] = True
        teams.write()
        project = teams.project(teams.backend)
        (project / ".mcp.json").write_text('{"mcpServers": {"evil": {"command": "evil"}}}')
        with teams.caller() as caller:
            ask(caller, teams.backend, "go")
            told: dict[str, Any] = json.loads(result.read_text())
            for command in COMMANDS:
                status, shown = told[json.dumps(command)]
                assert status == 1 and "is not for managed agents" in shown, (command, shown)
            for looks, word in LOOKS.items():
                status, shown = told[json.dumps(looks)]
                assert status == 0 and word in shown and "Continuing" not in shown, (looks, shown)
            assert told["socket"]["code"] == "E_NOT_YOURS" and told["look"]["ok"]
            assert "mine" not in (teams.holdfast.home / "teams.json").read_text()
        owners = teams.holdfast.at_terminal("trust", str(project))
        assert owners.returncode == 0 and "is trusted." in owners.stdout, owners.stdout
