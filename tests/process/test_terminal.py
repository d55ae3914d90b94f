"""Every command prints what came from outside without anything that steers a terminal or looks like a line of ours."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pty
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from tests.installation import HOLDFAST, PATIENCE, Installation, wait_until
from tests.process.agent import Agent

from holdfast.agents.claude.transcripts.folder_name import project_key

STEERING = "\x1b[2J\x1b]8;;http:evil\x07x\x1b]8;;\x07\r\x07\x08\x0b\x9b31m\x85\u202e\u2066\u2028\u2029\x7f"
FORGED = "FORGED: all is well"
EVIL = f"evil{STEERING}\n{FORGED}"
RAW = sorted(set(STEERING) - set("[2J]8;http:evilx31m"))
TALK = "11111111-1111-4111-8111-111111111111"

COMMANDS = [
    "status",
    "status --json",
    "audit",
    "audit --json",
    "queue",
    "queue --json",
    "queue EVIL",
    "pull lab",
    "pull lab --json",
    "pull EVIL",
    "send EVIL hello",
    "send lab EVIL",
    "",
    "--json",
    "show",
    "resume",
    "resume --json",
    "resume --print",
    "resume --session EVIL",
    "resume --in EVIL",
    "inbox",
    "inbox lab",
    "inbox lab --json",
    "inbox EVIL",
    "completion teams",
    "saved --all",
    "saved --all --json",
    "import claude --all",
    "find drawer",
    "find drawer --json",
    "find --scan drawer",
    "find EVIL",
    "teams list",
    "teams list --json",
    "teams check",
    "teams stats",
    "teams found",
    "teams adopt EVIL EVIL",
    "teams remove EVIL",
    "teams add EVIL --project .",
    "approve",
    "approve EVIL",
    "key list",
    "key create EVIL",
    "key revoke EVIL",
    "protocol check",
    "protocol show",
    "protocol show --json",
    "protocol validate",
    "protocol validate EVIL",
    "protocol init --dry-run",
    "bridge init --dry-run",
    "trust",
    "trust EVIL",
    "setup claude --dry-run",
    "setup codex --dry-run",
    "handoff . -o ../out.handoff",
    "adopt ../out.handoff --project ../EVIL2",
    "adopt EVIL",
    "backup ../EVIL.backup",
    "verify",
    "verify --json",
    "restore EVIL",
    "pause",
    "resume-recording",
    "pause EVIL",
    "forget .",
    "forget EVIL",
    "acknowledge-loss",
    "doctor",
    "doctor --json",
    "EVIL",
    "status --EVIL",
    "mcp --EVIL",
    "hook EVIL",
    "statusline",
    "stop --home EVIL",
]


def test_no_command_prints_what_steers_a_terminal(embedded: Installation, tmp_path: Path) -> None:
    project = tmp_path / f"shop {EVIL}"
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    _plant(embedded, project)
    printed = 0
    for words in COMMANDS:
        told = _run(embedded, project, words)
        output = told.stdout + told.stderr
        found = [char for char in RAW if char in output.decode(errors="surrogateescape")]
        assert not found, (words, found, output)
        assert not any(line.startswith(FORGED.encode()) for line in output.splitlines()), (words, output)
        assert b"Traceback" not in output, (words, output)
        if "--json" in words and told.stdout:
            json.loads(told.stdout)
        printed += FORGED.encode() in output
    assert printed > len(COMMANDS) / 3, "the planted text is what the commands print"
    log = (embedded.home / "daemon.log").read_text() if (embedded.home / "daemon.log").exists() else ""
    assert not [char for char in RAW if char in log]


def test_tail_prints_what_steers_no_terminal_not_even_on_one(embedded: Installation, project: Path) -> None:
    embedded.serve()
    assert embedded.run("teams", "add", "lab", "--project", str(project)).returncode == 0
    wait_until(lambda: embedded.run("send", "lab", EVIL).returncode == 0, "the team is known")
    with Agent(embedded, project) as agent:
        agent.call("save_task", current_task=EVIL)
    ours, theirs = pty.openpty()
    seen = b""
    with subprocess.Popen(
        [str(HOLDFAST), "tail", "lab"], env=embedded.environment(), stdout=theirs, stderr=theirs, stdin=theirs
    ) as tail:
        os.close(theirs)
        try:
            while FORGED.encode() not in seen:
                seen += os.read(ours, 65536)
        finally:
            tail.terminate()
    os.close(ours)
    text = seen.replace(b"\r\n", b"\n").decode()
    assert not [char for char in RAW if char in text], text


def _plant(embedded: Installation, project: Path) -> None:
    """Put hostile text wherever a client, an agent, a repository or a transcript can."""
    config = embedded.home.parent / "claude"
    embedded.settings["CLAUDE_CONFIG_DIR"] = str(config)
    transcript = config / "projects" / project_key(project) / f"{TALK}.jsonl"
    transcript.parent.mkdir(parents=True)
    said = {"type": "user", "cwd": str(project), "timestamp": "2026-01-31T12:00:00Z"}
    transcript.write_text(json.dumps({**said, "message": {"content": f"the drawer {EVIL}"}}) + "\n")
    (project / ".holdfast").mkdir()
    (project / ".holdfast" / "protocol.toml").write_text(
        f"[gates.{json.dumps(EVIL)}]\ncommand = [{json.dumps(EVIL)}]\n"
    )
    embedded.home.mkdir(mode=0o700)
    lab = embedded.home.parent / "lab"
    lab.mkdir()
    shop = {"project": str(project), "description": EVIL}
    teams = {"teams": {"lab": {"project": str(lab)}, "shop": shop, EVIL: {"project": EVIL}}}
    (embedded.home / "teams.json").write_text(json.dumps(teams))
    (embedded.home / "teams.json").chmod(0o600)
    embedded.serve()
    with Agent(embedded, project, session=EVIL) as agent:
        agent.init("start_new", mcpRootUri=project.as_uri(), title=EVIL)
        agent.think(EVIL)
    with Agent(embedded, lab) as agent:
        agent.call("save_task", current_task=EVIL, last_completed_step=EVIL, pending_messages=[EVIL])
    client = {"name": EVIL, "version": EVIL}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    headers = {"Authorization": f"Bearer {embedded.key()}", "Accept": "application/json, text/event-stream"}
    with httpx2.Client(base_url=embedded.address(), headers=headers, timeout=PATIENCE) as web:
        opened = web.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening})
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        call = {"name": "reconnect_session", "arguments": {"session_id": EVIL, "reconnect_token": EVIL}}
        web.post("/mcp", headers=session, json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
    place = urlsplit(embedded.address())
    with contextlib.closing(http.client.HTTPConnection(str(place.hostname), place.port, timeout=PATIENCE)) as raw:
        raw.putrequest("POST", "/api/mcp/sessions/nobody/reconnect")
        body = b'{"token": "x"}'
        for name, value in (
            ("Authorization", headers["Authorization"].encode()),
            ("Content-Type", b"application/json"),
            ("Content-Length", str(len(body)).encode()),
            ("User-Agent", "x\u202e\u2028\x9b31m".encode()),
        ):
            raw.putheader(name, value)
        raw.endheaders(body)
        assert raw.getresponse().status in (401, 404)


def _run(embedded: Installation, project: Path, words: str) -> subprocess.CompletedProcess[bytes]:
    arguments = [word.replace("EVIL", EVIL) for word in words.split()]
    return subprocess.run(
        [str(HOLDFAST), *arguments],
        env={**embedded.environment(), "HOME": str(embedded.home.parent), "HOLDFAST_DAEMON_WAIT": "20"},
        cwd=project,
        input=json.dumps({"session_id": EVIL, "cwd": str(project)}).encode(),
        capture_output=True,
        timeout=2 * PATIENCE,
    )
