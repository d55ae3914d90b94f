"""Toolsets from outside: a name that there is not is an error, and all of them together stay small."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.catalogue import ask, legacy
from tests.process.agent import Agent
from tests.shared_daemon import Guest

from holdfast.relay.main import HELP, TOOLSETS

LISTED_BYTES = 16 * 1024
KNOWN = "auto, all, core, teams, protocol, bridge"


@pytest.mark.parametrize("toolsets", ["reasoning,briefing", "core,reasoning", "Core", "core,"])
def test_an_unknown_toolset_is_an_error_that_lists_the_known_ones(
    shared_embedded: Guest, project: Path, toolsets: str
) -> None:
    by_option = shared_embedded.run("mcp", "--toolsets", toolsets)
    by_variable = shared_embedded.run("mcp", env={"HOLDFAST_TOOLSETS": toolsets})
    for told, where in ((by_option, "--toolsets"), (by_variable, "HOLDFAST_TOOLSETS")):
        assert told.returncode == 2 and told.stdout == ""
        assert f"{where}: " in told.stderr and f"is not a toolset. Use {KNOWN}." in told.stderr
    # A relay of another version may know other names.
    told_by_daemon = ask(shared_embedded, project, *legacy("tools/list"), toolsets=toolsets)["tools/list"]
    assert KNOWN in told_by_daemon["error"]["message"] and "E_BAD_INPUT" in told_by_daemon["error"]["message"]


def test_every_toolset_that_the_help_names_lists_tools(shared_embedded: Guest, project: Path) -> None:
    shown = re.findall(r"holdfast mcp --toolsets (\S+)", HELP)
    assert shown and all(name in HELP for name in TOOLSETS)
    for toolsets in {*shown, *TOOLSETS}:
        with Agent(shared_embedded, project, env={"HOLDFAST_TOOLSETS": toolsets}) as agent:
            assert agent.request("tools/list")["tools"], toolsets


def test_all_toolsets_together_stay_under_sixteen_kilobytes(shared_embedded: Guest, project: Path) -> None:
    with Agent(shared_embedded, project, env={"HOLDFAST_TOOLSETS": "all"}) as agent:
        answer = agent.answer(agent.ask("tools/list"))
    assert len(json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()) <= LISTED_BYTES
    for tool in answer["result"]["tools"]:
        assert all(schema["description"] for schema in tool["inputSchema"]["properties"].values()), tool["name"]
