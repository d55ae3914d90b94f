"""The tools as they are listed: small, titled, and naming their siblings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.assembly import make_connections

from holdfast.reasoning.resources import completed_numbers
from holdfast.reasoning.service import Reasoning
from holdfast.reasoning.tools import offer
from holdfast.store.sqlite import SqliteStore
from holdfast.wire.mcp.schema import input_schema
from holdfast.wire.mcp.tools import Tool

pytestmark = pytest.mark.anyio


async def tools(folder: Path) -> dict[str, Tool]:
    store = SqliteStore.open(folder / "holdfast.db")
    offered = offer(Reasoning(store, make_connections(store)))
    await store.close()
    return {tool.name: tool for tool in offered.tools}


def listed_size(tool: Tool) -> int:
    """The bytes of a tool in tools/list, but for annotations."""
    listed = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": input_schema(tool.params),
        "outputSchema": {"type": "object"},
    }
    return len(json.dumps(listed, separators=(",", ":")).encode())


async def test_what_an_agent_carries_of_reasoning_stays_small(tmp_path: Path) -> None:
    offered = await tools(tmp_path)
    assert sum(listed_size(tool) for tool in offered.values()) < 4500
    assert listed_size(offered["thought"]) < 1200


async def test_each_tool_says_whose_it_is_and_which_sibling_does_the_rest(tmp_path: Path) -> None:
    offered = await tools(tmp_path)
    assert set(offered) == {"thought", "init", "session"}
    assert all(tool.title.startswith("[Reasoning] ") for tool in offered.values())
    assert "init" in offered["thought"].description
    assert "thought" in offered["init"].description
    assert "session" in offered["init"].description
    assert "thought" in offered["session"].description
    assert [tool.name for tool in offered.values() if tool.always_load] == ["thought"]
    assert offered["init"].root_argument == "mcpRootUri"


@pytest.mark.parametrize(
    ("typed", "count", "numbers"),
    [
        ("", 3, ["3", "2", "1"]),
        ("1", 12, ["12", "11", "10", "1"]),
        ("4", 3, []),
        ("12", 12, ["12"]),
        ("", 0, []),
    ],
)
def test_thought_numbers_complete_from_what_was_typed(typed: str, count: int, numbers: list[str]) -> None:
    assert completed_numbers(typed, count) == numbers


def test_completion_of_a_huge_session_stays_within_a_hundred() -> None:
    found = completed_numbers("1", 1_000_000)
    assert len(found) == 100
    assert found[0] == "1000000"
