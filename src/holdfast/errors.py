"""One family of errors; each knows its code and the step that repairs it."""

from __future__ import annotations

from typing import ClassVar


class HoldfastError(Exception):
    """Something Holdfast refuses or cannot do, said so that the caller knows what to do next."""

    code: ClassVar[str] = "E_HOLDFAST"

    def __init__(self, message: str, *, recovery: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.recovery = recovery

    def __str__(self) -> str:
        return f"{self.message} {self.recovery}" if self.recovery else self.message


class BadInput(HoldfastError):
    """A parameter is missing, of the wrong type or over its limit."""

    code = "E_BAD_INPUT"

    def __init__(self, field: str, problem: str, *, recovery: str | None = None) -> None:
        super().__init__(f"{field}: {problem}.", recovery=recovery)
        self.field = field


class NotFound(HoldfastError):
    """The thing that was named does not exist."""

    code = "E_NOT_FOUND"


class Conflict(HoldfastError):
    """The request contradicts the state things are in."""

    code = "E_CONFLICT"


class Busy(HoldfastError):
    """A queue is full; the same request may be repeated later."""

    code = "E_BUSY"


class StoreError(HoldfastError):
    """The store could not do what was asked; nothing of it took effect, unless it is an OutcomeUnknown."""

    code = "E_STORE"


class StoreUnreachable(StoreError):
    """The database server does not answer."""

    code = "E_STORE_UNREACHABLE"


class OutcomeUnknown(StoreError):
    """It is unknown at present whether a change took effect."""

    code = "E_OUTCOME_UNKNOWN"


class StoreCorrupt(StoreError):
    """The database file is damaged."""

    code = "E_STORE_CORRUPT"


class StoreRemoved(StoreError):
    """The database file was removed or replaced while it was open."""

    code = "E_STORE_REMOVED"


class StoreTooNew(StoreError):
    """The store was written by a newer Holdfast than this one."""

    code = "E_STORE_TOO_NEW"


class DaemonRunning(HoldfastError):
    """Another daemon holds this data directory."""

    code = "E_DAEMON_RUNNING"


class NoDaemon(HoldfastError):
    """No daemon answers for this data directory."""

    code = "E_NO_DAEMON"
