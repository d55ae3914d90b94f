"""Paths that people read, type and copy."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from holdfast.text.paths import in_home, typed

HOME = "/home/mira"


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", HOME)


@pytest.mark.parametrize(
    ("path", "read", "command"),
    [
        (HOME, "~", "~"),
        (f"{HOME}/shop", "~/shop", "~/shop"),
        (f"{HOME}/my shop", "~/my shop", "~/'my shop'"),
        (f"{HOME}/$(x)", "~/$(x)", "~/'$(x)'"),
        ("/home/miranda/shop", "/home/miranda/shop", "/home/miranda/shop"),
        ("/srv/it's", "/srv/it's", """'/srv/it'"'"'s'"""),
        ("~/odd", "~/odd", "'~/odd'"),
    ],
)
def test_a_path_is_short_to_read_and_safe_to_type(path: str, read: str, command: str) -> None:
    assert in_home(path) == read
    assert typed(path) == command


@pytest.mark.parametrize("name", ["shop", "my shop", "it's", "$(false)", "~", "a;b", "ünï", "-x"])
def test_a_shell_reads_back_what_is_to_be_typed(name: str) -> None:
    path = f"{HOME}/{name}"
    read = subprocess.run(
        ["sh", "-c", f"printf %s {typed(path)}"], env={"HOME": HOME}, capture_output=True, text=True, check=True
    )
    assert Path(read.stdout) == Path(path)
