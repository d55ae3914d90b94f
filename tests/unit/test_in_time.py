"""Reading that takes too long is given up by whoever waits for it, and not begun again before it is over."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest
from tests.installation import wait_until

from holdfast.files import in_time as reading
from holdfast.files.in_time import ProjectTooSlow, in_time

pytestmark = pytest.mark.anyio


def _reading() -> list[threading.Thread]:
    threads = [thread for thread in threading.enumerate() if thread.name == "project files"]
    return [thread for thread in threads if thread not in reading._idle]


async def test_whoever_waits_for_a_pipe_is_told_and_others_are_served_meanwhile(tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_text("a")
    stuck = asyncio.ensure_future(in_time(Path.read_text, pipe, limit_s=0.5))
    assert await in_time(Path.read_text, file) == "a"
    with pytest.raises(ProjectTooSlow, match=r"not read within 0\.5 s\. Check that its file system answers"):
        await stuck
    for _ in range(100):
        with pytest.raises(ProjectTooSlow, match="still being read"):
            await in_time(Path.read_text, pipe)
    assert len(_reading()) == 1, "one thread waits, however often it is asked"
    assert await in_time(Path.read_text, file) == "a", "another reading is no concern of it"

    pipe.write_text("b")  # ends the one that waits
    await asyncio.to_thread(wait_until, lambda: len(_reading()) == 0, "nothing is read any more")
    writer = threading.Thread(target=pipe.write_text, args=("c",))
    writer.start()
    assert await in_time(Path.read_text, pipe) == "c", "it answers again"
    writer.join()


async def test_what_reading_raises_is_raised(tmp_path: Path) -> None:
    def late() -> None:
        raise TimeoutError("of its own")

    with pytest.raises(FileNotFoundError):
        await in_time(Path.read_text, tmp_path / "missing")
    with pytest.raises(TimeoutError, match="of its own"):
        await in_time(late)
