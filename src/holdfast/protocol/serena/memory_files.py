"""Memories as files of a worktree: written in one step, and never through a link that leads elsewhere."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.protocol.in_time import in_time
from holdfast.protocol.inside import read_inside

SERENA_FOLDER = ".serena"
MEMORIES = f"{SERENA_FOLDER}/memories"
SESSIONS = ".agents/sessions"
STATE_FILE = ".session-state.json"
LARGEST = 600_000
"""Bytes of a memory: 150,000 characters of whatever length."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FileMemories:
    """The memories in Serena's own place, for when Serena does not write them itself."""

    def __init__(self, worktree: Path) -> None:
        self._worktree = worktree

    async def read(self, name: str) -> str | None:
        """A memory's text; None when there is none."""
        return await in_time(read_text, self._worktree, f"{MEMORIES}/{name}.md")

    async def write(self, name: str, text: str) -> None:
        """Give a memory this text."""
        if await self.read(name) != text:  # a file that stays as it is does not show up as changed
            await asyncio.to_thread(write_text, self._worktree, f"{MEMORIES}/{name}.md", text)

    async def delete(self, name: str) -> None:
        """Remove a memory, if it is there."""
        await asyncio.to_thread(delete_file, self._worktree, f"{MEMORIES}/{name}.md")


def is_folder(worktree: Path, relative: str) -> bool:
    """Whether a real folder is there, reached through real folders."""
    try:
        with _folder(worktree, Path(relative).parts):
            return True
    except OSError:
        return False


def read_text(worktree: Path, relative: str) -> str | None:
    """A file's text; None when there is none. Raises UnreadableInside for what is no readable file of the worktree."""
    content = read_inside(worktree, relative, LARGEST)
    return None if content is None else content.decode("utf-8", "replace")


def write_text(worktree: Path, relative: str, text: str) -> None:
    """Give a file this text in one step. The folder above it is made; those further above must be there."""
    *folders, name = Path(relative).parts
    content = text.encode("utf-8", "replace")
    with _folder(worktree, tuple(folders), make_last=True) as folder:
        fresh = f".{name}.{secrets.token_hex(6)}.tmp"
        descriptor = os.open(
            fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder
        )
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=folder)
            raise
        os.fsync(folder)


def delete_file(worktree: Path, relative: str) -> None:
    """Remove a file, if it is there; a link is removed, not what it leads to."""
    *folders, name = Path(relative).parts
    with suppress(FileNotFoundError), _folder(worktree, tuple(folders)) as folder:
        os.unlink(name, dir_fd=folder)


@contextmanager
def _folder(worktree: Path, parts: tuple[str, ...], *, make_last: bool = False) -> Iterator[int]:
    """A folder of the worktree, opened one name at a time so that no link is followed."""
    here = os.open(os.path.realpath(worktree), _FOLDER)
    try:
        for place, part in enumerate(parts):
            if make_last and place == len(parts) - 1:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=here)
            below = os.open(part, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)
