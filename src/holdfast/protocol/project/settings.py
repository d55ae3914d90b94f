"""Reads which protocol a project follows: `.holdfast/protocol.toml`, or a default without one."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from holdfast.files.inside import UnreadableInside, is_folder, read_inside
from holdfast.lazy_dataclass import dataclass
from holdfast.protocol.model import Gate, Protocol
from holdfast.protocol.project.toml_lines import line_of
from holdfast.protocol.protocols import DOCUMENT, PROTOCOLS
from holdfast.text import bounded_json, bounded_toml
from holdfast.text.bounded_toml import TomlFault

if TYPE_CHECKING:
    from holdfast.protocol.project.document import Document

SETTINGS = ".holdfast/protocol.toml"
MCP_SERVERS = ".mcp.json"
SERENA_PROJECT = ".serena/project.yml"
MAX_BYTES = 256 * 1024
AGENTS_DIRECTORY = ".agents"
DOCUMENTS = (".agents/SESSION-PROTOCOL.md", "SESSION-PROTOCOL.md")
KEYS = ("protocol", "document", "enforcement", "start", "gates")
NAMES = (*PROTOCOLS, DOCUMENT)
MAX_FAULTS = 50
"""Faults that are reported; finding the line of each costs a pass over the file."""

StartedBy = Literal["agent", "hook"]


class Enforcement(StrEnum):
    """What is done about a commit that is too early."""

    OFF = "off"
    WARN = "warn"
    ENFORCE = "enforce"


CHOICES: Mapping[str, tuple[str, ...]] = {
    "protocol": NAMES,
    "enforcement": tuple(Enforcement),
    "start": ("agent", "hook"),
}


@dataclass(frozen=True, slots=True)
class ProjectFault:
    """An error in a project's files that keeps its protocol from being used."""

    path: str
    line: int | None
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class ProjectProtocol:
    """The protocol of a worktree, its settings and its faults."""

    protocol: Protocol
    enforcement: Enforcement
    started_by: StartedBy
    configured: bool
    """Whether the project has a protocol.toml."""
    faults: tuple[ProjectFault, ...]
    """A protocol with faults is not used."""
    digest: str
    """The hash that trust is pinned to; empty, and never trusted, if a part could not be read."""
    commands: tuple[tuple[str, ...], ...]
    """The commands that its gates run once it is trusted."""
    serena: Mapping[str, Any] = field(default_factory=dict)
    """The Serena entries among the project's MCP servers, by name, which trust covers too."""


def read_project(worktree: Path) -> ProjectProtocol:
    """Read the protocol of a worktree. Runs nothing, reads nothing outside, and never raises."""
    reading = _Reading(worktree)
    content, serena = reading.content(SETTINGS), serena_entries(reading.content(MCP_SERVERS))
    digest = "" if reading.faults else trust_digest(content, serena)
    settings = reading.settings = _settings(content)
    reading.faults += settings.faults
    default = "agents" if is_folder(worktree, AGENTS_DIRECTORY) else "simple"
    protocol = PROTOCOLS.get(settings.protocol or default, PROTOCOLS[default])
    if not reading.faults and settings.protocol == DOCUMENT:
        protocol = reading.document() or protocol
    elif not reading.faults:
        protocol = reading.configured(protocol, {})
    return ProjectProtocol(
        protocol,
        settings.enforcement,
        settings.started_by,
        content is not None,
        tuple(reading.faults),
        digest,
        tuple(check.argv for gate in protocol.gates for check in gate.checks if check.argv),
        serena,
    )


def trust_digest(settings: bytes | None, serena: Mapping[str, Any]) -> str:
    """Return the hash of a protocol.toml and of the Serena entries among the project's MCP servers."""
    entry = json.dumps(serena, sort_keys=True).encode() if serena else b""
    whole = hashlib.sha256(b"holdfast trust 1")
    for part in (settings or b"", entry, b"", b""):  # the last two were Serena's own settings, once
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def serena_entries(servers: bytes | None) -> dict[str, Any]:
    """Return the Serena entries of an .mcp.json; none if it cannot be parsed."""
    try:
        content = bounded_json.loads(servers or b"{}")
    except ValueError:
        return {}
    named = content.get("mcpServers") if isinstance(content, dict) else None
    if not isinstance(named, dict):
        return {}
    return {name: entry for name, entry in named.items() if "serena" in name.lower()}


def configured_project(worktree: Path) -> ProjectProtocol | None:
    """Read the protocol of a worktree; None if it configures none, which is common and cheap."""
    if not os.path.lexists(worktree / SETTINGS):
        return None
    project = read_project(worktree)
    return project if project.configured else None


@dataclass(frozen=True, slots=True)
class _Settings:
    """The valid settings of protocol.toml."""

    text: str = ""
    protocol: str | None = None
    document: str | None = None
    enforcement: Enforcement = Enforcement.WARN
    started_by: StartedBy = "agent"
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    faults: tuple[ProjectFault, ...] = ()


