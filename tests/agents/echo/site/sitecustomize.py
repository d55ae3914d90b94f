"""Registers the echo agent in every process that has this folder on its PYTHONPATH; see `tests.agents.echo.offered`."""

from tests.agents.echo.agent import ECHO

from holdfast.agents.registry import AGENTS

AGENTS[ECHO.name] = ECHO
