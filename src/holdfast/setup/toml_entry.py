"""One MCP server in a TOML settings file, edited as text so that comments and order stay.

The text is split at table headers, which is a guess; parsing the result proves it. A file that the guess does not fit
is refused, with the lines that its owner can add by hand.
"""

from __future__ import annotations

import json
import re
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

from holdfast.setup.json_file import REPAIR, Change, SettingsUnusable, read_text
from holdfast.setup.server import NAME, is_ours, kept, not_ours

_HEADER = re.compile(r"\s*\[")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def installed(path: Path, table: str, entry: dict[str, Any]) -> Change:
    """Return the change that adds or updates our server."""
    before = read_text(path)
    settings = _parsed(path, before)
    servers = _servers(path, settings, table)
    old = servers.get(NAME)
    if old is not None and not is_ours(old):
        raise not_ours()
    wanted = kept(old, entry)
    if old == wanted:
        return Change(path, before, before)
    block = snippet(table, wanted)
    return _proven(path, before, _replaced(before or "", table, block), settings, table, wanted)


def removed(path: Path, table: str) -> Change:
    """Return the change that removes our server."""
    before = read_text(path)
    settings = _parsed(path, before)
    if not is_ours(_servers(path, settings, table).get(NAME)):
        return Change(path, before, before)
    return _proven(path, before, _replaced(before or "", table, ""), settings, table, None)


def own_entry(path: Path, table: str) -> dict[str, Any] | None:
    """Return our server in a file; raises SettingsUnusable."""
    entry = _servers(path, _parsed(path, read_text(path)), table).get(NAME)
    return entry if isinstance(entry, dict) else None


def snippet(table: str, entry: dict[str, Any]) -> str:
    """Return the server as written in the file."""
    lines = [f"{_key(name)} = {_value(value)}" for name, value in entry.items()]
    return "\n".join([f"[{table}.{NAME}]", *lines]) + "\n"


def _replaced(text: str, table: str, block: str) -> str:
    """Replace the server's tables by the block, at the position of the first of them, otherwise at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    block = block.replace("\n", newline)
    own = re.compile(rf"\s*\[\s*{re.escape(table)}\s*\.\s*[\"']?{NAME}[\"']?\s*[.\]]")
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    ours = [(start, end) for start, end in pairwise([*starts, len(lines)]) if own.match(lines[start])]
    for start, end in reversed(ours):
        while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
            end -= 1  # comments before the next table belong to that one
        lines[start:end] = []
    if ours:
        lines.insert(ours[0][0], block)
        return "".join(lines)
    if not block or not text:
        return block + text
    return text + (newline if text.endswith("\n") else newline * 2) + block


def _proven(
    path: Path, before: str | None, after: str, settings: dict[str, Any], table: str, entry: dict[str, Any] | None
) -> Change:
    """Return the change, after proving that it does exactly what it should."""
    servers = {name: server for name, server in settings.get(table, {}).items() if name != NAME}
    expected = {**settings, table: servers if entry is None else {**servers, NAME: entry}}
    try:
        fits = {table: {}, **tomllib.loads(after)} == expected
    except tomllib.TOMLDecodeError:
        fits = False
    if fits:
        return Change(path, before, after)
    by_hand = f"Remove [{table}.{NAME}] by hand." if entry is None else f"Add this by hand:\n\n{snippet(table, entry)}"
    raise SettingsUnusable(
        f"{path} is written in a way that cannot be changed safely, and was not changed.", recovery=by_hand
    )


def _servers(path: Path, settings: dict[str, Any], table: str) -> dict[str, Any]:
    servers = settings.get(table, {})
    if not isinstance(servers, dict):
        raise SettingsUnusable(f"{path}: `{table}` must be a table.", recovery=REPAIR)
    return servers


def _parsed(path: Path, text: str | None) -> dict[str, Any]:
    try:
        return tomllib.loads(text or "")
    except (tomllib.TOMLDecodeError, RecursionError) as failure:
        raise SettingsUnusable(f"{path}: {failure}.", recovery=REPAIR) from failure


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    # JSON and TOML write strings, numbers and booleans alike. An MCP server's settings contain no dates.
    return json.dumps(value, ensure_ascii=False, default=str)
