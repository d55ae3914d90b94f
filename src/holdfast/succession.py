"""A newer version takes over: the older daemon makes room, and older relays do not bring it back meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from holdfast.version import __version__

PATIENCE_SECONDS = 60.0


def make_room(home: Path, version: str) -> None:
    """Say which version is to come: the relays of this one start it again, and may be faster than the newer one."""
    _marker(home).write_text(version)


def newer_is_coming(home: Path) -> bool:
    """Whether a daemon made room for a newer version a moment ago; it is not waited for long."""
    marker = _marker(home)
    try:
        wanted, since = marker.read_text(), time.time() - marker.stat().st_mtime
    except (OSError, ValueError):
        return False
    return is_newer(wanted, __version__) and since < PATIENCE_SECONDS


def took_over(home: Path) -> None:
    """A daemon serves: nobody waits for another any more."""
    _marker(home).unlink(missing_ok=True)


def is_newer(one: str, other: str) -> bool:
    """Whether version `one` comes after version `other`."""
    return _numbers(one) > _numbers(other)


def _marker(home: Path) -> Path:
    return home / "newer"


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version; a text without any counts as the oldest."""

    def numbers() -> Iterator[int]:
        for part in version.split("."):
            digits = "".join(char for char in part if char.isdigit())
            if not digits:
                return
            yield int(digits)

    return tuple(numbers())
