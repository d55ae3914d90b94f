"""Reads the settings that a project brings along for Claude Code: hooks, MCP servers, commands, skills and agents.

These are everything in `.claude`, the servers of `.mcp.json`, and the files of the repository that these name as
programs (`named_programs`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.agents.claude.named_programs import TooManyWords, named_programs, texts_of_markdown, texts_of_settings
from holdfast.agents.project_settings import ProjectSettings
from holdfast.files.inside import OutsideWorktree, TooLarge, UnreadableInside, read_inside, real_path

CLAUDE = ".claude"
MCP_SERVERS = ".mcp.json"
PROJECT_NAMES = (CLAUDE, MCP_SERVERS)
"""What Claude Code follows in a project's directory."""
FILES = (f"{CLAUDE}/settings.json", f"{CLAUDE}/settings.local.json", MCP_SERVERS)
IGNORED_FOLDERS = frozenset({"worktrees", "plans", "agent-memory", "agent-memory-local"})
"""Folders that Claude Code itself writes into .claude while it works; nothing in them is run."""
MAX_BYTES = 256 * 1024
PLUGIN = ".claude-plugin"
MAX_FILES = 500
MAX_TOTAL_BYTES = 16 * 1024 * 1024
MAX_PROGRAM_BYTES = 1024 * 1024


def read_project_settings(worktree: Path) -> ProjectSettings:
    """Read the settings of a worktree. Runs nothing, reads nothing outside, and never raises."""
    try:
        return _Reading(worktree).all()
    except (UnreadableInside, TooManyWords) as error:
        return ProjectSettings(problem=str(error))
    except OSError as error:
        return ProjectSettings(problem=f"{CLAUDE} cannot be read: {error.strerror}.")


class _Reading:
    """One reading of a worktree."""

    def __init__(self, worktree: Path) -> None:
        self._worktree = worktree
        self._files: dict[str, bytes] = {}
        self._not_compared: dict[str, None] = {}
        self._texts: list[str] = []
        """Texts that may name programs."""
        self._bytes = 0

    def all(self) -> ProjectSettings:
        for path in FILES:
            content = read_inside(self._worktree, path, MAX_BYTES)
            if content is not None:
                self._files[path] = content
                self._texts += texts_of_settings(content)
        self._folder(CLAUDE)
        for path in named_programs(self._texts, self._worktree):
            self._program(path)
        return ProjectSettings(self._files, FILES, tuple(sorted(self._not_compared)))

    def _folder(self, top: str) -> None:
        """Add all files of a folder, following links that stay in the worktree."""
        waiting, seen = [top], set()
        while waiting:
            folder = waiting.pop()
            real = real_path(self._worktree, folder)
            if real in seen or not real.is_dir():
                continue
            seen.add(real)
            for name, is_folder in _entries(real):
                path = f"{folder}/{name}"
                if folder == CLAUDE and name in IGNORED_FOLDERS:
                    continue
                if is_folder:
                    waiting.append(path)
                elif path not in self._files:
                    self._file(path)

    def _program(self, path: str) -> None:
        """Add the file or plugin folder that a name stands for, if it is in the worktree."""
        try:
            real = real_path(self._worktree, path)
        except OutsideWorktree:
            if os.path.lexists(self._worktree / path):
                self._not_compared[path] = None
            return
        if path in self._files or real == Path(os.path.realpath(self._worktree)):
            return
        if (real / PLUGIN).is_dir():
            self._folder(path)
        elif real.is_file():
            self._file(path)

    def _file(self, path: str) -> None:
        try:
            content = read_inside(self._worktree, path, MAX_PROGRAM_BYTES)
        except (TooLarge, OutsideWorktree):
            self._not_compared[path] = None
            return
        if content is None:
            return
        self._bytes += len(content)
        if len(self._files) >= MAX_FILES or self._bytes > MAX_TOTAL_BYTES:
            raise _too_much()
        self._files[path] = hashlib.sha256(content).digest()
        if path.startswith(f"{CLAUDE}/") and path.endswith(".md"):
            self._texts += texts_of_markdown(content[:MAX_BYTES])


def _entries(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the names in a folder, and whether each is a folder or a link to one."""
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count > MAX_FILES:
                raise _too_much()
            yield entry.name, entry.is_dir()


def _too_much() -> UnreadableInside:
    limit = f"{MAX_FILES} files or {MAX_TOTAL_BYTES // 1024 // 1024} MB"
    return UnreadableInside(f"{CLAUDE} contains or names more than {limit}.")
