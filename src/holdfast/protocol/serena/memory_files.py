"""Memories as files of a worktree: written atomically, and never through a link that leads elsewhere."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.files.inside import read_inside

SERENA_FOLDER = ".serena"
MEMORIES = f"{SERENA_FOLDER}/memories"
MAX_MEMORY_BYTES = 600_000
"""150,000 characters of up to four bytes."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_folder(worktree: Path, relative: str) -> bool:
    """Return whether a real folder exists there, reached through real folders only."""
    try:
        with _folder(worktree, Path(relative).parts):
            return True
    except OSError:
        return False


def read_text(worktree: Path, relative: str) -> str | None:
    """Return a file's text; None if there is none. Raises UnreadableInside if it is not a file of the worktree."""
    content = read_inside(worktree, relative, MAX_MEMORY_BYTES)
    return None if content is None else content.decode("utf-8", "replace")


def write_text(worktree: Path, relative: str, text: str) -> None:
    """Write a file atomically. Its folder is created; the folders above that must exist."""
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
    """Remove a file, if it exists; a link is removed, not its target."""
    *folders, name = Path(relative).parts
    with suppress(FileNotFoundError), _folder(worktree, tuple(folders)) as folder:
        os.unlink(name, dir_fd=folder)


@contextmanager
def _folder(worktree: Path, parts: tuple[str, ...], *, make_last: bool = False) -> Iterator[int]:
    """Open a folder of the worktree one name at a time, so that no link is followed."""
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
