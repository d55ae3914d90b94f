"""The line that adds an optional dependency to this very installation; `process/test_packaging.py` runs such lines."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from holdfast.setup import extras
from holdfast.setup.extras import install_line


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment as `uv tool install` makes it, in the usual place."""
    folder = tmp_path / "uv" / "tools" / "holdfast"
    folder.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("UV_TOOL_DIR", raising=False)
    return folder


def received(tool: Path, *requirements: str) -> None:
    (tool / "uv-receipt.toml").write_text(f"[tool]\nrequirements = [{', '.join(requirements)}]\n")


@pytest.mark.parametrize(
    ("extra", "package"), [("claude", "claude-agent-sdk"), ("postgres", "psycopg"), ("telegram", "python-telegram-bot")]
)
def test_it_names_the_packages_of_the_extra_and_this_python(extra: str, package: str) -> None:
    *command, named = shlex.split(install_line(extra))
    assert command == [sys.executable, "-m", "pip", "install"] and named.startswith(package) and ";" not in named


def test_an_installation_without_pip_is_extended_with_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", "/home/me/my tools/bin/python")
    assert install_line("claude").startswith("uv pip install --python '/home/me/my tools/bin/python' ")


def test_an_installation_by_pipx_is_extended_under_the_name_that_it_has_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = tmp_path / "holdfast-next"
    environment.mkdir()
    (environment / "pipx_metadata.json").write_text("{}")
    monkeypatch.setattr(sys, "prefix", str(environment))
    assert install_line("telegram").startswith("pipx inject holdfast-next 'python-telegram-bot")


@pytest.mark.parametrize(
    ("requirement", "source"),
    [
        ('{ name = "holdfast" }', "holdfast"),
        ('{ name = "holdfast", specifier = "==0.2" }', "holdfast==0.2"),
        ('{ name = "holdfast", git = "https://x.org/holdfast" }', "'holdfast @ git+https://x.org/holdfast'"),
        ('{ name = "holdfast", git = "https://x.org/h?rev=v1" }', "'holdfast @ git+https://x.org/h@v1'"),
        ('{ name = "holdfast", url = "https://x.org/h.whl" }', "'holdfast @ https://x.org/h.whl'"),
    ],
)
def test_an_installation_by_uv_is_made_again_from_its_source_with_all_that_was_added(
    tool: Path, requirement: str, source: str
) -> None:
    received(tool, requirement, '{ name = "psycopg", extras = ["binary"], specifier = ">=3.2" }')
    line = install_line("telegram")
    assert line.startswith("uv tool install --with 'psycopg[binary]>=3.2' --with 'python-telegram-bot")
    assert line.endswith(f" {source}")


def test_an_installation_by_uv_whose_wheel_is_gone_is_extended_where_it_is(tool: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "holdfast.whl"
    received(tool, f'{{ name = "holdfast", path = "{wheel}" }}')
    assert " pip install " in install_line("telegram")
    wheel.touch()
    assert install_line("telegram").endswith(str(wheel))


def test_a_tool_that_uv_keeps_elsewhere_is_named_with_its_place(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    received(tool, '{ name = "holdfast" }')
    monkeypatch.delenv("XDG_DATA_HOME")
    assert install_line("telegram").startswith(f"UV_TOOL_DIR={shlex.quote(str(tool.parent))} uv tool install ")
