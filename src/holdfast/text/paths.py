"""Paths as people write and type them."""

from __future__ import annotations

import shlex
from pathlib import Path


def in_home(path: str) -> str:
    """Return a path as a person writes it: with `~` for the home directory."""
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path


def typed(path: str) -> str:
    """Return a path as it can be typed in a shell."""
    short = in_home(path)
    if short == path:
        return shlex.quote(path)
    return f"~/{shlex.quote(short[2:])}" if short != "~" else short
