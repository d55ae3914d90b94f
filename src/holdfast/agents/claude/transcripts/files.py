"""Transcript files as Claude Code keeps them: `projects/<project key>/<session id>.jsonl`.

The files of subagents are in a folder beside, named for the session. All of them are read and written only while the
session's lock is held.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from holdfast.agents.claude.transcripts import entries
from holdfast.agents.claude.transcripts.merge import Line, lines_in, lines_of, merge
from holdfast.agents.transcript_copies import MAIN
from holdfast.files import write_private
from holdfast.text import bounded_json

_COST_STATE = re.compile(r'^\{"type":"cost-state".*$', re.MULTILINE)
MAX_HEADING = 300
"""Characters of a prompt that count as its heading."""
METADATA = "agent_metadata"
"""The type of the entry that carries a subagent's `.meta.json` to the copy in the store."""


class TranscriptFiles:
    """The transcript files under one configuration directory."""

    def __init__(self, config: Path) -> None:
        self._projects = config / "projects"

    def main_file(self, project_key: str, session_id: str) -> Path:
        """Return the file in which the agent looks for the conversation."""
        return self._projects / project_key / f"{session_id}.jsonl"

    def known(self, session_id: str) -> bool:
        """Return whether there is a file of this session, under any project."""
        return bool(self._main_files(session_id))

    def spent(self, project_key: str, session_id: str) -> float:
        """Return the conversation's cost when its last process ended; the next one adds to it."""
        text = self.main_file(project_key, session_id).read_text(encoding="utf-8", errors="surrogateescape")
        states = [line.entry or {} for line in lines_in("\n".join(_COST_STATE.findall(text)) + "\n")]
        costs = [state.get("totalCostUSD") for state in states]
        return float(costs[-1]) if costs and isinstance(costs[-1], int | float) else 0.0

    def headings(self, project_key: str, session_id: str) -> list[str]:
        """Return how each of the user's prompts begins, and the titles that the conversation got, in their order."""
        found: list[str] = []
        with self.main_file(project_key, session_id).open(encoding="utf-8", errors="surrogateescape") as file:
            for text in file:
                if '"user"' in text or '"custom-title"' in text:
                    found += [heading[:MAX_HEADING] for line in lines_in(text) if (heading := _heading(line))]
        return found

    def read(self, session_id: str) -> dict[str, list[Line]]:
        """Return the lines by subpath."""
        by_subpath: dict[str, list[Line]] = {}
        for subpath, paths in self.paths(session_id).items():
            for path in paths:
                by_subpath[subpath] = merge(by_subpath.get(subpath, []), _read(path))
        return by_subpath

    def paths(self, session_id: str) -> dict[str, list[Path]]:
        """Return the files by subpath; a project that was moved has left files under more than one key."""
        by_subpath: dict[str, list[Path]] = {}
        for main in self._main_files(session_id):
            folder = main.with_suffix("")
            for path in [main, *sorted(folder.rglob("*.jsonl"))]:
                subpath = MAIN if path == main else path.relative_to(folder).with_suffix("").as_posix()
                by_subpath.setdefault(subpath, []).append(path)
        return by_subpath

    def file_of(self, project_key: str, session_id: str, subpath: str) -> Path:
        """Return the transcript file of a session's own conversation or of a subagent's."""
        main = self.main_file(project_key, session_id)
        return main if subpath == MAIN else _inside(main.with_suffix(""), subpath)

    def write(self, project_key: str, session_id: str, subpath: str, lines: Sequence[Line]) -> None:
        """Make these the lines of the file, touching it only if it differs."""
        path = self.file_of(project_key, session_id, subpath)
        metadata = [line.entry for line in lines if line.entry is not None and line.entry.get("type") == METADATA]
        _update_file(path, [line for line in lines if line.entry is None or line.entry.get("type") != METADATA])
        if metadata:
            sidecar = {name: value for name, value in metadata[-1].items() if name != "type"}
            if read_sidecar(path) != sidecar:
                _replace(sidecar_of(path), json.dumps(sidecar))

    def delete(self, session_id: str) -> None:
        """Delete every file of a session."""
        for main in self._main_files(session_id):
            folder = main.with_suffix("")
            main.unlink(missing_ok=True)
            if folder.is_dir() and not folder.is_symlink():
                shutil.rmtree(folder)

    def _main_files(self, session_id: str) -> list[Path]:
        return sorted(self._projects.glob(f"*/{session_id}.jsonl"))


def _heading(line: Line) -> str | None:
    entry = line.entry or {}
    if entry.get("type") == "custom-title":
        return entries.text_member(entry, "customTitle")
    return entries.request_in(entry) if entry.get("type") == "user" else None


def _inside(folder: Path, subpath: str) -> Path:
    """Return the file of a subagent; the subpath comes from outside and must not lead out of the session's folder."""
    parts = PurePosixPath(subpath).parts
    if not parts or any(part in {"..", "/"} or "\\" in part or "\0" in part for part in parts):
        raise ValueError(f"a transcript is filed under {subpath!r}, which leads out of its session's folder")
    path = folder.joinpath(*parts)
    return path.with_name(path.name + ".jsonl")


def sidecar_of(path: Path) -> Path:
    """Return the path of the file in which Claude Code describes a subagent."""
    return path.with_suffix(".meta.json")


def read_sidecar(path: Path) -> dict[str, Any] | None:
    """Read the file beside a transcript; None if there is none or if no agent can have written it."""
    beside = sidecar_of(path)
    if beside.is_fifo():  # to read it would wait for a writer
        return None
    try:
        sidecar = bounded_json.loads(beside.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return sidecar if isinstance(sidecar, dict) else None


def _read(path: Path) -> list[Line]:
    lines = lines_in(path.read_text(encoding="utf-8", errors="surrogateescape"))
    sidecar = read_sidecar(path)
    if sidecar is not None:
        lines += lines_of([{"type": METADATA, **sidecar}])
    return lines


def _update_file(path: Path, lines: Sequence[Line]) -> None:
    text = "".join(f"{line.text}\n" for line in lines)
    try:
        present = path.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        present = None
    if present == text or (present is None and not lines):
        return
    if present is not None and text.startswith(present):
        with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text[len(present) :])
            file.flush()
            os.fsync(file.fileno())
    else:
        _replace(path, text)


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_private(path, text.encode("utf-8", "surrogateescape"))
