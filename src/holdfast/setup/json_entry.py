"""One MCP server in a JSON settings file, under the path of keys to its agent's servers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.setup.json_file import Edit, Misshapen, Settings, read_settings
from holdfast.setup.server import NAME, is_ours, kept, not_ours


def putting_in(keys: Sequence[str], entry: dict[str, Any], *, env: str = "env") -> Edit:
    """Edit that adds or updates the server. A server of that name that is not Holdfast's is left alone."""

    def edit(settings: Settings) -> None:
        servers = settings
        for key in keys:
            servers = _object(servers.setdefault(key, {}), keys)
        old = servers.get(NAME)
        if old is not None and not is_ours(old):
            raise not_ours()
        servers[NAME] = kept(old, entry, env)

    return edit


def taking_out(keys: Sequence[str]) -> Edit:
    """Edit that removes the server, and objects that become empty."""

    def edit(settings: Settings) -> None:
        chain = [settings]
        for key in keys:
            if key not in chain[-1]:
                return
            chain.append(_object(chain[-1][key], keys))
        if not is_ours(chain[-1].get(NAME)):
            return
        del chain[-1][NAME]
        for inner, outer, key in zip(reversed(chain), reversed(chain[:-1]), reversed(keys), strict=False):
            if inner:
                return
            del outer[key]

    return edit


def own_entry(path: Path, keys: Sequence[str]) -> dict[str, Any] | None:
    """Return the server of our name in a file; raises SettingsUnusable."""
    servers: object = read_settings(path)
    for key in (*keys, NAME):
        servers = servers.get(key) if isinstance(servers, dict) else None
    return servers if isinstance(servers, dict) else None


def _object(value: object, keys: Sequence[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Misshapen(f"`{'.'.join(keys)}` must be an object")
    return value
