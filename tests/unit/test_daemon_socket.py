"""The daemon's socket serves processes of its own user that name a handler, and no others."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from holdfast.daemon.socket import DaemonSocket

pytestmark = pytest.mark.anyio


async def _answer(first: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(json.dumps({"heard": first["name"]}).encode() + b"\n")
    await writer.drain()


async def _send(path: Path, line: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        writer.write(line)
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_a_connection_is_served_by_the_handler_that_it_names(tmp_path: Path) -> None:
    socket = DaemonSocket(tmp_path / "socket", {"command": _answer})
    await socket.open()
    assert stat.S_IMODE((tmp_path / "socket").stat().st_mode) == 0o600
    assert await _send(tmp_path / "socket", b'{"holdfast": "command", "name": "x"}\n') == b'{"heard": "x"}\n'
    await socket.close()
    assert not (tmp_path / "socket").exists()


async def test_a_process_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    socket = DaemonSocket(tmp_path / "socket", {"command": _answer})
    await socket.open()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert await _send(tmp_path / "socket", b'{"holdfast": "command", "name": "x"}\n') == b""
    await socket.close()


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b"[]\n", b'{"holdfast": "party"}\n', b"x" * 9_000_000, b"\xff\n"])
async def test_a_connection_that_names_no_handler_is_closed_and_the_next_is_served(tmp_path: Path, line: bytes) -> None:
    socket = DaemonSocket(tmp_path / "socket", {"command": _answer})
    await socket.open()
    assert await _send(tmp_path / "socket", line) == b""
    assert await _send(tmp_path / "socket", b'{"holdfast": "command", "name": "x"}\n') == b'{"heard": "x"}\n'
    await socket.close()
