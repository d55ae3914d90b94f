"""The documentation covers every tool, operation, setting, command and route."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, cast, get_args

import pytest

import holdfast
from holdfast.cli import build_parser
from holdfast.config import Settings
from holdfast.reasoning.tools import offer
from holdfast.wire.catalog import INSTRUCTIONS
from holdfast.wire.http import OPEN_ROUTES

DOCS = Path(__file__).parents[2] / "docs"
SOURCE = Path(str(holdfast.__file__)).parent


def _text(name: str) -> str:
    return (DOCS / name).read_text()


def test_every_tool_parameter_and_operation_is_documented() -> None:
    text = _text("tools.md")
    for tool in offer(cast("Any", _Anything())).tools:
        assert f"## `{tool.name}`" in text
        for name, field in tool.params.model_fields.items():
            assert f"`{field.alias or name}`" in text, f"{tool.name}: {name}"
            if name == "operation":
                assert all(f"`{operation}`" in text for operation in get_args(field.annotation))


class _Anything:
    """Stands in for a service that is not called."""

    def __getattr__(self, name: str) -> _Anything:
        return self


def test_every_setting_is_documented() -> None:
    text = _text("settings.md")
    read = {name for file in SOURCE.rglob("*.py") for name in re.findall(r"HOLDFAST_[A-Z_]+", file.read_text())}
    internal = {"HOLDFAST_BRIEFING", "HOLDFAST_MANAGED", "HOLDFAST_TEAM"}
    for name in read - internal:
        assert f"`{name}`" in text, name
    for field in Settings.__slots__:
        assert field in Settings.__annotations__


def _commands() -> list[str]:
    actions = build_parser()._actions
    (commands,) = [action for action in actions if isinstance(action, argparse._SubParsersAction)]
    return list(commands.choices)


@pytest.mark.parametrize("command", _commands())
def test_every_command_is_documented(command: str) -> None:
    assert f"`holdfast {command}" in _text("commands.md")


def test_every_route_is_documented() -> None:
    text = _text("tools.md")
    routes = set(re.findall(r'Route\("(/[^"]*)"', (SOURCE / "wire" / "http.py").read_text()))
    assert routes >= OPEN_ROUTES
    for route in routes:
        assert f"`{route}`" in text


def test_the_instructions_name_exact_tools_within_a_kilobyte() -> None:
    assert len(INSTRUCTIONS.encode()) <= 1024
    for tool in ("thought", "init", "session"):
        assert tool in INSTRUCTIONS
