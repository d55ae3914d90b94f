"""Answers to an agent's first requests, for a relay whose daemon is still starting.

Agents ask for the tools at once and do not wait: some give a server one second. The answers that the package ships
(catalogue.json) fit a project without its own teams or protocol; where a daemon answered differently, that is cached.
"""

from __future__ import annotations

import json
import os

from holdfast.relay.session import DISCOVER, INITIALIZE, LEGACY, LISTS, MODERN, PING

TYPE_CHECKING = False  # importing typing would double the relay's start-up
if TYPE_CHECKING:
    from typing import Any

    Asked = tuple[str, str, str]
    """A method, the era it was asked in (LEGACY or MODERN), and the protocol version the client named."""
    Answer = dict[str, Any]
    """The part of a response that answers: `result` or `error`."""

TOOLS = "tools/list"
KEPT_FILES = 200
ABANDONED_SECONDS = 3600.0
"""Age at which an unfinished file was left by a relay that is gone."""
LARGEST_FILE = 1024 * 1024


class Answers:
    """Answers for one caller in one project: the daemon's last ones, otherwise those that the package ships."""

    def __init__(self, home: str, version: str, toolsets: str, root: str, *, recognised: bool) -> None:
        self._folder = folder_of(home)
        self._path = os.path.join(self._folder, f"{version}-{_digest([toolsets, root, recognised])}.json")
        self._toolsets = set(toolsets.split(","))
        self._recognised = recognised
        self._shipped: dict[str, Any] | None = None
        self._kept: dict[str, Answer] | None = None

    def find(self, asked: Asked) -> Answer | None:
        """Return the answer to a request; None if only a daemon knows it."""
        return self._read_kept().get(" ".join(asked)) or self.shipped(asked)

    def shipped(self, asked: Asked) -> Answer | None:
        """Return the answer for a project without its own teams, targets or protocol."""
        method, era, protocol = asked
        catalogue = self._catalogue()
        if era == MODERN:
            return self._modern(catalogue, method) if protocol == catalogue[MODERN]["version"] else None
        legacy = catalogue[LEGACY]
        if method == DISCOVER:
            return {"error": legacy["no_discover"]}
        if method == INITIALIZE:
            agreed = protocol if protocol in legacy["versions"] else legacy["versions"][-1]
            return {"result": {**legacy[INITIALIZE], "protocolVersion": agreed}}
        if method == PING:
            return {"result": {}}
        return {"result": self._list(catalogue, method)}

    def keep(self, learned: list[tuple[Asked, Answer]]) -> None:
        """Store a daemon's answers that differ from those that the package ships; raises OSError."""
        kept = dict(self._read_kept())
        for asked, answer in learned:
            if answer == self.shipped(asked):
                kept.pop(" ".join(asked), None)
            else:
                kept[" ".join(asked)] = answer
        if kept == self._kept:
            return
        self._kept = kept
        _write(self._folder, self._path, json.dumps(kept))

    def _modern(self, catalogue: dict[str, Any], method: str) -> Answer | None:
        modern = catalogue[MODERN]
        if method == DISCOVER:
            return {"result": {**modern["result"], **modern[DISCOVER]}}
        if method in LISTS:
            return {"result": {**modern["result"], **self._list(catalogue, method)}}
        return None  # there is no handshake and no ping in this era

    def _list(self, catalogue: dict[str, Any], method: str) -> dict[str, Any]:
        if method != TOOLS:
            listed: dict[str, Any] = catalogue[method]
            return listed
        return {"tools": [entry["tool"] for entry in catalogue[TOOLS] if self._is_listed(entry)]}

    def _is_listed(self, entry: dict[str, Any]) -> bool:
        if entry.get("for_anonymous") and self._recognised:
            return False
        chosen = self._toolsets
        return "all" in chosen or entry["toolset"] in chosen or ("auto" in chosen and entry["everywhere"])

    def _catalogue(self) -> dict[str, Any]:
        if self._shipped is None:
            with open(os.path.join(os.path.dirname(__file__), "catalogue.json"), encoding="utf-8") as file:
                self._shipped = json.load(file)
        return self._shipped

    def _read_kept(self) -> dict[str, Answer]:
        """Return the stored answers; a damaged file counts as missing, because everything can be asked again."""
        if self._kept is None:
            try:
                with open(self._path, encoding="utf-8") as file:
                    read = json.loads(file.read(LARGEST_FILE))
            except (OSError, ValueError):
                read = {}
            found = read if isinstance(read, dict) else {}
            self._kept = {name: answer for name, answer in found.items() if _is_answer(answer)}
        return self._kept


def folder_of(home: str) -> str:
    """Return where relays store the daemons' answers."""
    return os.path.join(home, "answers")


def prune(home: str, version: str, now: float) -> None:
    """Delete other versions' answers, all but the newest files, and leftovers of killed relays; raises OSError."""
    folder = folder_of(home)
    try:
        written = {entry.path: entry.stat().st_mtime for entry in os.scandir(folder)}
    except FileNotFoundError:
        return  # nothing was stored yet, or a relay has just finished a file: pruning can wait
    whole = [path for path in written if path.endswith(".json")]
    ours = [path for path in whole if os.path.basename(path).startswith(f"{version}-")]
    ours.sort(key=written.__getitem__, reverse=True)
    half = [path for path in written if path not in whole and written[path] < now - ABANDONED_SECONDS]
    for path in {*whole, *half} - {*ours[:KEPT_FILES]}:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue


def _is_answer(value: object) -> bool:
    return isinstance(value, dict) and ("result" in value or "error" in value)


def _write(folder: str, path: str, text: str) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    fresh = f"{path}.{os.getpid()}"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(fresh, path)


def _digest(parts: list[Any]) -> str:
    """Return a file name that does not reveal the project."""
    from _blake2 import blake2b  # hashlib would cost a tenth of the relay's start-up

    return blake2b(json.dumps(parts).encode("utf-8"), digest_size=16).hexdigest()
