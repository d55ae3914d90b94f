"""The door lets in processes of its owner that say what they want, and nobody else."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from holdfast.daemon.socket import Door

pytestmark = pytest.mark.anyio


async def _answer(first: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(json.dumps({"heard": first["name"]}).encode() + b"\n")
    await writer.drain()


async def _knock(path: Path, line: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        writer.write(line)
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_a_visitor_that_says_what_it_wants_is_heard(tmp_path: Path) -> None:
    door = Door(tmp_path / "door", {"command": _answer})
    await door.open()
    assert stat.S_IMODE((tmp_path / "door").stat().st_mode) == 0o600
    assert await _knock(tmp_path / "door", b'{"holdfast": "command", "name": "x"}\n') == b'{"heard": "x"}\n'
    await door.close()
    assert not (tmp_path / "door").exists()


async def test_a_process_of_another_user_is_turned_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door(tmp_path / "door", {"command": _answer})
    await door.open()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert await _knock(tmp_path / "door", b'{"holdfast": "command", "name": "x"}\n') == b""
    await door.close()


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b"[]\n", b'{"holdfast": "party"}\n', b"x" * 100_000, b"\xff\n"])
async def test_a_visitor_nobody_understands_is_sent_away(tmp_path: Path, line: bytes) -> None:
    door = Door(tmp_path / "door", {"command": _answer})
    await door.open()
    assert await _knock(tmp_path / "door", line) == b""
    assert await _knock(tmp_path / "door", b'{"holdfast": "command", "name": "x"}\n') == b'{"heard": "x"}\n'
    await door.close()
