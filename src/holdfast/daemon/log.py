"""The daemon's log: repeated warnings are shown less and less often, and the file is rotated by size."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import re
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from holdfast.lazy_dataclass import dataclass
from holdfast.text.terminal import visible

LOG_LIMIT = 5 * 1024 * 1024
OLDER_KEPT = 2
FIRST_PAUSE_S, LONGEST_PAUSE_S = 60.0, 3600.0
FORGOTTEN_AFTER_S = 2 * LONGEST_PAUSE_S
KINDS_KEPT = 500
STDERR = 2


@dataclass(slots=True)
class _Kind:
    """One kind of warning that may come again."""

    shown: float
    seen: float
    pause: float = FIRST_PAUSE_S
    left_out: int = 0


class Repeats:
    """Shows the first of equal warnings, then one after growing pauses with how many were left out meanwhile."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kinds: OrderedDict[tuple[str, int, str], _Kind] = OrderedDict()
        self._changing = threading.Lock()

    def shown(self, record: logging.LogRecord) -> logging.LogRecord | None:
        """Return the record as it goes into the log; None if it is left out."""
        if record.levelno < logging.WARNING:
            return record
        message, now = record.getMessage(), self._clock()
        with self._changing:
            kind = self._kind(record, message, now)
            if kind is None:
                return record
            if now - kind.shown < kind.pause:
                kind.left_out += 1
                return None
            minutes = (now - kind.shown) / 60
            text = f"{message} (and {kind.left_out} times more in the last {minutes:.0f} min)"
            kind.shown, kind.left_out, kind.pause = now, 0, min(kind.pause * 2, LONGEST_PAUSE_S)
        again = copy.copy(record)
        again.msg, again.args = text, None
        # The first one was logged with its traceback.
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            again.msg = f"{text}: {type(error).__name__}: {error}"
        again.exc_info = again.exc_text = again.stack_info = None
        return again

    def _kind(self, record: logging.LogRecord, message: str, now: float) -> _Kind | None:
        """Return the entry for records that differ only in numbers; None for the first in a long time."""
        error = record.exc_info[1] if record.exc_info else None
        text = re.sub(r"\d+", "0", f"{message}\n{type(error).__name__}\n{error}")
        key = (record.name, record.levelno, text)
        kind = self._kinds.pop(key, None)
        if kind is None or now - kind.seen > FORGOTTEN_AFTER_S:
            self._kinds[key] = _Kind(shown=now, seen=now)
            if len(self._kinds) > KINDS_KEPT:
                self._kinds.popitem(last=False)
            return None
        kind.seen = now
        self._kinds[key] = kind
        return kind


class DaemonLog(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to standard error. Where that is `file`, it is rotated at its limit.

    Everything else that writes to standard error (the interpreter, libraries) goes to the new file as well.
    """

    def __init__(self, file: Path | None = None, *, limit: int = LOG_LIMIT) -> None:
        super().__init__(sys.stderr)
        self._repeats = Repeats()
        self._limit = limit
        self._file = file if file is not None and _is_stderr(file) else None
        self._rotate()

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without control characters that could steer a reader's terminal."""
        return visible(super().format(record))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless it only repeats earlier ones."""
        shown = self._repeats.shown(record)
        if shown is not None:
            super().emit(shown)
            self._rotate()

    def _rotate(self) -> None:
        file = self._file
        if file is None or os.fstat(STDERR).st_size <= self._limit:
            return
        with contextlib.suppress(OSError):  # a log that is too long is better than none
            if _is_stderr(file):
                for number in range(OLDER_KEPT, 1, -1):
                    with contextlib.suppress(FileNotFoundError):
                        _older(file, number - 1).replace(_older(file, number))
                file.replace(_older(file, 1))
            fresh = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.dup2(fresh, STDERR)
            finally:
                os.close(fresh)


def _older(file: Path, number: int) -> Path:
    return file.with_name(f"{file.name}.{number}")


def _is_stderr(file: Path) -> bool:
    """Return whether standard error goes to this file."""
    try:
        return os.path.samestat(file.stat(), os.fstat(STDERR))
    except OSError:
        return False
