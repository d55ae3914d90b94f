"""Which commands a managed agent's shell may give: those that only look, named here once more on purpose."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from holdfast.app import build
from holdfast.cli import build_parser
from holdfast.config import read_settings

LOOKING = {
    *("daemon status", "doctor", "admin verify", "show", "resume", "find", "saved", "statusline", "queue", "demo"),
    *("completion", "man"),
    *("protocol check", "protocol show", "protocol validate", "teams list", "teams check", "teams stats"),
}
LOOKING_OVER_THE_SOCKET = {
    *("verify", "resume", "history-find", "saved", "statusline", "bridge-queue", "teams-stats", "teams-status"),
    *("trusted", "protocol-validate"),
}
"""Covered `status`, which the daemon answers itself."""


class _Anything:
    """Stands in for a store that is not asked."""

    def __getattr__(self, name: str) -> _Anything:
        return self


def _for_agents(parser: argparse.ArgumentParser, before: str = "") -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                if sub.get_default("for_agents"):
                    yield before + name
                yield from _for_agents(sub, f"{before}{name} ")


def test_an_agents_shell_may_give_no_command_line_but_those_that_only_look() -> None:
    assert {*_for_agents(build_parser())} == LOOKING


def test_an_agents_shell_may_ask_the_daemon_for_nothing_but_what_only_looks(tmp_path: Path) -> None:
    app = build(cast("Any", _Anything()), read_settings({}, home=str(tmp_path)), "this-machine")
    assert {name for name, command in app.commands().items() if command.for_agents} == LOOKING_OVER_THE_SOCKET
