"""What Holdfast costs an agent's context: always, in every project, and for each tool once it is found."""

from __future__ import annotations

import json
from typing import Any, cast

import mcp_types as types
import pytest

from holdfast.app import build
from holdfast.briefing.model import tokens
from holdfast.config import read_settings
from holdfast.relay.main import TOOLSETS
from holdfast.wire.mcp.catalog import INSTRUCTIONS
from holdfast.wire.mcp.server import Wire

CARRIED_TOKENS = 1_000
LOADED = "anthropic/alwaysLoad"
LONGEST_DESCRIPTION = 600
LONGEST_OF_A_PARAMETER = 160
LISTED_BYTES = 16 * 1024
FRAME_TOKENS = 40
"""The heading that Claude Code writes above a server's instructions."""


class _Anything:
    """Stands in for a store that is not asked."""

    def __getattr__(self, name: str) -> _Anything:
        return self


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Wire:
    settings = read_settings({}, home=str(tmp_path_factory.mktemp("home")))
    return build(cast("Any", _Anything()), settings, "this-machine").wire()


@pytest.fixture(scope="module")
def tools(wire: Wire) -> list[types.Tool]:
    """Every tool, as a caller is shown it that has all toolsets."""
    return wire.catalog.listed("all", anonymous=True, root=None)


def _loaded(tool: types.Tool) -> bool:
    return bool((tool.meta or {}).get(LOADED))


def test_what_an_agent_always_carries_stays_under_a_thousand_tokens(tools: list[types.Tool]) -> None:
    names = "\n".join(f"mcp__holdfast__{tool.name}" for tool in tools if not _loaded(tool))
    loaded = [
        {"name": f"mcp__holdfast__{tool.name}", "description": tool.description, "input_schema": tool.input_schema}
        for tool in tools
        if _loaded(tool)
    ]
    assert loaded, "an agent that looks for nothing must still find the way to record and to come back"
    carried = tokens(INSTRUCTIONS) + tokens(names) + tokens(json.dumps(loaded, separators=(",", ":")))
    assert carried + FRAME_TOKENS <= CARRIED_TOKENS


def test_all_toolsets_together_stay_under_sixteen_kilobytes(tools: list[types.Tool]) -> None:
    told = types.ListToolsResult(tools=tools).model_dump_json(by_alias=True, exclude_none=True)
    assert len(told.encode()) <= LISTED_BYTES


def test_every_parameter_has_a_short_description(tools: list[types.Tool]) -> None:
    described = {
        f"{tool.name}.{name}": str(schema.get("description", ""))
        for tool in tools
        for name, schema in tool.input_schema["properties"].items()
    }
    assert {name: text for name, text in described.items() if not 0 < len(text) <= LONGEST_OF_A_PARAMETER} == {}


def test_the_relay_knows_the_toolsets_that_there_are(wire: Wire) -> None:
    assert set(wire.catalog.toolsets) == set(TOOLSETS)


def test_no_description_is_longer_than_it_needs_to_be(tools: list[types.Tool]) -> None:
    lengths = {tool.name: len(tool.description or "") for tool in tools}
    assert {name: length for name, length in lengths.items() if not 0 < length <= LONGEST_DESCRIPTION} == {}


def test_no_two_tools_are_described_alike(tools: list[types.Tool]) -> None:
    assert len({tool.description for tool in tools}) == len({tool.title for tool in tools}) == len(tools)
