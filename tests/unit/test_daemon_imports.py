"""What a daemon has imported when it answers the first hook: an agent's start waits for every one of these modules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LATER = {
    "holdfast.dashboard",
    "holdfast.handoff",
    "holdfast.bridge.chat",
    "holdfast.bridge.managed_delivery",
    "holdfast.bridge.session_file_watch",
    "holdfast.briefing.ledger.folding",
    "holdfast.briefing.sharing",
    "holdfast.agents.claude.run",
    "holdfast.agents.claude.settings",
    "holdfast.agents.claude.transcripts.neutral",
    "holdfast.agents.claude.transcripts.subagents",
    "holdfast.history",
    "holdfast.protocol.checks.gates",
    "holdfast.briefing.ledger.shell",
    "holdfast.git.gate",
    "holdfast.protocol.project.document",
    "holdfast.protocol.serena",
    "holdfast.connections.results",
    "holdfast.reasoning.analysis",
    "holdfast.reasoning.session_browser",
    "holdfast.reasoning.results",
    "holdfast.reasoning.views",
    "holdfast.redaction",
    "holdfast.store.backup.backup",
    "holdfast.store.postgres",
    "holdfast.store.salvage.salvage",
    "holdfast.store.verify",
    "holdfast.wire.http.server",
    "holdfast.wire.mcp.server",
    "anyio",
    "claude_agent_sdk",
    "cryptography",
    "httpx",
    "jinja2",
    "jwt",
    "limits",
    "mcp",
    "mcp_types",
    "psycopg",
    "pydantic",
    "starlette",
    "statistics",
    "tomllib",
    "uvicorn",
}
"""Each costs the first hook milliseconds, some of them hundreds, and says nothing in the answer."""

FIRST_HOOK = """
import asyncio, json, sys
import holdfast.daemon.serve
import holdfast.daemon.daemon
from holdfast.store.from_settings import open_app_store
from holdfast.config import read_settings

home, project = sys.argv[1:]

async def answer():
    store, _ = await open_app_store(read_settings(home=home))
    from holdfast.app import build
    from holdfast.hooks.dispatch import HookContext

    app = build(store, read_settings(home=home), "a machine")
    await app.start()
    payload = {"session_id": "one", "cwd": project, "source": "startup", "hook_event_name": "SessionStart"}
    reply = await app.hooks.handle("SessionStart", HookContext(), json.dumps(payload).encode())
    assert reply.exit_code == 0
    first = sorted(sys.modules)
    app.prepare()
    assert {"statusline", "key-create"} <= {*app.commands()}
    await app.close()
    await store.close()
    return first, sorted(sys.modules)

print(json.dumps(asyncio.run(answer())))
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], set[str]]:
    """The modules that were there when the first hook was answered, and those when all services were made."""
    home, project = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project")
    home.chmod(0o700)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_HOOK, str(home), str(project)], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    first, complete = json.loads(done.stdout)
    return set(first), set(complete)


def test_a_daemon_answers_its_first_hook_without_what_only_others_need(imported: tuple[set[str], set[str]]) -> None:
    first, _ = imported
    assert sorted(first & LATER) == []


def test_a_complete_daemon_leaves_no_module_of_its_own_to_a_hook(imported: tuple[set[str], set[str]]) -> None:
    """What hooks may come to need was imported off the loop."""
    _, complete = imported
    needed = {name for name in LATER if name.startswith("holdfast.") and _hooks_may_use(name)}
    assert needed <= complete


def test_a_daemon_that_nobody_looks_at_has_no_templates(imported: tuple[set[str], set[str]]) -> None:
    _, complete = imported
    assert not complete & {"jinja2", "holdfast.dashboard.site", "holdfast.dashboard.rendering"}


def test_every_module_that_may_not_be_imported_yet_is_one(imported: tuple[set[str], set[str]]) -> None:
    """A module that was renamed would not be looked for any more."""
    source = Path(__file__).parents[2] / "src"
    for name in LATER:
        if name.startswith("holdfast."):
            place = source / name.replace(".", "/")
            assert place.is_dir() or place.with_suffix(".py").is_file(), name


def _hooks_may_use(name: str) -> bool:
    """Not the other engine's, nor what a damaged store, a backup or the MCP side take."""
    others = ("holdfast.store.", "holdfast.wire.", "holdfast.connections.results", "holdfast.briefing.sharing")
    return not name.startswith(others)
