"""Writes src/holdfast/relay/catalogue.json, with which a relay answers before its first daemon is there.

`make catalogue` runs it; tests/process/test_relay_alone.py says when that is due.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import uuid
from pathlib import Path
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
from tests.installation import PATIENCE, Installation

import holdfast.relay
from holdfast.relay import place
from holdfast.relay.session import DISCOVER, INITIALIZE, LISTS
from holdfast.version import __version__

FILE = Path(holdfast.relay.__file__).with_name("catalogue.json")
TOOLSETS = ("core", "teams", "protocol", "bridge")
CLIENT = {"name": "catalogue", "version": "1"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def ask(
    holdfast: Installation,
    cwd: Path,
    *messages: dict[str, Any],
    toolsets: str = "auto",
    session: str | None = None,
) -> dict[str, dict[str, Any]]:
    """What the daemon itself answers on its socket, by method: the part with the result or the error."""
    hello = {
        "holdfast": "relay",
        "version": __version__,
        "relay": uuid.uuid4().hex,
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "cwd": str(cwd),
        "toolsets": toolsets,
        "env": {} if session is None else {"CLAUDE_CODE_SESSION_ID": session},
    }
    requests = [{"jsonrpc": "2.0", "id": message["method"], **message} for message in messages]
    answers: dict[str, dict[str, Any]] = {}
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.settimeout(PATIENCE)
        daemon.connect(place.socket_path(str(holdfast.home)))
        daemon.sendall("".join(json.dumps(line) + "\n" for line in (hello, *requests)).encode())
        with daemon.makefile("rb") as lines:
            while len(answers) < len(requests):
                body = json.loads(lines.readline())
                if "id" in body:
                    answers[body["id"]] = {part: body[part] for part in ("result", "error") if part in body}
    return answers


def legacy(*methods: str, protocol: str = LATEST_HANDSHAKE_VERSION) -> list[dict[str, Any]]:
    """A handshake of this version, then these requests."""
    params = {"protocolVersion": protocol, "capabilities": {}, "clientInfo": CLIENT}
    return [{"method": INITIALIZE, "params": params}, *({"method": method, "params": {}} for method in methods)]


def modern(*methods: str) -> list[dict[str, Any]]:
    """These requests, each with the envelope of the modern era."""
    return [{"method": method, "params": {"_meta": ENVELOPE}} for method in methods]


def make(holdfast: Installation, cwd: Path) -> dict[str, Any]:
    """The catalogue of a daemon, as it answers in a project that has nothing of its own."""
    old = ask(holdfast, cwd, *legacy(*LISTS), toolsets="all")
    new = ask(holdfast, cwd, *modern(DISCOVER, "tools/list"), toolsets="all")
    everywhere = _names(ask(holdfast, cwd, *legacy("tools/list")))
    recognised = _names(ask(holdfast, cwd, *legacy("tools/list"), toolsets="all", session="s"))
    bare = ask(holdfast, cwd, {"method": DISCOVER, "params": {}})
    toolsets = {
        name: each for each in TOOLSETS for name in _names(ask(holdfast, cwd, *legacy("tools/list"), toolsets=each))
    }
    listed, discovered = new["tools/list"]["result"], new[DISCOVER]["result"]
    shared = {name: value for name, value in listed.items() if name != "tools"}
    shaken = {name: value for name, value in old[INITIALIZE]["result"].items() if name != "protocolVersion"}
    return {
        "legacy": {
            "versions": list(HANDSHAKE_PROTOCOL_VERSIONS),
            INITIALIZE: shaken,
            "no_discover": bare[DISCOVER]["error"],
        },
        "modern": {
            "version": LATEST_MODERN_VERSION,
            "result": shared,
            DISCOVER: {name: value for name, value in discovered.items() if shared.get(name) != value},
        },
        **{name: old[name]["result"] for name in LISTS if name != "tools/list"},
        "tools/list": [
            {
                "toolset": toolsets[tool["name"]],
                "everywhere": tool["name"] in everywhere,
                **({} if tool["name"] in recognised else {"for_anonymous": True}),
                "tool": tool,
            }
            for tool in old["tools/list"]["result"]["tools"]
        ],
    }


def _names(answers: dict[str, dict[str, Any]]) -> set[str]:
    return {tool["name"] for tool in answers["tools/list"]["result"]["tools"]}


def main() -> None:
    """Ask a new daemon, and write the file."""
    with tempfile.TemporaryDirectory() as folder:
        holdfast_home = Installation(Path(folder) / "holdfast")
        project = Path(folder) / "project"
        project.mkdir()
        try:
            holdfast_home.serve()
            made = make(holdfast_home, project)
        finally:
            holdfast_home.close()
    FILE.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    print(f"{FILE}: {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
