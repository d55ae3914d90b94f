"""Archives as somebody hostile writes them: changed, with hashes that fit, and signed by a key of their own."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.handoff import signing
from holdfast.handoff.container import MANIFEST, SIGNATURE

Members = dict[str, bytes]


def rewritten(
    source: Path,
    target: Path,
    change: Callable[[Members], Members],
    manifest: dict[str, Any] | None = None,
    *,
    sign: bool = True,
) -> None:
    """The archive `source` with other members, as `target`; the key of whoever signs it lies beside it."""
    with zipfile.ZipFile(source) as file:
        members = {name: file.read(name) for name in file.namelist()}
    told = json.loads(members.pop(MANIFEST))
    members.pop(SIGNATURE, None)
    members = change(members)
    told["members"] = {
        name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()} for name, content in members.items()
    }
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
        content = json.dumps(told | (manifest or {})).encode()
        file.writestr(MANIFEST, content)
        if sign:
            file.writestr(SIGNATURE, signing.sign(target.parent, content))


def with_rows(table: str, *rows: dict[str, Any]) -> Callable[[Members], Members]:
    """Puts rows of the attacker's own into a table."""

    def change(members: Members) -> Members:
        return {**members, f"store/{table}.jsonl": "".join(json.dumps(row) + "\n" for row in rows).encode()}

    return change


def message(name: str, target: str, text: str, **more: Any) -> dict[str, Any]:
    """A message as an archive holds it."""
    return {
        "id": name,
        "target": target,
        "text": text,
        "fingerprint": "f",
        "sender": "the owner",
        "source": "cli",
        "priority": 0,
        "reply_to": None,
        "status": "pending",
        "attempts": 0,
        "way": None,
        "outcome": None,
        "reply": None,
        "created_at": 1,
        "expires_at": 99999999999999,
        "finished_at": None,
        **more,
    }
