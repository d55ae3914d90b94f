"""The documentation covers every tool, operation, setting, command and route."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, cast, get_args

import pytest

import holdfast
from holdfast.bridge.chat.telegram import WEBHOOK
from holdfast.bridge.routes import routes as bridge_routes
from holdfast.bridge.tools import offer as offer_bridge
from holdfast.bridge.tools import offer_task
from holdfast.briefing.routes import routes as briefing_routes
from holdfast.briefing.tools import offer as offer_briefing
from holdfast.cli import STANDS_FOR, build_parser
from holdfast.client import Session
from holdfast.connections.model import Reason, State
from holdfast.connections.routes import routes
from holdfast.connections.tools import offer as offer_connections
from holdfast.protocol.routes import routes as protocol_routes
from holdfast.protocol.tools import offer as offer_protocol
from holdfast.reasoning.tools import offer as offer_reasoning
from holdfast.teams.routes import routes as team_routes
from holdfast.teams.tools import offer as offer_teams
from holdfast.wire.http.gate import OPEN_ROUTES, rest_table
from holdfast.wire.http.rest import RestRoute
from holdfast.wire.mcp.catalog import INSTRUCTIONS

OFFERS = (
    offer_briefing,
    offer_reasoning,
    offer_connections,
    offer_teams,
    offer_protocol,
    lambda service: offer_bridge(service, service),
    offer_task,
)
DOCS = Path(__file__).parents[2] / "docs"
SOURCE = Path(str(holdfast.__file__)).parent


def _text(name: str) -> str:
    return (DOCS / name).read_text()


def test_every_tool_parameter_and_operation_is_documented() -> None:
    text = _text("tools.md") + _text("teams.md") + _text("protocol-tools.md") + _text("bridge.md")
    for tool in [tool for offer in OFFERS for tool in offer(cast("Any", _Anything())).tools]:
        assert f"## `{tool.name}`" in text
        for name, field in tool.params.model_fields.items():
            assert f"`{field.alias or name}`" in text, f"{tool.name}: {name}"
            if name == "operation":
                assert all(f"`{operation}`" in text for operation in get_args(field.annotation))


class _Anything:
    """Stands in for a service that is not called."""

    def __getattr__(self, name: str) -> _Anything:
        return self


def _commands() -> list[str]:
    return list(_spelled(build_parser()))


def _spelled(parser: argparse.ArgumentParser, before: str = "") -> Iterator[str]:
    """Every command, and every action that a command has."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield before + name
                yield from _spelled(sub, f"{before}{name} ")


@pytest.mark.parametrize("command", _commands())
def test_every_command_is_documented(command: str) -> None:
    assert f"`holdfast {command}" in _text("commands.md")


@pytest.mark.parametrize("name", STANDS_FOR)
def test_every_other_name_of_a_command_is_documented(name: str) -> None:
    assert f"`holdfast {name}" in _text("commands.md")


ROUTES = rest_table(
    [
        *routes(cast("Any", None)),
        *team_routes(cast("Any", None)),
        *protocol_routes(cast("Any", None)),
        *bridge_routes(cast("Any", None), cast("Any", None)),
        *briefing_routes(cast("Any", None)),
    ]
)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_rest_route_is_documented(route: RestRoute) -> None:
    text = _text("rest.md")
    (line,) = [line for line in text.splitlines() if line.startswith(f"| `{route.method} {route.path}` |")]
    assert f"| {route.scope or 'none'} |" in line
    for name in route.query.model_fields:
        assert f"`{name}`" in line
    assert f"`{route.name}`" in text
    for status in route.answers:
        assert status < 300 or f"| {status} " in text


def test_every_field_of_a_session_and_every_reason_is_documented() -> None:
    text = _text("rest.md")
    for name in [*(field.name for field in fields(Session)), *State, *Reason]:
        assert f"`{name}`" in text, name


def test_every_other_route_is_documented() -> None:
    text = _text("tools.md")
    others = set(re.findall(r'[^t]Route\("(/[^"]*)"', (SOURCE / "wire" / "http" / "gate.py").read_text()))
    for route in {*others, *OPEN_ROUTES, WEBHOOK}:
        assert f"`{route}`" in text
    assert "/mcp" in others


def test_the_instructions_name_exact_tools_within_a_kilobyte() -> None:
    assert len(INSTRUCTIONS.encode()) <= 1024
    for tool in ("thought", "init", "session"):
        assert tool in INSTRUCTIONS


def test_the_map_of_the_tests_names_every_helper() -> None:
    tests = Path(__file__).parents[1]
    told = (tests / "README.md").read_text()
    helpers = [path.relative_to(tests) for path in tests.rglob("*.py") if not path.name.startswith("test_")]
    worlds = "contract/*_world.py" in told
    unnamed = [
        str(helper)
        for helper in helpers
        if f"`{helper}`" not in told
        and helper.name != "conftest.py"
        and not (worlds and helper.name.endswith("_world.py"))
    ]
    assert unnamed == []


def _rows(name: str) -> list[tuple[str, str, list[str]]]:
    """The rows of a table whose last column names tests."""
    lines = [line for line in _text(name).splitlines() if line.startswith("| ") and "`tests/" in line]
    cells = [line.split(" | ") for line in lines]
    return [(first.removeprefix("| "), text, re.findall(r"`(tests/[^`]+)`", tests)) for first, text, tests in cells]


@pytest.mark.parametrize(("where", "sentence", "tests"), _rows("reliability.md"), ids=lambda value: str(value)[:60])
def test_every_promise_about_loss_and_repetition_names_the_test_that_holds_it(
    where: str, sentence: str, tests: list[str]
) -> None:
    written = (DOCS.parent / where).read_text()
    assert " ".join(sentence.split()) in " ".join(written.split()), f"not said in {where}"
    _exist(tests)


@pytest.mark.parametrize(("threat", "promise", "tests"), _rows("security.md"), ids=lambda value: str(value)[:60])
def test_every_line_of_the_threat_model_names_the_test_that_holds_it(
    threat: str, promise: str, tests: list[str]
) -> None:
    assert threat and promise
    _exist(tests)


def _exist(tests: list[str]) -> None:
    assert tests
    for test in tests:
        file, _, name = test.partition("::")
        written = DOCS.parent / file
        assert f"def {name}(" in written.read_text() if name else written.exists(), test
