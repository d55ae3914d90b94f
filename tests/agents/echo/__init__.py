"""The echo agent, for trying out everything around an agent: a second implementation of the seam, for tests alone."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from unittest.mock import patch

from tests.agents.echo.agent import ECHO

from holdfast.agents.registry import AGENTS

ROOT = Path(__file__).resolve().parents[3]


def offered(*sources: Path) -> dict[str, str]:
    """The environment in which a daemon and commands know the echo agent; `sources` stand before the checkout's own."""
    return {"PYTHONPATH": os.pathsep.join(map(str, (*sources, Path(__file__).with_name("site"), ROOT)))}


def registered() -> AbstractContextManager[object]:
    """Register the echo agent in this process for a while."""
    return patch.dict(AGENTS, {ECHO.name: ECHO})
