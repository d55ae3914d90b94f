"""README says in one screen what Holdfast is, costs and how to undo it; documents name what there is."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.documented_commands import DOCUMENTS, ROOT

from holdfast.cli import build_parser, spelled_out

README = (ROOT / "README.md").read_text()
LINES = README.splitlines()
FIRST_SCREEN = "\n".join(LINES[:25])
DOCS = ROOT / "docs"
TEXTS = (*DOCUMENTS, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "tests" / "README.md")


def test_readme_is_short() -> None:
    assert len(LINES) <= 120


def test_the_first_screen_says_whose_problem_it_is_the_idea_the_commands_the_figure_the_cost_and_the_way_back() -> None:
    for what in (
        "coding agent",
        "the work belongs to the project, not to the process",
        "\nuv tool install git+URL ",
        "\nholdfast demo ",
        "\nholdfast setup claude ",
        "| 0.2 % | 78.0 % |",
        "](docs/pictures/cut-off.svg)",
        "**Continue**",
        "**Reach**",
        "**Prove**",
        "one small process per agent",
        "three hooks",
        "Nothing leaves the machine",
        "`holdfast setup claude --remove`",
        "`uv tool uninstall holdfast`",
    ):
        assert what in FIRST_SCREEN, what


def test_the_commands_of_a_clone_stand_within_forty_lines() -> None:
    clone = "\n".join(LINES[:40])
    assert "\nmake serve " in clone and "\nmake test " in clone


def test_the_figures_of_readme_are_those_of_the_benchmarks() -> None:
    measured = (DOCS / "benchmarks.md").read_text()
    assert "| all 531 facts | 0.2 % | 29.0 % | 78.0 % |" in measured
    assert "of 531 | 0.2 % | 78.0 % |" in README
    told, true = re.findall(r"^\| all \| (\d+) \| ([\d.]+ %) \|", measured, re.MULTILINE)[0]
    assert re.search(rf"^\| things in .*, of {told} \| {true} \|", README, re.MULTILINE)
    (memory,) = re.findall(r"^\| resident memory after 50 thoughts \| ([\d.]+) MB", measured, re.MULTILINE)
    assert f"({round(float(memory))} MB)" in README


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", _prose(path.read_text())):
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), target
        assert not anchor or anchor in _anchors(found), target


def _anchors(path: Path) -> set[str]:
    """The headings of a document, as links name them."""
    headings = re.findall(r"^#+ (.+)$", _prose(path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _prose(text: str) -> str:
    """A document without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)


def test_the_index_names_every_document() -> None:
    index = (DOCS / "README.md").read_text()
    assert [path.name for path in DOCS.glob("*.md") if path.name != "README.md" and f"({path.name})" not in index] == []


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, ...]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield (name,)
                yield from ((name, *below) for below in _commands(sub))


COMMANDS = set(_commands(build_parser()))
PLACES = {command[: len(command) - 1] for command in COMMANDS if len(command) > 1}
"""What has commands below it."""


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_document_names_a_command_that_there_is_not(path: Path) -> None:
    if path.name == "decisions.md":
        return  # it tells of commands that there were
    for named in re.findall(r"`holdfast (?!help COMMAND)([a-z][^`]*)`", path.read_text()):
        words: tuple[str, ...] = ()
        for word in spelled_out(named.split()):
            if not re.fullmatch(r"[a-z][a-z-]*", word) or (words and words not in PLACES):
                break
            words = (*words, word)
        assert words in COMMANDS or spelled_out(named.split())[:1] in ([], ["--help"], ["--version"]), named
