"""The servers that Claude Code's own command registers."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.lazy_dataclass import dataclass
from holdfast.setup import json_entry
from holdfast.setup.json_file import Change, read_text
from holdfast.setup.originals import Original, Originals
from holdfast.setup.server import NAME, is_ours
from holdfast.setup.steps import original_for
from holdfast.text.terminal import one_line

LIMIT_S = 60.0
QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}


@dataclass(frozen=True, slots=True)
class Registry:
    """The servers that Claude Code keeps for one user, or for that user in one project."""

    claude: Path
    scope: str
    project: Path
    file: Path
    """Where it keeps them."""
    keys: tuple[str, ...]
    """The names that lead to them in there."""
    originals: Originals

    def add(self, entry: dict[str, Any]) -> Registration:
        """Return the step that registers a server."""
        there = self.entry()
        words = ["mcp", "add-json", "-s", self.scope, NAME, json.dumps(entry, ensure_ascii=False)]
        commands = [words] if there is None else [self._removal(), words]
        return Registration(self, [] if there == entry else commands, entry)

    def remove(self) -> Registration:
        """Return the step that removes ours; another server of that name stays."""
        ours = is_ours(self.entry())
        return Registration(self, [self._removal()] if ours else [], None)

    def entry(self) -> dict[str, Any] | None:
        """Return the entry that is registered now."""
        return json_entry.own_entry(self.file, self.keys)

    def _removal(self) -> list[str]:
        return ["mcp", "remove", "-s", self.scope, NAME]


@dataclass(slots=True)
class Registration:
    """A change that Claude Code is asked to make in its own file."""

    registry: Registry
    commands: Sequence[Sequence[str]]
    wanted: dict[str, Any] | None
    _before: str | None = None
    _after: str | None = None
    _earlier: Original | None = None

    @property
    def needed(self) -> bool:
        return bool(self.commands)

    def shown(self) -> str:
        return "".join(f"$ {one_line(shlex.join(['claude', *command]))}\n" for command in self.commands)

    def apply(self) -> None:
        registry, path = self.registry, self.registry.file
        self._before = read_text(path)
        self._earlier = registry.originals.of(path)
        ours = is_ours(registry.entry())
        try:
            for command in self.commands:
                self._run(command)
            if registry.entry() != self.wanted:
                raise HoldfastError(f"Claude Code did not change {path} as it was asked to.")
            self._after = read_text(path)
            kept = original_for(registry.originals, path, self._before, self._after, ours=ours)
            registry.originals.put(path, kept if self.wanted is not None else None)
        except BaseException:
            self._put_back(read_text(path))
            raise

    def undo(self) -> None:
        self._put_back(self._after)
        self.registry.originals.put(self.registry.file, self._earlier)

    def _put_back(self, after: str | None) -> None:
        Change(self.registry.file, after, self._before).write()

    def _run(self, command: Sequence[str]) -> None:
        problem = ""
        try:
            done = subprocess.run(  # noqa: S603 - the user's own claude, with words of ours
                [str(self.registry.claude), *command],
                cwd=self.registry.project,
                env={**os.environ, **QUIET},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LIMIT_S,
                check=False,
            )
            if done.returncode == 0:
                return
            problem = os.fsdecode(done.stderr or done.stdout).strip()[-400:] or f"exit status {done.returncode}"
        except subprocess.TimeoutExpired:
            problem = f"no answer within {LIMIT_S:.0f} s"
        except OSError as failure:
            problem = failure.strerror or str(failure)
        raise HoldfastError(
            f"`claude {' '.join(command[:4])}` failed: {problem}.",
            recovery="Nothing was changed. Repair that, and run this again.",
        )
