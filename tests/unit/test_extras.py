"""The line that adds an optional dependency to this very installation."""

from __future__ import annotations

import shlex
import sys

import pytest

from holdfast.setup import extras
from holdfast.setup.extras import install_line


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
