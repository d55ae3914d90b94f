"""What contributors are told and what CI runs: targets, paths and versions that exist; decisions that are dated."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from holdfast.agents import Agent
from holdfast.capability import Capability

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "holdfast"
WORKFLOW = ".github/workflows/ci.yml"
FORMS = (".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/idea.yml")
TEXTS = ("CONTRIBUTING.md", "SECURITY.md", ".github/PULL_REQUEST_TEMPLATE.md")
KIT = (*TEXTS, *FORMS, ".github/ISSUE_TEMPLATE/config.yml", WORKFLOW, ".pre-commit-config.yaml")


def _text(name: str) -> str:
    return (ROOT / name).read_text()


def _yaml(name: str) -> Any:
    return yaml.safe_load(_text(name))


def _steps() -> list[dict[str, Any]]:
    return [step for job in _yaml(WORKFLOW)["jobs"].values() for step in job["steps"]]


PROJECT = tomllib.loads(_text("pyproject.toml"))["project"]
CLASSIFIED = [
    found[1] for line in PROJECT["classifiers"] if (found := re.fullmatch(r"Programming Language :: .* (3\.\d+)", line))
]
TARGETS = set(re.findall(r"^([\w$()./-]+):", _text("Makefile"), re.MULTILINE))


@pytest.mark.parametrize("name", KIT)
def test_every_make_target_that_contributors_are_told_of_exists(name: str) -> None:
    named = set(re.findall(r"(?:`|^ {4}|run: )make (\.?[a-z][\w./-]*)", _text(name), re.MULTILINE))
    assert {target.replace(".venv", "$(VENV)") for target in named} <= TARGETS


@pytest.mark.parametrize("name", KIT)
def test_every_path_that_contributors_are_told_of_exists(name: str) -> None:
    text = _text(name)
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", text) + re.findall(r"\]\(((?!https?:)[^)#]+)", text)
    named += re.findall(r"(?<![\w/`(])(?:docs/|tests/)?[\w-]+\.md\b", text)
    for path in named:
        assert (ROOT / path).exists() or (SOURCE / path).exists(), path


def test_ci_runs_the_targets_that_every_change_must_pass() -> None:
    run = {step["run"] for step in _steps() if "run" in step}
    assert run == {*re.findall(r"^make .*", _text(".ci/run"), re.MULTILINE), "make test-long"}


def test_ci_runs_on_linux_and_macos_with_every_python_that_the_package_names() -> None:
    matrix = _yaml(WORKFLOW)["jobs"]["test"]["strategy"]["matrix"]
    assert matrix == {"os": ["ubuntu-latest", "macos-latest"], "python": CLASSIFIED}
    assert PROJECT["requires-python"] == f">={CLASSIFIED[0]}"
    for name in ("CONTRIBUTING.md", "SECURITY.md", "README.md"):
        assert f"Python {CLASSIFIED[0]} or newer" in _text(name), name
    for step in _steps():
        version = step.get("with", {}).get("python-version")
        assert version in (None, "${{ matrix.python }}", *CLASSIFIED)


def test_ci_may_only_read_the_repository_ends_in_time_and_uses_pinned_actions() -> None:
    workflow = _yaml(WORKFLOW)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"] is True
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        assert job["timeout-minutes"] <= 120
    for step in _steps():
        assert "uses" not in step or re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"]), step


def test_pre_commit_runs_what_make_check_runs_and_fetches_nothing() -> None:
    (repository,) = _yaml(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    recipe = _text("Makefile").partition("\ncheck: ")[2].partition("\n\n")[0].splitlines()[1:]
    assert [hook["entry"] for hook in repository["hooks"]] == [
        line.strip().replace("$(BIN)", ".venv/bin") for line in recipe
    ]
    assert {(hook["language"], hook["pass_filenames"]) for hook in repository["hooks"]} == {("system", False)}


@pytest.mark.parametrize("name", FORMS)
def test_an_issue_form_has_what_the_hosting_service_asks_of_one(name: str) -> None:
    form = _yaml(name)
    assert {"name", "description", "body"} <= form.keys()
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in asked}) == len(asked)
    assert all(field["attributes"]["label"] for field in asked)


def test_a_weakness_is_reported_in_private_and_the_threat_model_is_linked() -> None:
    text = _text("SECURITY.md")
    assert "in private" in text and "(docs/security.md)" in text
    assert "SECURITY.md" in _text(FORMS[0])


DECISIONS = re.split(r"\n(?=\*\*)", _text("docs/decisions.md"))[1:]


def test_every_decision_has_the_date_on_which_it_was_made() -> None:
    assert [each[:80] for each in DECISIONS if not re.match(r"\*\*.+?\*\* \(20\d\d-\d\d-\d\d[),;]", each)] == []


def test_every_decision_is_one_paragraph_and_is_there_once() -> None:
    titles = Counter(each.split("**")[1] for each in DECISIONS)
    assert [title for title, times in titles.items() if times > 1] == []  # a union merge of two branches leaves both
    assert [each[:80] for each in DECISIONS[:-1] if not each.endswith("\n")] == []  # the empty line after it


def test_the_guide_names_the_parts_that_a_capability_and_an_agent_have() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.search(r"`Capability\(([^)]*)\)`", guide)
    assert named is not None
    assert named[1].split(", ") == [part.name for part in fields(Capability)]
    parts = re.search(r"An `Agent` consists of optional parts: ([^.]*)\.", guide)
    assert parts is not None
    told = re.findall(r"`(\w+)`", parts[1])
    assert told == [part.name for part in fields(Agent) if part.default is None]
