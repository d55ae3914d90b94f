"""A tool cannot be offered that does not say how a repetition of it is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pytest

from holdfast.wire.mcp.tools import Call, Params, Repetition, Tool


class Plain(Params):
    """No parameters."""


class Several(Params):
    """Two operations."""

    operation: Literal["look", "change"]


async def _handle(call: Call, params: Any) -> dict[str, Any]:
    return {}


def _tool(params: type[Params], repetition: Repetition | Mapping[str, Repetition], *, read_only: bool = False) -> Tool:
    return Tool("tool", "Tool", "A tool", params, _handle, repetition, read_only=read_only)


def test_a_tool_without_a_declaration_is_refused() -> None:
    with pytest.raises(TypeError, match="repetition"):
        Tool("tool", "Tool", "A tool", Plain, _handle)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "declared",
    [
        Repetition.STORED,
        {"look": Repetition.IDEMPOTENT},
        {"look": Repetition.IDEMPOTENT, "change": Repetition.STORED, "more": Repetition.STORED},
    ],
)
def test_every_operation_is_declared_and_nothing_else(declared: Repetition | Mapping[str, Repetition]) -> None:
    with pytest.raises(TypeError, match="tool: declare how a repetition is answered for look, change"):
        _tool(Several, declared)


def test_a_tool_that_only_reads_is_idempotent() -> None:
    with pytest.raises(TypeError, match="only reads"):
        _tool(Plain, Repetition.STORED, read_only=True)


def test_the_operation_of_a_call_decides() -> None:
    tool = _tool(Several, {"look": Repetition.IDEMPOTENT, "change": Repetition.STORED})
    assert tool.operations == ("look", "change")
    assert tool.repetition_of(Several(operation="change")) is Repetition.STORED
    assert _tool(Plain, Repetition.HANDLE).repetition_of(Plain()) is Repetition.HANDLE
