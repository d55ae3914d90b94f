"""Every setting that is documented is read, and every setting that is read is documented."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

import holdfast
from holdfast.agents.registry import runnable
from holdfast.cli import build_parser
from holdfast.config import Settings
from holdfast.protocol.project import gate_settings, settings
from holdfast.relay.main import HELP
from holdfast.teams.config import PROJECT_KEYS, SETTINGS, TEAM_FIELDS

DOCS = Path(__file__).parents[2] / "docs"
SOURCE = Path(str(holdfast.__file__)).parent
INTERNAL = {
    "HOLDFAST_LAUNCHER",
    "HOLDFAST_MANAGED",
    "HOLDFAST_TEAM",
    "HOLDFAST_SESSION_LOCK",
    "HOLDFAST_STARTING",
    "HOLDFAST_STARTED_FOR_HOOK",
    "HOLDFAST_LOCK",
    "HOLDFAST_SALVAGING",
}
"""What processes of Holdfast tell each other; nobody sets it."""
OF_CLAUDE_CODE = {"MCP_TIMEOUT", "MCP_TOOL_TIMEOUT"}
"""Passed on to managed agents."""


@cache
def _modules() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}


@cache
def _texts() -> frozenset[str]:
    """Every text in the code that is no documentation."""
    found: set[str] = set()
    for module in _modules().values():
        documentation = {
            id(node.value)
            for node in ast.walk(module)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        found |= {
            node.value
            for node in ast.walk(module)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
        }
    return frozenset(found)


@cache
def _read_attributes(*but: str) -> set[str]:
    """Every attribute that is read anywhere but in these modules."""
    return {
        node.attr
        for path, module in _modules().items()
        if path.relative_to(SOURCE).as_posix() not in but
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def _rows(document: str, heading: str) -> set[str]:
    """The names in the first column of the first table after a heading."""
    lines = iter((DOCS / document).read_text().splitlines())
    while not next(lines).startswith(heading):
        pass
    names: set[str] = set()
    for line in lines:
        if line.startswith("| `"):
            names |= set(re.findall(r"`([^`]+)`", line.split(" | ")[0]))
        elif names:
            return names
    return names


# -- environment variables --------------------------------------------------------------------------------------------


def test_every_documented_variable_is_read_and_every_variable_that_is_read_is_documented() -> None:
    documented = _rows("settings.md", "# Settings")
    read = {text for text in _texts() if re.fullmatch(r"(HOLDFAST|MCP)_[A-Z_]+", text)} - INTERNAL - OF_CLAUDE_CODE
    assert documented == read


def test_every_setting_has_an_effect() -> None:
    used = _read_attributes("config.py")
    assert [one.name for one in fields(Settings) if one.name not in used] == []


def test_no_document_names_a_variable_that_there_is_not() -> None:
    named = {
        name
        for path in (*DOCS.glob("*.md"), DOCS.parent / "README.md")
        if path.name not in ("decisions.md", "benchmarks.md")
        for name in re.findall(r"HOLDFAST_[A-Z_]+[A-Z]", path.read_text())
    }
    assert named <= _rows("settings.md", "# Settings") | INTERNAL


# -- teams.json -------------------------------------------------------------------------------------------------------


def test_every_documented_member_of_a_team_is_read_and_the_other_way_round() -> None:
    assert _rows("teams.md", "### A team") == {*TEAM_FIELDS, *PROJECT_KEYS}
    assert _rows("teams.md", "### Settings") == {*SETTINGS}


@pytest.mark.parametrize("name", [*TEAM_FIELDS, *SETTINGS])
def test_every_member_of_teams_json_has_an_effect(name: str) -> None:
    attribute, _ = {**TEAM_FIELDS, **SETTINGS}[name]
    assert attribute in _read_attributes("teams/team.py", "cli/teams.py")


def test_every_agent_that_a_team_may_name_is_documented() -> None:
    (row,) = [line for line in (DOCS / "teams.md").read_text().splitlines() if line.startswith("| `agent` |")]
    assert all(f'`"{agent}"`' in row for agent in runnable())


# -- protocol.toml ----------------------------------------------------------------------------------------------------


def test_every_documented_member_of_protocol_toml_is_read_and_the_other_way_round() -> None:
    assert _rows("protocol.md", "## .holdfast/protocol.toml") == {*gate_settings.KEYS}
    text = (DOCS / "protocol.md").read_text()
    example = text.partition("```toml")[2].partition("```")[0]
    shown = set(re.findall(r"^(\w+) = ", example.partition("[gates")[0], re.MULTILINE)) | {"gates"}
    assert shown | {"document"} == {*settings.KEYS} and '`document = "path"`' in text


# -- the command line -------------------------------------------------------------------------------------------------


def _options(parser: argparse.ArgumentParser, command: str = "holdfast") -> Iterator[tuple[str, str, str]]:
    """Every option of every command: the command, how it is spelled, and where its value goes."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield from _options(sub, f"{command} {name}")
        for spelled in action.option_strings:
            if spelled.startswith("--") and action.dest not in ("help", "version"):
                yield command, spelled, action.dest


OPTIONS = sorted(set(_options(build_parser())))


@pytest.mark.parametrize(("command", "option", "dest"), OPTIONS, ids=lambda value: str(value))
def test_every_option_is_documented_and_read(command: str, option: str, dest: str) -> None:
    lines = [line for line in (DOCS / "commands.md").read_text().splitlines() if line.startswith(f"| `{command} ")]
    everywhere = (DOCS / "commands.md").read_text().partition("|")[0]
    assert option in everywhere or any(option in line for line in lines), "not in docs/commands.md"
    assert dest in _read_attributes(), "nothing reads it"


def test_no_document_names_an_option_that_there_is_not() -> None:
    known = {option for _, option, _ in OPTIONS} | set(re.findall(r"--[a-z-]+", HELP)) | {"--help", "--version"}
    named: dict[str, str] = {}
    for path in (*DOCS.glob("*.md"), DOCS.parent / "README.md"):
        for code in re.findall(r"`(holdfast [^`]+)`|^(holdfast .*)$", path.read_text(), re.MULTILINE):
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", "".join(code).partition("#")[0]):
                named[option] = path.name
    assert {option: where for option, where in named.items() if option not in known} == {}