class _Reading:
    """One reading of a worktree, with the faults found on the way."""

    def __init__(self, worktree: Path) -> None:
        self.worktree = worktree
        self.settings = _Settings()
        self.faults: list[ProjectFault] = []

    def content(self, path: str) -> bytes | None:
        """Read a file of the worktree; a fault if it is not a regular file or too large."""
        try:
            return read_inside(self.worktree, path, MAX_BYTES)
        except UnreadableInside as refused:
            self._fail(path, None, str(refused))
            return None

    def document(self) -> Protocol | None:
        """Return the protocol of the project's own document."""
        from holdfast.protocol.project.document import MAX_BYTES as MAX_DOCUMENT_BYTES
        from holdfast.protocol.project.from_document import protocol_of

        named = self.settings.document
        line = line_of(self.settings.text, "document") or line_of(self.settings.text, "protocol")
        path, content = "", None
        for path in (named,) if named else DOCUMENTS:
            try:
                content = read_inside(self.worktree, path, MAX_DOCUMENT_BYTES)
            except UnreadableInside as refused:
                self._fail(SETTINGS, line, f"The document cannot be used: {refused}")
                return None
            if content is not None:
                break
        else:
            wanted = named or " or ".join(DOCUMENTS)
            self._fail(SETTINGS, line, f"The document {wanted} does not exist.")
            return None
        try:
            found = _parsed(content.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            self._fail(path, content.count(b"\n", 0, error.start) + 1, "The file is not UTF-8.")
            return None
        if found.faults:
            self.faults += [ProjectFault(path, line, message) for line, message in found.faults]
            return None
        protocol, phases = protocol_of(found)
        return self.configured(protocol, {name: (path, phase.line) for name, phase in phases.items()})

    def configured(self, protocol: Protocol, lines: Mapping[str, tuple[str, int]]) -> Protocol:
        """Return a protocol with the project's gate settings; `lines` has file and line of those that it defines."""
        from difflib import get_close_matches

        names = [gate.name for gate in protocol.gates]
        for name in self.settings.gates:
            if name not in names:
                near = get_close_matches(name.upper(), names, n=1)
                hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(names)}."
                self._complain(f"The protocol {protocol.name} has no gate {name}; {hint}", name)
        transitions = [
            replace(step, gate=self._gate(step.gate, lines.get(step.gate.name))) for step in protocol.transitions
        ]
        return replace(protocol, transitions=tuple(transitions))

    def _gate(self, gate: Gate, defined: tuple[str, int] | None) -> Gate:
        from holdfast.protocol.project.gate_settings import configured

        table = self.settings.gates.get(gate.name, {})
        gate_settings = configured(gate, table, lambda key, message: self._complain(message, gate.name, key))
        if gate_settings.blocking and not gate_settings.checks:
            path, line = defined or (SETTINGS, line_of(self.settings.text, "gates", gate.name))
            message = (
                f"{gate.name} blocks, but no check verifies it. In {SETTINGS}, [gates.{gate.name}] needs a check"
                " (command, file_exists, file_read, docs_changed, report, tool_called), claim = true, or"
                " blocking = false."
            )
            self._fail(path, line, message)
        return gate_settings

    def _fail(self, path: str, line: int | None, message: str) -> None:
        self.faults.append(ProjectFault(path, line, message))

    def _complain(self, message: str, *keys: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            self._fail(SETTINGS, line_of(self.settings.text, "gates", *keys), message)


@lru_cache(maxsize=16)
def _parsed(text: str) -> Document:
    # Every hook reads its project's protocol; the document rarely changes.
    from holdfast.protocol.project.document import parse

    return parse(text)


@lru_cache(maxsize=16)
def _settings(content: bytes | None) -> _Settings:
    if content is None:
        return _Settings()
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
        return _checked(text, bounded_toml.loads(text))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return _Settings(faults=(ProjectFault(SETTINGS, line, "The file is not UTF-8."),))
    except TomlFault as fault:
        return _Settings(faults=(ProjectFault(SETTINGS, fault.line, fault.message),))


def _checked(text: str, found: Mapping[str, Any]) -> _Settings:
    from holdfast.protocol.project.gate_settings import unknown

    faults: list[ProjectFault] = []
    valid: dict[str, Any] = {}
    for key, value in found.items():
        wrong = _wrong(key, value, found.get("protocol")) if key in KEYS else unknown(key, KEYS)
        if not wrong:
            valid[key] = value
        elif len(faults) < MAX_FAULTS:
            faults.append(ProjectFault(SETTINGS, line_of(text, key), wrong))
    return _Settings(
        text,
        valid.get("protocol"),
        valid.get("document"),
        Enforcement(valid.get("enforcement", Enforcement.WARN)),
        valid.get("start", "agent"),
        valid.get("gates", {}),
        tuple(faults),
    )


def _wrong(key: str, value: Any, protocol: Any) -> str:
    """Return what is wrong with a setting; empty if it can be used."""
    if key in CHOICES:
        return "" if value in CHOICES[key] else f"{key} must be one of {', '.join(CHOICES[key])}."
    if key == "gates":
        tables = isinstance(value, dict) and all(isinstance(table, dict) for table in value.values())
        return "" if tables else "gates must be tables such as [gates.QUALITY_CHECKS]."
    if not isinstance(value, str) or not value:
        return "document must be the path of a file in the project."
    return "" if protocol == DOCUMENT else f'document is only used with protocol = "{DOCUMENT}".'
